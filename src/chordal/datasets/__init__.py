"""Data sets to learn and test with, made from what is already installed."""

from chordal.datasets.digit_dates import DigitDates, load_digit_dates
from chordal.datasets.distort import distorted

__all__ = ["DigitDates", "distorted", "load_digit_dates"]
