"""Data sets for examples and tests: generated, or read from files."""

from chordal.datasets._images import LabelledImages
from chordal.datasets.citations import Citations, load_citations
from chordal.datasets.digit_dates import DigitDates, load_digit_dates
from chordal.datasets.distort import distorted
from chordal.datasets.gestures import Gestures, load_gestures
from chordal.datasets.grabcut import load_grabcut
from chordal.datasets.msrc import MSRCSuperpixels, load_msrc_images, load_msrc_superpixels
from chordal.datasets.noisy_chains import NoisyChains, load_noisy_chains, make_noisy_chains
from chordal.datasets.ocr_letters import OCRLetters, load_ocr_letters
from chordal.datasets.pa7 import PA7, load_pa7
from chordal.datasets.parallel_sample import ParallelSample, make_parallel_sample
from chordal.datasets.plane import make_curved_classes, make_masked_classes
from chordal.datasets.seminars import Seminars, load_seminars
from chordal.datasets.snakes import Snakes, load_snakes
from chordal.datasets.stereo_scenes import StereoScene, make_stereo_scene
from chordal.datasets.tagged_text import TaggedText, load_conll2000, load_ud_english
from chordal.datasets.ugm_x import load_ugm_x
from chordal.datasets.weizmann_horses import load_weizmann_horses

__all__ = [
    "PA7",
    "Citations",
    "DigitDates",
    "Gestures",
    "LabelledImages",
    "MSRCSuperpixels",
    "NoisyChains",
    "OCRLetters",
    "ParallelSample",
    "Seminars",
    "Snakes",
    "StereoScene",
    "TaggedText",
    "distorted",
    "load_citations",
    "load_conll2000",
    "load_digit_dates",
    "load_gestures",
    "load_grabcut",
    "load_msrc_images",
    "load_msrc_superpixels",
    "load_noisy_chains",
    "load_ocr_letters",
    "load_pa7",
    "load_seminars",
    "load_snakes",
    "load_ud_english",
    "load_ugm_x",
    "load_weizmann_horses",
    "make_curved_classes",
    "make_masked_classes",
    "make_noisy_chains",
    "make_parallel_sample",
    "make_stereo_scene",
]
