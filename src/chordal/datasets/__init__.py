"""Data sets to learn and test with: made from what is installed, or read from files."""

from chordal.datasets.digit_dates import DigitDates, load_digit_dates
from chordal.datasets.distort import distorted
from chordal.datasets.gestures import Gestures, load_gestures
from chordal.datasets.noisy_chains import NoisyChains, load_noisy_chains, make_noisy_chains
from chordal.datasets.ocr_letters import OcrLetters, load_ocr_letters
from chordal.datasets.pa7 import Pa7, load_pa7
from chordal.datasets.plane import make_curved_classes, make_masked_classes
from chordal.datasets.stereo_scenes import StereoScene, make_stereo_scene
from chordal.datasets.tagged_text import TaggedText, load_conll2000, load_ud_english

__all__ = [
    "DigitDates",
    "Gestures",
    "NoisyChains",
    "OcrLetters",
    "Pa7",
    "StereoScene",
    "TaggedText",
    "distorted",
    "load_conll2000",
    "load_digit_dates",
    "load_gestures",
    "load_noisy_chains",
    "load_ocr_letters",
    "load_pa7",
    "load_ud_english",
    "make_curved_classes",
    "make_masked_classes",
    "make_noisy_chains",
    "make_stereo_scene",
]
