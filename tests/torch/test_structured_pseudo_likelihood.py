"""The pseudo-likelihood of the layer, against chordal's objective and by hand."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from chordal.inference import choose
from chordal.objectives.pseudo_likelihood import PseudoLikelihood
from chordal.potentials import Potentials

from .structures import STRUCTURES, clique_tables, draw, layer, scores_of

BATCH = 3


def labels_for(structure):
    n_labels = int(structure.label_counts[0])
    generator = torch.Generator().manual_seed(2)
    return torch.randint(n_labels, (BATCH, structure.n_variables), generator=generator)


@pytest.mark.parametrize("name", sorted(set(STRUCTURES) - {"no_edge"}))
def test_value_and_derivative_are_those_of_the_objective(name):
    structure = STRUCTURES[name]
    crf, labels = layer(name, tying="each"), labels_for(structure)
    unary = draw(0, BATCH, structure.n_variables, crf.num_labels).requires_grad_()
    values = crf.pseudo_log_likelihood(unary, labels, "none")
    by_unary, by_tables = torch.autograd.grad(values.sum(), (unary, crf.tables))
    expected_tables = np.zeros(crf.tables.numel())
    for b in range(BATCH):
        scores, tables = unary[b].detach().numpy(), crf.tables.detach().numpy()
        model = Potentials(
            structure, scores.ravel(), tables.ravel(), np.arange(structure.n_cliques)
        )
        found, parts = PseudoLikelihood().evaluate(model, labels[b].numpy(), choose(structure))
        assert_close(values[b].detach(), torch.tensor(-found[0]))
        assert_close(by_unary[b].ravel(), torch.tensor(-parts.unary))
        expected_tables[: parts.tables.size] -= parts.tables
    assert_close(by_tables.ravel(), torch.tensor(expected_tables))


@pytest.mark.parametrize("name", ["grid", "mixed", "triples"])
def test_value_by_hand(name):
    structure = STRUCTURES[name]
    crf, labels = layer(name), labels_for(structure)
    unary = draw(0, BATCH, structure.n_variables, crf.num_labels)
    strides = crf.num_labels ** np.arange(structure.n_variables)[::-1]
    for b in range(BATCH):
        scores = scores_of(structure, unary[b], clique_tables(crf, structure))
        y, total = labels[b].numpy(), 0.0
        for v in range(structure.n_variables):
            others = int(y @ strides - y[v] * strides[v])
            local = scores[[others + label * strides[v] for label in range(crf.num_labels)]]
            total = total + local.log_softmax(0)[y[v]]
        assert_close(crf.pseudo_log_likelihood(unary, labels, "none")[b], total)


def test_derivatives():
    crf, labels = layer("mixed", learned=False), labels_for(STRUCTURES["mixed"])
    unary, tables = draw(0, BATCH, 4, 2).requires_grad_(), draw(1, 18).requires_grad_()

    def ask(u, t):
        return crf.pseudo_log_likelihood(u, labels, "none", tables=t)

    assert torch.autograd.gradcheck(ask, (unary, tables))
    assert torch.autograd.gradgradcheck(ask, (unary, tables))
