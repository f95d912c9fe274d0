"""Data sets to learn and test with: made from what is installed, or read from files."""

from chordal.datasets.digit_dates import DigitDates, load_digit_dates
from chordal.datasets.distort import distorted
from chordal.datasets.ocr_letters import OcrLetters, load_ocr_letters
from chordal.datasets.pa7 import Pa7, load_pa7
from chordal.datasets.plane import make_curved_classes, make_masked_classes
from chordal.datasets.snakes import Snakes, load_snakes

__all__ = [
    "DigitDates",
    "OcrLetters",
    "Pa7",
    "Snakes",
    "distorted",
    "load_digit_dates",
    "load_ocr_letters",
    "load_pa7",
    "load_snakes",
    "make_curved_classes",
    "make_masked_classes",
]
