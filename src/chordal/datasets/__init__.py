"""Data sets to learn and test with: made from what is installed, or read from files."""

from chordal.datasets.digit_dates import DigitDates, load_digit_dates
from chordal.datasets.distort import distorted
from chordal.datasets.ocr_letters import OcrLetters, load_ocr_letters
from chordal.datasets.pa7 import Pa7, load_pa7
from chordal.datasets.parallel_sample import ParallelSample, make_parallel_sample
from chordal.datasets.plane import make_curved_classes, make_masked_classes

__all__ = [
    "DigitDates",
    "OcrLetters",
    "Pa7",
    "ParallelSample",
    "distorted",
    "load_digit_dates",
    "load_ocr_letters",
    "load_pa7",
    "make_curved_classes",
    "make_masked_classes",
    "make_parallel_sample",
]
