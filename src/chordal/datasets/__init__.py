"""Data sets to learn and test with, made from what is already installed."""

from chordal.datasets.digit_dates import DigitDates, load_digit_dates

__all__ = ["DigitDates", "load_digit_dates"]
