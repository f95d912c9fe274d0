"""Mean field and loopy belief propagation as layers: fixed points and derivatives."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.mean_field import MeanFieldInference
from chordal.potentials import Potentials
from chordal.torch import LoopyBP, MeanField, StructuredCRF

from .structures import FORESTS, PAIRWISE, STRUCTURES, draw, layer

BATCH = 2
SETTINGS = {"mean_field": MeanField, "loopy_bp": LoopyBP}
REFERENCES = {
    "mean_field": MeanFieldInference(tol=1e-13),
    "loopy_bp": LoopyBPInference(tol=1e-13),
}
QUESTIONS = ("log_partition", "marginals", "clique_marginals")


@pytest.fixture(params=sorted(SETTINGS))
def method(request):
    return request.param


@pytest.fixture(params=PAIRWISE)
def name(request):
    return request.param


def given(name, tying="all"):
    structure = STRUCTURES[name]
    n_labels = int(structure.label_counts[0])
    unary = draw(0, BATCH, structure.n_variables, n_labels)
    n_tables = {"all": 1, "each": structure.n_cliques}[tying]
    return unary, draw(1, n_tables, n_labels, n_labels, scale=0.4)


def settled(method, gradient="implicit"):
    """Until there are no more digits to win."""
    if gradient == "implicit":
        return SETTINGS[method](gradient=gradient, tol=1e-14, n_iter=2000)
    return SETTINGS[method](n_iter=60)


@pytest.mark.parametrize("gradient", ["unrolled", "implicit"])
@pytest.mark.parametrize("tying", ["all", "each"])
def test_fixed_points_are_those_of_the_compiled_methods(name, method, gradient, tying):
    structure, (unary, tables) = STRUCTURES[name], given(name, tying)
    crf = StructuredCRF(structure, settled(method, gradient), tying=tying).double()
    crf.tables = torch.nn.Parameter(tables)
    log_z, marginals = crf.log_partition(unary), crf.marginals(unary)
    cliques = crf.clique_marginals(unary)
    for b in range(BATCH):
        own = tables.numpy()[crf.table_of_clique.numpy()]
        model = Potentials(
            structure, unary[b].numpy().ravel(), own.ravel(), np.arange(structure.n_cliques)
        )
        expected = REFERENCES[method].marginals(model)
        close = {"rtol": 1e-9, "atol": 1e-9}
        assert_close(log_z[b], torch.tensor(expected.log_partition[0]), **close)
        assert_close(marginals[b].ravel(), torch.tensor(expected.parts.unary), **close)
        assert_close(cliques[b].ravel(), torch.tensor(expected.parts.tables), **close)


@pytest.mark.parametrize("name", FORESTS)
def test_messages_are_exact_without_loops(name):
    unary, tables = given(name)
    exact = StructuredCRF(STRUCTURES[name], learned=False)
    loopy = StructuredCRF(STRUCTURES[name], LoopyBP(n_iter=3), learned=False)
    for question in QUESTIONS:
        expected = getattr(exact, question)(unary, tables=tables)
        assert_close(getattr(loopy, question)(unary, tables=tables), expected)
    labels = torch.zeros(unary.shape[:2], dtype=torch.long)
    labels[:, 1] = -100
    assert_close(loopy(unary, labels, tables=tables), exact(unary, labels, tables=tables))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("tying", ["all", "each"])
@pytest.mark.parametrize("name", ["loop", "no_edge"])
def test_derivatives_through_all_iterations(name, method, question, tying):
    crf = StructuredCRF(STRUCTURES[name], SETTINGS[method](n_iter=3), learned=False)
    unary, tables = (x.requires_grad_() for x in given(name, tying))

    def ask(u, t):
        return getattr(crf, question)(u, tables=t)

    assert gradcheck(ask, (unary, tables))
    if question == "log_partition" and name == "loop":
        assert gradgradcheck(ask, (unary, tables))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(("name", "tying"), [("tree", "all"), ("loop", "each")])
def test_derivatives_of_the_fixed_point(name, method, question, tying):
    crf = StructuredCRF(STRUCTURES[name], settled(method), learned=False)
    unary, tables = (x.requires_grad_() for x in given(name, tying))

    def ask(u, t):
        return getattr(crf, question)(u, tables=t)

    assert gradcheck(ask, (unary, tables))


def test_implicit_and_unrolled_agree_where_iterations_settle(method):
    unary, tables = (x.requires_grad_() for x in given("grid", "each"))
    target = draw(5, *unary.shape)
    found = []
    for gradient in ("unrolled", "implicit"):
        crf = StructuredCRF(STRUCTURES["grid"], settled(method, gradient), learned=False)
        value = (crf.marginals(unary, tables=tables) * target).sum()
        found.append(torch.autograd.grad(value, (unary, tables)))
    assert_close(found[0], found[1], rtol=1e-8, atol=1e-10)


def test_the_derivative_of_log_z_is_the_marginals(method):
    crf = StructuredCRF(STRUCTURES["loop"], settled(method), learned=False)
    unary, tables = (x.requires_grad_() for x in given("loop", "each"))
    log_z = crf.log_partition(unary, tables=tables).sum()
    found = torch.autograd.grad(log_z, (unary, tables))
    assert_close(found[0], crf.marginals(unary, tables=tables), rtol=1e-9, atol=1e-11)
    cliques = crf.clique_marginals(unary, tables=tables).sum(0)
    assert_close(found[1], cliques, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("question", ["log_partition", "marginals"])
@pytest.mark.parametrize("of", ["both", "unary"])
def test_second_derivatives_of_the_fixed_point(method, question, of):
    crf = StructuredCRF(STRUCTURES["loop"], settled(method), learned=False)
    unary, tables = (x[:1] for x in given("loop"))

    def ask(u, t=tables):
        return getattr(crf, question)(u, tables=t)

    wanted = (unary, tables) if of == "both" else (unary,)
    assert gradgradcheck(ask, tuple(x.requires_grad_() for x in wanted))


def test_damping_has_the_same_fixed_point():
    unary, tables = given("loop", "each")
    found = [
        StructuredCRF(
            STRUCTURES["loop"], LoopyBP(gradient="implicit", damping=d, tol=1e-14), learned=False
        ).marginals(unary, tables=tables)
        for d in (0.0, 0.6)
    ]
    assert_close(found[0], found[1])


def test_the_lower_bound_never_falls():
    unary, tables = given("grid", "each")
    tables = 5 * tables
    exact = StructuredCRF(STRUCTURES["grid"], learned=False).log_partition(unary, tables=tables)
    bounds = [
        StructuredCRF(STRUCTURES["grid"], MeanField(n), learned=False).log_partition(
            unary, tables=tables
        )
        for n in range(1, 8)
    ]
    for before, after in zip(bounds, [*bounds[1:], exact], strict=True):
        assert (after >= before - 1e-12).all()


def test_iterations_that_do_not_settle_are_told():
    unary, tables = given("grid", "each")
    crf = StructuredCRF(
        STRUCTURES["grid"], LoopyBP(n_iter=2, gradient="implicit", tol=1e-9), learned=False
    )
    from chordal._errors import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match=r"not settled after 2: .* Raise n_iter"):
        crf.marginals(unary, tables=tables)


def test_forbidden_and_unobserved_labels(method):
    crf = layer("loop", inference=settled(method))
    unary = draw(0, BATCH, 5, 2)
    unary[0, 1, 0] = -torch.inf
    unary.requires_grad_()
    labels = torch.ones(BATCH, 5, dtype=torch.long)
    labels[:, 0] = -100
    value = crf(unary, labels)
    for gradient in torch.autograd.grad(value, (unary, crf.tables)):
        assert gradient.isfinite().all()
    assert crf.marginals(unary)[0, 1, 0] == 0.0
    held = torch.full((BATCH, 5), 1)
    # Of one labelling, log Z is its score.
    agree = torch.nn.functional.one_hot(held, 2).bool()
    assert_close(crf(unary, agree), crf(unary, held))


def test_labels_are_the_most_probable(method):
    crf, unary = layer("grid", inference=method), draw(0, BATCH, 6, 2)
    assert torch.equal(crf.decode(unary), crf.marginals(unary).argmax(2))


def test_float32_settles(method):
    crf = layer("grid", inference=SETTINGS[method](gradient="implicit")).float()
    unary = draw(0, BATCH, 6, 2).float().requires_grad_()
    crf.marginals(unary)[0, 0, 0].backward()
    assert unary.grad.isfinite().all()
    assert crf.log_partition(unary[:0]).shape == (0,)
