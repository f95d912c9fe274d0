"""toulbar2's formats: beside lists of all labellings, and toulbar2 itself where it is installed."""

import io
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import FormatError
from chordal.formats.uai import read_cfn, read_model, read_wcsp
from chordal.inference import INFERENCE, choose


def network(seed, *, top=60, negative=False):
    """Label counts, and cost functions of up to three variables as arrays; some costs are `top`."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, size=5).tolist()
    functions = [([], np.array(float(rng.integers(0, 5))))]
    for size in (1, 1, 2, 2, 2, 2, 3):
        scope = rng.permutation(5)[:size].tolist()
        costs = rng.integers(-6 if negative else 0, 9, size=[counts[v] for v in scope]).astype(
            float
        )
        costs[rng.random(costs.shape) < 0.15] = 2 * top
        functions.append((scope, costs))
    return counts, functions, top


def costs_of_all(counts, functions):
    """The cost of every labelling, by plain sums."""
    return {
        labels: sum(float(costs[tuple(labels[v] for v in scope)]) for scope, costs in functions)
        for labels in itertools.product(*map(range, counts))
    }


def wcsp(counts, functions, top, defaults):
    lines = [
        f"random {len(counts)} {max(counts)} {len(functions)} {top}",
        " ".join(map(str, counts)),
    ]
    for k, (scope, costs) in enumerate(functions):
        default = 4 if defaults and k % 2 and scope else 0
        given = [(*labels, int(cost)) for labels, cost in np.ndenumerate(costs) if cost != default]
        if not scope:
            lines.append(f"0 {int(costs)} 0")
            continue
        lines.append(" ".join(map(str, [len(scope), *scope, default, len(given)])))
        lines += [" ".join(map(str, row)) for row in given]
    return "\n".join(lines).encode()


def cfn(counts, functions, top, defaults, sign="<"):
    """Labels of even variables have names; functions list all costs or leave out a default."""
    factor = 1 if sign == "<" else -1
    variables = {f"v{i}": n if i % 2 else [f"l{k}" for k in range(n)] for i, n in enumerate(counts)}
    facts = {}
    for f, (scope, costs) in enumerate(functions):
        own = {"scope": [f"v{v}" if v % 3 else v for v in scope]}
        if defaults and f % 2 and scope:
            rows = []
            for labels, cost in np.ndenumerate(costs):
                names = [k if v % 2 else f"l{k}" for k, v in zip(labels, scope, strict=True)]
                rows += [*names, factor * cost] if cost != 4 else []
            own |= {"defaultcost": factor * 4, "costs": rows}
        else:
            own["costs"] = (factor * costs).ravel().tolist()
        facts[f"f{f}"] = own
    problem = {"name": "random", "mustbe": f"{sign}{factor * top}.0"}
    return json.dumps({"problem": problem, "variables": variables, "functions": facts}).encode()


READ = {
    "wcsp": lambda *a: read_wcsp(io.BytesIO(wcsp(*a, defaults=False))),
    "wcsp, defaults": lambda *a: read_wcsp(io.BytesIO(wcsp(*a, defaults=True))),
    "cfn": lambda *a: read_cfn(io.BytesIO(cfn(*a, defaults=False))),
    "cfn, defaults": lambda *a: read_cfn(io.BytesIO(cfn(*a, defaults=True))),
    "cfn, largest": lambda *a: read_cfn(io.BytesIO(cfn(*a, defaults=True, sign=">"))),
}


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("seed", range(8))
def test_scores_are_minus_costs(form, seed, negative):
    counts, functions, top = network(seed, negative=negative)
    potentials = READ[form](counts, functions, top)
    assert potentials.structure.label_counts.tolist() == counts
    allowed = {}
    for labels, cost in costs_of_all(counts, functions).items():
        score = float(potentials.score(list(labels))[0])
        if score == -np.inf:
            assert cost >= top
        else:
            assert score == pytest.approx(-cost)
            allowed[labels] = cost
    if not allowed:
        assert INFERENCE.resolve("exhaustive").log_partition(potentials)[0] == -np.inf
        return
    best = choose(potentials, "map").map(potentials)
    assert -float(best.score[0]) == pytest.approx(min(allowed.values()))
    log_z = choose(potentials, "log_partition").log_partition(potentials)
    assert_allclose(log_z, np.logaddexp.reduce([-cost for cost in allowed.values()]))


def test_costs_of_the_upper_bound_are_forbidden():
    counts, functions, top = network(1)
    potentials = READ["wcsp"](counts, functions, top)
    forbidden = sum((costs >= top).sum() for scope, costs in functions if len(scope) > 1)
    assert (potentials.tables == -np.inf).sum() == forbidden > 0


def test_punctuation_comments_and_shared_costs():
    text = b"""# a network
    { problem { name: tiny mustbe: "<inf" }
      variables [ 2 [a b] ]
      functions { f { scope [0 1] costs [[0 1] [2 inf]] } g: { scope: [1, 0], costs: f } } }
    """
    p = read_cfn(io.BytesIO(text))
    assert_allclose(p.table(0), [[0, -1], [-2, -np.inf]])
    assert_allclose(p.table(1), p.table(0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"x 2 2 1 9  2 3", r":1:14: labels of a variable must be at least 1 and at most 2, got 3"),
        (b"x 1 2 1 9  2  1 0 0 1  2 5", r":1:24: a label of cost function 0 .* at most 1, got 2"),
        (b"x 1 2 1 9  2  1 0 0 2  1 5", r"expected 4 words .*cut short"),
        (b"x 1 2 1 9  2  1 0 0 1  1 a", r":1:26: a cost of cost function 0 must be a number"),
        (b"x 2 2 1 9  2 2  2 0 0 0 0", r"cost function 0 names a variable twice"),
        (b"x 2 2 1 9  2 2  2 0 1 -1 salldiff var 9", r"the global one 'salldiff'"),
        (b"x 2 2 1 9  2 2  -2 0 1 0 0", r"shared functions are not supported"),
        (b"x 1 2 0 9  2 7", r"expected the end of the file"),
        (b"x 1 2 3 9  2", r"cut short"),
        (b"x 3 9999 1 9  9999 9999 9999  3 0 1 2 0 0", r"more than 1,000,000"),
    ],
)
def test_wcsp_that_is_wrong(text, message):
    with pytest.raises(FormatError, match=message):
        read_wcsp(io.BytesIO(text))


CFN = b"{problem {name x %s} variables {a 2 b [u v]} functions {f {%s}}}"


@pytest.mark.parametrize(
    ("bound", "function", "message"),
    [
        (b"", b"scope [a] costs [1]", r"function 'f' must have 2 costs.*got 1"),
        (b"", b"scope [a] costs [1 x]", r"a cost of function 'f' must be a number, got 'x'"),
        (b"", b"scope [a] costs [1 -inf]", r"infinitely good"),
        (b"", b"scope [c] costs [1 2]", r"scope of different variables"),
        (b"", b"scope [a a] costs [1 2 3 4]", r"scope of different variables"),
        (b"", b"scope [b] defaultcost 0 costs [w 1]", r"no label 'w'"),
        (b"", b"scope [b] defaultcost 0 costs [u]", r"1 labels before each cost"),
        (b"", b"scope [b] costs g", r"the costs of 'g'"),
        (b"", b"scope [a b] type salldiff", r"the global one 'salldiff'"),
        (b"", b"costs [1]", r"an object with a scope"),
        (b"mustbe 5", b"scope [a] costs [1 2]", r"mustbe must be '<number'"),
        (b"", b"scope [a", r":1:\d+: "),
        (b"", b'scope ["a', r"a quote without its end"),
    ],
)
def test_cfn_that_is_wrong(bound, function, message):
    with pytest.raises(FormatError, match=message):
        read_cfn(io.BytesIO(CFN % (bound, function)))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"{" * 50, b"{problem}", b"7", b"}"])
def test_what_is_no_network(text):
    with pytest.raises(FormatError):
        read_cfn(io.BytesIO(text))


@pytest.mark.parametrize("form", ["wcsp", "cfn"])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_toulbar2(form, seed, tmp_path):
    pytest.importorskip("pytoulbar2")
    counts, functions, top = network(seed)
    path = tmp_path / f"model.{form}"
    path.write_bytes({"wcsp": wcsp, "cfn": cfn}[form](counts, functions, top, defaults=True))
    script = (  # a process of its own: one that has read .cfn reads no .wcsp any more
        "import sys, pytoulbar2; model = pytoulbar2.CFN(); model.Read(sys.argv[1]); "
        "print('cost', model.Solve()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    least = float(done.stdout.split("cost ")[-1])
    potentials = read_model(path)
    best = choose(potentials, "map").map(potentials)
    assert least == pytest.approx(-float(best.score[0]), abs=1e-6)
