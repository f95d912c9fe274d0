"""The dense CRF of images, against loops over pairs of pixels, and its derivatives."""

import math

import pytest
import torch
from torch.testing import assert_close

from chordal.structures import Graph
from chordal.torch import DenseCRF, MeanField, StructuredCRF

from .structures import draw


def changed(num_labels, window, n_iter=3):
    """A layer whose parameters are not those it begins with."""
    crf = DenseCRF(num_labels, window, n_iter, colour_width=0.7).double()
    with torch.no_grad():
        crf.weights.copy_(torch.tensor([0.6, 0.3]))
        crf.compatibility.copy_(draw(3, num_labels, num_labels))
    return crf


def pulls(crf, image):
    """[pixels, pixels], pair by pair from the formula."""
    _, height, width = image.shape
    place, colour, smooth = crf.log_widths.exp().tolist()
    w1, w2 = crf.weights.tolist()
    pixels = [(i, j) for i in range(height) for j in range(width)]
    found = torch.zeros(len(pixels), len(pixels), dtype=torch.float64)
    for a, (i, j) in enumerate(pixels):
        for b, (k, m) in enumerate(pixels):
            if a == b or max(abs(i - k), abs(j - m)) > crf.window // 2:
                continue
            d = (i - k) ** 2 + (j - m) ** 2
            c = float(((image[:, i, j] - image[:, k, m]) ** 2).sum())
            first = w1 * math.exp(-d / (2 * place**2) - c / (2 * colour**2))
            found[a, b] = first + w2 * math.exp(-d / (2 * smooth**2))
    return found


@pytest.mark.parametrize("window", [3, 5, 9])
def test_steps_are_those_of_the_formula(window):
    crf = changed(3, window)
    scores, images = draw(0, 2, 3, 4, 5), draw(1, 2, 2, 4, 5)
    table = (crf.compatibility + crf.compatibility.T).detach() / 2
    found = crf.marginals(scores, images)
    for b in range(2):
        unary, pull = scores[b].reshape(3, -1).T, pulls(crf, images[b])
        q = unary.softmax(1)
        for _ in range(crf.n_iter):
            q = (unary + pull @ q @ table).softmax(1)
        assert_close(found[b].reshape(3, -1).T, q)
    assert torch.equal(crf.decode(scores, images), found.argmax(1))


def test_its_fixed_point_is_that_of_mean_field_on_the_graph():
    crf = changed(2, 3, n_iter=400)
    with torch.no_grad():
        crf.weights *= 0.5  # weak enough for steps of all pixels at once
    scores, images = draw(0, 1, 2, 3, 3), draw(1, 1, 1, 3, 3)
    pull = pulls(crf, images[0])
    edges = [(a, b) for a in range(9) for b in range(a + 1, 9) if pull[a, b] > 0]
    table = (crf.compatibility + crf.compatibility.T).detach() / 2
    tables = torch.stack([pull[a, b] * table for a, b in edges])
    graph = StructuredCRF(
        Graph([9], [edges], n_labels=2), MeanField(400), tying="each", learned=False
    )
    expected = graph.marginals(scores.flatten(2).transpose(1, 2), tables=tables)
    assert_close(crf.marginals(scores, images)[0].reshape(2, 9).T, expected[0])


def test_derivatives():
    crf = changed(2, 3, n_iter=2)
    scores, images = draw(0, 1, 2, 2, 3).requires_grad_(), draw(1, 1, 1, 2, 3).requires_grad_()
    names = [name for name, _ in crf.named_parameters()]
    own = [p.detach().clone().requires_grad_() for p in crf.parameters()]

    def ask(scores, images, *own):
        given = dict(zip(names, own, strict=True))
        return torch.func.functional_call(crf, given, (scores, images))

    assert torch.autograd.gradcheck(ask, (scores, images, *own))


def test_bad_input():
    crf, scores, images = DenseCRF(2), torch.zeros(1, 2, 4, 5), torch.zeros(1, 3, 4, 5)
    wrong = images.clone()
    wrong[0, 1, 2, 3] = torch.nan
    for given, message in (
        ((scores[:, :1], images), r"scores must have shape \[batch, 2, height, width\]"),
        ((scores, images[0]), r"images must have shape \[1, channels, height, width\]"),
        ((scores, images[:, :, 1:]), r"same height and width, got \(3, 5\) and \(4, 5\)"),
        ((scores, images.long()), "images must be floating point"),
        ((scores, wrong), "images: image 0, channel 1, row 2, column 3 is"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            crf(*given)
    for settings, message in (
        ({"num_labels": 0}, "num_labels must be an integer of at least 1"),
        ({"window": 4}, "window must be an odd number of at least 3, got 4"),
        ({"n_iter": 0}, "n_iter must be an integer of at least 1"),
        ({"colour_width": 0.0}, "colour_width must be a number above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            DenseCRF(**{"num_labels": 2, **settings})
