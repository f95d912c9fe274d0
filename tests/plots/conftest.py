"""What tests of pictures share: no windows, closed figures, small models."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot as plt

from chordal import ChainCRF


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def drawn(ax):
    """The pixels of the figure: drawing it must not fail."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())


def is_inside(artist, ax):
    """Whether an artist of drawn axes is within the figure."""
    own, figure = artist.get_window_extent(), ax.figure.bbox
    return figure.x0 <= own.x0 <= own.x1 <= figure.x1 and figure.y0 <= own.y0 <= own.y1 <= figure.y1


def has_ink_at_the_edge(ax):
    """Whether something is cut: the outermost pixels of a picture are white."""
    pixels = drawn(ax)[..., :3]
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    return any((own < 250).any() for own in edges)


def overlap(labels):
    """Whether any two neighbours of these texts overlap."""
    boxes = [label.get_window_extent() for label in labels]
    return any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


def texts(artists):
    return [artist.get_text() for artist in artists]


def enumerated(potentials):
    """All labellings of one example and their probabilities, by brute force."""
    counts = potentials.structure.label_counts.tolist()
    labellings = list(itertools.product(*map(range, counts)))
    scores = np.array([potentials.score(own)[0] for own in labellings])
    p = np.exp(scores - scores.max())
    return np.array(labellings), p / p.sum()


@pytest.fixture(scope="session")
def data():
    X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]], [["cat"], ["sleeps"]]]
    return X, [["D", "N", "V"], ["D", "N"], ["N", "V"]]


@pytest.fixture(scope="session")
def crf(data):
    return ChainCRF(l2=0.5).fit(*data)
