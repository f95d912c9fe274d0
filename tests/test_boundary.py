"""The compiled boundary: few arguments, all named, and no two arrays that could be swapped."""

import ast
import copy
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import chordal
from chordal import _kernels
from chordal.potentials import Potentials
from chordal.structures import Chain, Grid

STUB = Path(_kernels.__file__).with_name("_kernels.pyi")
MOST = 8


def functions() -> Iterator[tuple[str, ast.arguments]]:
    """Name and arguments of every bound function and method, without self."""
    if not STUB.exists():
        pytest.skip("this build has no stub")
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.args
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    args = method.args
                    static = any(ast.unparse(d) == "staticmethod" for d in method.decorator_list)
                    if not static:
                        first = args.posonlyargs or args.args
                        del first[0]
                    yield f"{node.name}.{method.name}", args


def test_the_package_is_typed():
    assert Path(chordal.__file__).with_name("py.typed").exists()
    names = {name for name, _ in functions()}
    assert {"chain_marginals", "Frame.__init__", "OnlineChains.visit"} <= names


def test_no_function_has_many_arguments():
    many = {}
    for name, args in functions():
        n = len(args.posonlyargs + args.args + args.kwonlyargs)
        if n > MOST:
            many[name] = n
    assert many == {"Gradient.__init__": 9}  # the parameters of one rule, by keyword alone


def test_arguments_have_names():
    unnamed = {
        name
        for name, args in functions()
        if any(re.fullmatch(r"arg\d*", a.arg) for a in args.posonlyargs + args.args)
    }
    assert {name for name in unnamed if not name.rpartition(".")[2].startswith("__")} == set()


def test_arrays_of_one_type_are_passed_by_name():
    swappable = {}
    for name, args in functions():
        found = (
            re.search(r"NDArray\[(?:numpy\.)?(\w+)\]", ast.unparse(a.annotation))
            for a in args.posonlyargs + args.args
            if a.annotation is not None
        )
        twice = [kind for kind, n in Counter(f.group(1) for f in found if f).items() if n > 1]
        if twice:
            swappable[name] = twice
    assert swappable == {}


def test_sizes_are_checked():
    p = Potentials(Chain([3], n_labels=2), np.zeros(6), np.zeros(4))
    with pytest.raises(ValueError, match="scores do not fit"):
        _kernels.Scores(p.frame, unary=p.tables, tables=p.unary)
    with pytest.raises(ValueError, match="scores do not fit"):
        _kernels.Parts(p.frame, unary=p.unary, tables=np.zeros(8))
    s = p.structure
    with pytest.raises(ValueError, match="do not fit the structure"):
        _kernels.Frame(s.topology, p.table_offsets, np.zeros(3, dtype=np.int32))
    with pytest.raises(ValueError, match="do not fit together"):
        _kernels.Topology(
            state_offsets=s.state_offsets,
            variable_offsets=s.clique_offsets,
            clique_offsets=s.variable_offsets,
            scope_offsets=s.scope_offsets,
            scopes=s.scopes,
        )


def one_chain() -> _kernels.OnlineChains:
    """Two positions, two labels, and one attribute that both positions hold."""
    counts, none = np.array([0, 1, 2], dtype=np.uint32), np.zeros(0, dtype=np.uint32)
    rows = _kernels.OnlineRows(
        _kernels.WideRows(offsets=counts, codes=np.ones(2, dtype=np.uint32), values=None),
        _kernels.NarrowRows(
            offsets=np.zeros(3, dtype=np.uint32), outputs=none, cells=none, values=None
        ),
        **{"outputs": 2, "unit": 4, "base": 0},
    )
    return _kernels.OnlineChains(
        offsets=np.array([0, 2]),
        gold=np.zeros(2, dtype=np.int32),
        weight=None,
        live=np.array([3, 15], dtype=np.uint8),
        node=rows,
        edge=None,
        table=4,
        labels=2,
    )


def test_learners_check_sizes():
    chains, order, cells = one_chain(), np.zeros(1, dtype=np.int64), np.zeros(8)
    unary, tables = np.empty(4), np.empty(4)
    chains.scores(0, w=np.arange(8.0), unary=unary, tables=tables)
    assert [*unary, *tables] == [0, 1, 0, 1, 4, 5, 6, 7]
    with pytest.raises(ValueError, match="do not fit the chains"):
        chains.scores(1, w=cells, unary=unary, tables=tables)
    with pytest.raises(ValueError, match="do not fit the chains"):
        chains.adjoint(0, unary=unary[:2], tables=tables, w=cells)
    with pytest.raises(ValueError, match="do not fit the chains"):
        chains.visit(_kernels.Perceptron(), order, w=cells, memory=cells[1:], counts=np.zeros(2))
    with pytest.raises(ValueError, match="do not fit the chains"):
        _kernels.chain_log_partitions(chains, 0, 2, w=cells, lead=np.zeros(1))
    with pytest.raises(ValueError, match="do not fit the chains"):
        _kernels.chain_differences(chains, np.zeros(3, dtype=np.int32))
    with pytest.raises(ValueError, match="do not fit their offsets"):
        _kernels.WideRows(
            offsets=np.zeros(1, dtype=np.uint32), codes=np.ones(1, dtype=np.uint32), values=None
        )


def test_other_types_and_read_only_output_are_refused():
    p = Potentials(Chain([3], n_labels=2), np.zeros(6), np.zeros(4))
    with pytest.raises(TypeError):
        _kernels.Scores(p.frame, unary=np.zeros(6, dtype=np.float32), tables=p.tables)
    with pytest.raises(TypeError):
        _kernels.Frame(p.structure.topology, p.table_offsets, np.zeros(2, dtype=np.int64))
    fixed = np.zeros(6)
    fixed.flags.writeable = False
    assert p.like(fixed, p.tables).score([0, 0, 0]) == 0.0
    with pytest.raises(TypeError):
        p.like(fixed, p.tables).add_indicators([0, 0, 0])


def test_the_frame_is_shared_and_stays_behind():
    p = Potentials(Grid([(3, 3)], n_labels=2), np.arange(18.0), np.arange(4.0))
    other = p.like(p.unary + 1.0, p.tables)
    assert other.frame is p.frame
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert_array_equal(twin.score(np.zeros(9)), p.score(np.zeros(9)))
        assert twin.structure.is_forest is False


def test_arrays_live_as_long_as_what_holds_them():
    scores = Potentials(Chain([2], n_labels=2), np.ones(4), np.ones(4)).scores
    out = np.zeros(1)
    _kernels.labelling_score(scores, np.zeros(2, dtype=np.int32), out)
    assert out[0] == 3.0
    offsets = Chain([4], n_labels=2).incidence.offsets
    assert offsets.tolist() == [0, 1, 3, 5, 6]
