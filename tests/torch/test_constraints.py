"""Allowed transitions by names of tags."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from chordal.torch import CRF, allowed_transitions

TAGS = {
    "bio": ["O", "B-A", "I-A", "B-B", "I-B"],
    "iob1": ["O", "I-A"],
    "iobes": ["O", "B-A", "I-A", "E-A", "S-A"],
    "bilou": ["U-A", "O", "B-A", "I-A", "L-A"],
}


def legal(names, scheme):
    """By rules written out: whether a tagging is of well-formed spans."""
    first, inside, last = {"bio": "BII", "iobes": "BIE", "bilou": "BIL"}[scheme]
    open_kind = None
    for name in [*names, "O"]:
        prefix, _, kind = name.partition("-")
        ends_marked = last != inside
        if prefix in (inside, last):
            if open_kind != kind:
                return False
            if prefix == last and ends_marked:
                open_kind = None
        else:
            if open_kind is not None and ends_marked:
                return False
            open_kind = kind if prefix == first else None
    return True


@pytest.mark.parametrize("scheme", ["bio", "iobes", "bilou"])
def test_only_legal_taggings_have_probability(backend, scheme):
    names = TAGS[scheme]
    torch.manual_seed(0)
    allowed = allowed_transitions(names, scheme)
    crf = CRF(5, True, backend=backend, allowed_transitions=allowed).double()
    free = CRF(5, True, backend=backend).double()
    free.load_state_dict(crf.state_dict())
    emissions = torch.randn(1, 4, 5, dtype=torch.float64)
    paths = list(itertools.product(range(5), repeat=4))
    good = [path for path in paths if legal([names[j] for j in path], scheme)]
    ranked, scores = crf.k_best(emissions, len(good) + 1)
    assert scores[0, -1] == float("-inf")
    assert {tuple(path) for path in ranked[0, :-1].tolist()} == set(good)
    chances = [free(emissions, torch.tensor([path])).exp() for path in good]
    assert_close(
        crf.log_partition(emissions)[0], free.log_partition(emissions)[0] + sum(chances).log()
    )
    drawn = crf.sample(emissions, 200)
    assert {tuple(path) for path in drawn[:, 0].tolist()} <= set(good)


def test_the_scheme_is_found_by_the_names():
    for scheme, names in TAGS.items():
        found = allowed_transitions(names)
        asked = allowed_transitions(names, scheme)
        assert all(torch.equal(a, b) for a, b in zip(found, asked, strict=True))


def test_learning_under_constraints(backend):
    """Forbidden transitions have no derivative, and a forbidden gold tagging no probability."""
    allowed = allowed_transitions(TAGS["bio"])
    crf = CRF(5, True, backend=backend, allowed_transitions=allowed).double()
    emissions = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    crf(emissions, torch.tensor([[0, 1, 2, 0], [3, 4, 4, 1]])).backward()
    assert (crf.transitions.grad[~allowed.between] == 0).all()
    assert crf.transitions.grad[allowed.between].abs().min() > 0
    wrong = crf(emissions, torch.tensor([[0, 2, 2, 0], [0, 0, 0, 0]]), reduction="none")
    assert wrong[0] == float("-inf")
    assert wrong[1].isfinite()


def test_constraints_and_transitions_given_in_a_call(backend):
    allowed = allowed_transitions(TAGS["bio"])
    crf = CRF(5, True, backend=backend, allowed_transitions=allowed)
    best = crf.decode(torch.randn(4, 6, 5), transitions=10 * torch.randn(4, 6, 5, 5))
    assert all(legal([TAGS["bio"][j] for j in path], "bio") for path in best)
