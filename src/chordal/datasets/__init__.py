"""Data sets to learn and test with, made from what is already installed."""

from chordal.datasets.digit_dates import DigitDates, load_digit_dates
from chordal.datasets.plane import make_curved_classes, make_masked_classes

__all__ = ["DigitDates", "load_digit_dates", "make_curved_classes", "make_masked_classes"]
