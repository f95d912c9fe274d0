"""The layer on images is that of their grid."""

import copy

import pytest
import torch
from torch.testing import assert_close

from chordal.structures import Grid
from chordal.torch import ImageCRF, LoopyBP, StructuredCRF

from .structures import draw


@pytest.mark.parametrize("inference", ["junction_tree", "mean_field", LoopyBP(4)])
@pytest.mark.parametrize(("neighbours", "tying"), [(4, "all"), (4, "direction"), (8, "direction")])
def test_images_of_several_sizes(inference, neighbours, tying):
    crf = ImageCRF(2, inference, neighbours, tying).double()
    assert len(crf.tables) == (neighbours // 2 if tying == "direction" else 1)
    for height, width in ((2, 3), (3, 2), (1, 1), (2, 3)):
        images = draw(0, 2, 2, height, width)
        grid = StructuredCRF(Grid([(height, width)], 2, neighbours), inference, tying)
        grid.tables = crf.tables
        unary = torch.stack(
            [images[:, :, i, j] for i in range(height) for j in range(width)], dim=1
        )
        found, expected = crf.marginals(images), grid.marginals(unary)
        for v in range(height * width):
            assert_close(found[:, :, v // width, v % width], expected[:, v])
        labels = (images[:, 0] > 0).long()
        flat = labels.reshape(2, -1)
        for question in ("forward", "pseudo_log_likelihood"):
            ours = getattr(crf, question)(images, labels, "token_mean")
            assert_close(ours, getattr(grid, question)(unary, flat, "token_mean"))
        assert torch.equal(crf.decode(images).reshape(2, -1), grid.decode(unary))
        assert_close(crf.log_partition(images), grid.log_partition(unary))


def test_exact_answers_have_the_shape_of_images():
    crf, images = ImageCRF(2, "auto"), torch.randn(3, 2, 2, 4)
    labels, score = crf.k_best(images, 5)
    assert labels.shape == (3, 5, 2, 4)
    assert torch.equal(labels[:, 0], crf.decode(images))
    assert (score.diff(dim=1) <= 0).all()
    assert crf.sample(images, 6).shape == (6, 3, 2, 4)
    assert (crf.entropy(images) > 0).all()


def test_the_parameter_learns():
    torch.manual_seed(0)
    crf = ImageCRF(2)
    labels = torch.zeros(2, 6, 6, dtype=torch.long)
    labels[:, :, 3:] = 1
    images = torch.randn(2, 2, 6, 6)
    optimizer = torch.optim.Adam(crf.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = -crf(images, labels, "mean")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert crf.tables[0].diagonal().sum() > crf.tables[0].sum() / 2  # equal labels attract
    assert torch.equal(copy.deepcopy(crf).decode(images), crf.decode(images))


def test_bad_input():
    crf = ImageCRF(2)
    with pytest.raises(ValueError, match=r"scores must have shape \[batch, 2, height, width\]"):
        crf.decode(torch.zeros(1, 3, 4, 4))
    with pytest.raises(ValueError, match="at least one pixel"):
        crf.decode(torch.zeros(1, 2, 0, 4))
    with pytest.raises(ValueError, match=r"labels must have shape \(1, 4, 5\)"):
        crf(torch.zeros(1, 2, 4, 5), torch.zeros(1, 5, 4, dtype=torch.long))
    scores, labels = torch.zeros(2, 2, 4, 5), torch.zeros(2, 4, 5, dtype=torch.long)
    scores[1, 0, 3, 2] = float("nan")
    with pytest.raises(ValueError, match=r"scores: image 1, label 0, row 3, column 2 is \+nan"):
        crf.marginals(scores)
    with pytest.raises(TypeError, match=r"scores must be floating point, got torch\.int64"):
        crf.decode(labels.unsqueeze(1).expand(2, 2, 4, 5))
    with pytest.raises(ValueError, match=r"scores must be on the device of the layer's"):
        crf.decode(scores.to("meta"))
    scores.zero_()
    with pytest.raises(ValueError, match=r"labels must be on the device of scores"):
        crf(scores, labels.to("meta"))
    with pytest.raises(TypeError, match=r"labels must be integers, got torch\.float32"):
        crf(scores, labels.float())
    labels[1, 2, 4] = 7
    with pytest.raises(
        ValueError, match="labels: image 1, row 2, column 4 is 7, which is not a label"
    ):
        crf(scores, labels)
    with pytest.raises(ValueError, match="neighbours must be 4 or 8, got 6"):
        ImageCRF(2, neighbours=6)
    with pytest.raises(ValueError, match="tying"):
        ImageCRF(2, tying="each")
    with pytest.raises(ValueError, match="num_labels must be an integer of at least 1, got 0"):
        ImageCRF(0)
