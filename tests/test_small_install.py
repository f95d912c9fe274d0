"""chordal beside NumPy, Rich and Typer alone: what works there, and what the rest says.

Each program runs in a process of its own in which the optional packages cannot be imported.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chordal._optional import EXTRAS

ABSENT = [*EXTRAS, "threadpoolctl", "joblib", "pandas"]


BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


def python(code, *arguments, absent=ABSENT):
    """What a program prints in a process where some packages are as if not installed."""
    program = f"ABSENT = {absent!r}{BLOCK}{code}"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


CHAINS = """
import json, warnings
import numpy as np
import chordal
from chordal import ChainCRF
words = [["the", "cat", "sleeps"], ["a", "dog"], ["the", "dog", "sees", "a", "cat"]]
y = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "D", "N"]]
rng = np.random.default_rng(0)
inputs = {
    "attributes": [[[f"w={w}", "bias"] for w in sentence] for sentence in words],
    "dicts": [[{"w": w, "length": float(len(w))} for w in sentence] for sentence in words],
    "arrays": [rng.normal(size=(len(sentence), 4)) for sentence in words],
}
out = {}
for name, X in inputs.items():
    for solver in ("lbfgs", "owlqn", "sgd", "averaged_perceptron", "block_frank_wolfe"):
        l2 = 0.0 if solver == "averaged_perceptron" else 0.1
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            crf = ChainCRF(l2=l2, solver=solver, max_iter=20, random_state=0).fit(X, y)
        path = f"{sys.argv[1]}/{name}-{solver}"
        chordal.save(crf, path)
        read = chordal.load(path)
        assert read.predict(X) == crf.predict(X)
        out[f"{name}, {solver}"] = [p.tolist() for p in read.predict_marginals(X)]
        crf.k_best(X, 2), crf.sample(X, 2), crf.score(X, y), crf.entropy(X)
        repr(crf), crf.get_params(), crf._repr_mimebundle_()
print(json.dumps(out))
"""

GRAPHS = """
import json
import numpy as np
from chordal import GraphCRF, GridCRF
rng = np.random.default_rng(0)
out = {}
y = [rng.integers(0, 3, (4, 5)) for _ in range(3)]
X = [np.eye(3)[labels] + 0.5 * rng.normal(size=(4, 5, 3)) for labels in y]
for inference in ("auto", "loopy_bp", "junction_tree"):
    crf = GridCRF(l2=0.1, inference=inference, max_iter=30).fit(X, y)
    out[f"grid, {inference}"] = [p.tolist() for p in crf.predict_marginals(X)]
nodes = [rng.normal(size=(4, 2)) for _ in range(3)]
edges = [np.array([(0, 1), (1, 2), (2, 3), (3, 0)])] * 3
labels = [(x[:, 0] > 0).astype(int) for x in nodes]
graphs = list(zip(nodes, edges))
crf = GraphCRF(l2=0.1).fit(graphs, labels)
out["graph"] = [p.tolist() for p in crf.predict_marginals(graphs)]
print(json.dumps(out))
"""

CRFSUITE = """
import json
from chordal.compat import pycrfsuite
X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}, {"word": "sleeps"}]]
y = [["D", "N"], ["D", "N", "V"]]
for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
    trainer = pycrfsuite.Trainer(algorithm, verbose=False)
    for xseq, yseq in zip(X, y):
        trainer.append(xseq, yseq)
    trainer.train(f"{sys.argv[1]}/{algorithm}")
tagger = pycrfsuite.Tagger()
tagger.open(f"{sys.argv[1]}/lbfgs")
assert [tagger.tag(xseq) for xseq in X] == y
tagger.dump(f"{sys.argv[1]}/dump")
print(json.dumps({"probability": [[tagger.probability(y[1]), tagger.marginal("N", 1)]]}))
"""


@pytest.mark.parametrize("code", [CHAINS, GRAPHS, CRFSUITE], ids=["chains", "graphs", "crfsuite"])
def test_the_core_does_the_same_without_optional_packages(tmp_path, code):
    small, full = (json.loads(python(code, tmp_path, absent=a)) for a in (ABSENT, []))
    assert small.keys() == full.keys()
    assert small
    for key in small:
        for ours, theirs in zip(small[key], full[key], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6, err_msg=key)


COLUMNS = "the DT B-NP\ncat NN I-NP\nsleeps VBZ B-VP\n\na DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n\n"


def test_the_command_line(tmp_path):
    def chordal(*words):
        return python("from chordal.cli import main\nmain(sys.argv[1:])", *words)

    text, model, tagged = (tmp_path / name for name in ("train.txt", "model", "tagged.txt"))
    text.write_text(COLUMNS * 3)
    chordal("train", "--task", "chunking", text, model)
    tagged.write_text(chordal("tag", model, text))
    assert [line.split()[-1] for line in tagged.read_text().split("\n\n")[0].splitlines()] == [
        "B-NP",
        "I-NP",
        "B-VP",
    ]
    assert "100.00" in chordal("evaluate", tagged)
    assert "B-NP, " in chordal("info", model)
    assert "B-NP" in chordal("inspect", model)
    assert "best" in chordal("tune", "--task", "chunking", "--l2", "0.1,1", "--folds", "2", text)
    chordal("convert", text, tmp_path / "train.jsonl")
    chordal("convert", model, tmp_path / "model.crfsuite")
    assert "train" in chordal("--help")


def test_errors_and_warnings_without_scikit_learn():
    """Of scikit-learn's names and bases, and its own where it is imported."""
    code = """
import json, warnings
from chordal import ChainCRF
X, y = [[["a"], ["b"]]], [["A", "B"]]
with warnings.catch_warnings(record=True) as met:
    warnings.simplefilter("always")
    ChainCRF(max_iter=1).fit(X, y)
try:
    ChainCRF().predict(X)
except Exception as error:
    kinds = [type(error), met[0].category]
print(json.dumps([[k.__name__, [b.__name__ for b in k.__bases__], k.__module__] for k in kinds]))
"""
    small = json.loads(python(code))
    full = json.loads(python("import sklearn" + code, absent=[]))
    assert [kind[:2] for kind in small] == [kind[:2] for kind in full]
    assert [kind[2] for kind in full] == ["sklearn.exceptions"] * 2


MESSAGES = [
    ("from chordal.compat import sklearn_crfsuite", "chordal.compat.sklearn_crfsuite", "sklearn"),
    ("import chordal.experiments", "chordal.experiments", "sklearn"),
    ("import chordal.plots", "chordal.plots", "matplotlib"),
    ("import chordal.torch", "chordal.torch", "torch"),
    ("import chordal.testing", "chordal.testing", "scipy"),
    ("chordal.RBFFeatures", "RBFFeatures", "sklearn"),
    ("chordal.ChainCRFCV().fit([[['a']]], [['A']])", "ChainCRFCV", "sklearn"),
    ("chordal.HMM().fit([['a', 'b']], [['A', 'B']])", "emission 'categorical'", "scipy"),
    ("chordal.NaiveBayes().fit([[1, 2]], ['A'])", "emission '", "scipy"),
    ("INFERENCE.resolve('milp').map(model)", "linear programs", "scipy"),
    ("INFERENCE.resolve('linear_program').map(model)", "linear programs", "scipy"),
    ("chordal.datasets.load_digit_dates()", "load_digit_dates", "sklearn"),
    ("chordal.preprocessing.sequences_from_frame(0, 'a', 'b')", "reading data frames", "narwhals"),
    ("metrics.make_sequence_scorer('f1')", "make_sequence_scorer", "sklearn"),
    ("list(formats.open_target('x.zst').__enter__())", "writing x.zst", "zstandard"),
    ("fit('cutting_plane')", "solver 'cutting_plane'", "scipy"),
    ("fit('newton')", "solver 'newton'", "scipy"),
    ("chordal.CRFClassifier().fit([[0.0], [1.0]], [0, 1])", "CRFClassifier", "sklearn"),
    ("fit('lbfgs').coef_", "coef_ of named attributes", "scipy"),
    ("fit('lbfgs')._repr_html_()", "the diagram of an estimator", "sklearn"),
    ("fit('lbfgs').set_callbacks()", "set_callbacks", "sklearn"),
    ("chordal.explain(fit('lbfgs'), [['a']]).to_frame()", "to_frame", "pandas"),
    ("import_module('chordal.explanation.eli5')", "chordal.explanation.eli5", "eli5"),
]

PRELUDE = """
from importlib import import_module
import chordal, chordal.datasets, chordal.preprocessing
from chordal import formats, metrics
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Graph
def fit(solver):
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "B"]]
    return chordal.ChainCRF(solver=solver, l2=0.1).fit(X, y)
model = Potentials(Graph([2], [[(0, 1)]], n_labels=2), unary=[0, 1, 0, 0], tables=[0, 1, 1, 0])
"""


def test_what_is_missing_is_said():
    """Each message says what was asked for, the package, and the command that installs it."""
    code = f"""{PRELUDE}
import json
said = []
for line in json.loads(sys.argv[1]):
    try:
        exec(line)
        said.append("nothing")
    except ImportError as error:
        said.append(str(error))
    except Exception as error:
        said.append(repr(error))
print(json.dumps(said))
"""
    said = json.loads(python(code, json.dumps([line for line, _, _ in MESSAGES])))
    for (line, what, package), message in zip(MESSAGES, said, strict=True):
        name, extra = EXTRAS[package]
        extra = "experiments" if "experiments" in line else extra
        assert re.fullmatch(
            rf".*{re.escape(what)}.* needs {name}, which is not installed: "
            rf'pip install "chordal\[{extra}\]"',
            message,
        ), f"{line}: {message}"


def test_the_extras_are_those_of_the_project():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    # Pillow comes with matplotlib, and distributed with dask[distributed].
    names = {"PIL": "matplotlib", "sklearn": "scikit-learn", "distributed": "dask"}
    for package, (_, extra) in EXTRAS.items():
        wanted = project["optional-dependencies"][extra]
        assert any(line.startswith(names.get(package, package)) for line in wanted), package
    needed = {re.split(r"[^\w-]", line)[0] for line in project["dependencies"]}
    assert needed == {"numpy", "rich", "typer"}


def test_importing_pycrfsuite_loads_nothing_heavy():
    code = "import chordal.compat.pycrfsuite as p\nprint(*sys.modules)\n"
    code += "print(*(name for name in dir(p) if hasattr(p, name)))"
    loaded, names = (set(line.split()) for line in python(code, absent=[]).splitlines())
    assert "chordal.compat.pycrfsuite" in loaded
    heavy = {"scipy", "sklearn", "threadpoolctl", "rich", "typer", "numpy.random"}
    assert not heavy & loaded
    assert not {"chordal.estimators", "chordal.features", "chordal.solvers"} & loaded
    assert {"BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"} <= names
