"""What the tests beside python-crfsuite share: both modules, and a small model's data."""

import pycrfsuite as theirs
import pytest

from chordal.compat import pycrfsuite as ours

BOTH = pytest.mark.parametrize("module", [ours, theirs], ids=["ours", "theirs"])

WEATHER = [
    {"walk": 1, "shop": 0.5},
    {"walk": 1},
    {"walk": 1, "clean": 0.5},
    {"shop": 0.5, "clean": 0.5},
    {"walk": 0.5, "clean": 1},
    {"clean": 1, "shop": 0.1},
    {"walk": 1, "shop": 0.5},
    {},
    {"clean": 1},
    {"солнце": "не светит".encode(), "clean": 1, "never": False},
]
LABELS = ["sunny", "sunny", "sunny", "rainy", "rainy", "rainy", "sunny", "sunny", "rainy", "好"]


def train(module, path, instances, algorithm=None, holdout=-1, **params):
    trainer = module.Trainer(algorithm, params, verbose=False)
    for instance in instances:
        trainer.append(*instance)
    trainer.train(str(path), holdout)
    return trainer


def opened(module, path):
    tagger = module.Tagger()
    tagger.open(str(path))
    return tagger


def weights(info):
    return info.state_features | info.transitions
