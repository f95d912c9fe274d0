"""chordal.compat.install: other packages' names, in processes of their own."""

import subprocess
import sys

import pytest


def run(script, *options):
    done = subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


INSTALL = "import sys, chordal.compat; chordal.compat.install()\n"


def test_modules_are_ours_and_the_same():
    run(
        INSTALL
        + """
import sklearn_crfsuite, sklearn_crfsuite.metrics, pycrfsuite
from pycrfsuite import Tagger, Trainer, ItemSequence
from pycrfsuite._logparser import TrainLogParser
from pycrfsuite._pycrfsuite import Tagger as Inner
from sklearn_crfsuite import CRF, metrics, scorers
from sklearn_crfsuite.estimator import CRF as Again
from sklearn_crfsuite.utils import flatten
import chordal.compat.pycrfsuite, chordal.compat.sklearn_crfsuite.metrics as ours
assert pycrfsuite is chordal.compat.pycrfsuite and Inner is Tagger
assert sklearn_crfsuite is chordal.compat.sklearn_crfsuite and CRF is Again
assert metrics is ours is sklearn_crfsuite.metrics is sys.modules["sklearn_crfsuite.metrics"]
assert isinstance(Tagger(), chordal.compat.pycrfsuite.Tagger)
for module in (pycrfsuite, ours):
    assert module.__spec__.name == module.__name__, module.__spec__
try:
    import sklearn_crfsuite.nonexistent
except ModuleNotFoundError as error:
    assert error.name == "sklearn_crfsuite.nonexistent"
else:
    raise AssertionError
"""
    )


def test_nothing_is_imported_until_it_is_asked_for():
    out = run(INSTALL + "print(*sorted({m.partition('.')[0] for m in sys.modules}))")
    assert not {"numpy", "sklearn", "pycrfsuite", "sklearn_crfsuite"} & set(out.split())


@pytest.mark.parametrize("name", ["pycrfsuite", "sklearn_crfsuite"])
def test_the_real_one_is_not_replaced_behind_its_users(name):
    run(f"""
import sys
import {name} as real
import chordal.compat
try:
    chordal.compat.install()
except ImportError as error:
    assert "is already imported, from " in str(error), error  # one of theirs imports the other
    assert sys.modules[error.name].__file__ in str(error), error
else:
    raise AssertionError
import {name}
assert {name} is real
""")


def test_twice_and_with_ours_already_imported():
    run(
        "from chordal.compat import pycrfsuite as first\n"
        + INSTALL
        + "import pycrfsuite; chordal.compat.install(); assert pycrfsuite is first\n"
        + "names = [type(f).__name__ for f in sys.meta_path]; assert names.count('_Finder') == 1"
    )


def test_a_program_that_knows_nothing_of_chordal(tmp_path):
    (tmp_path / "program.py").write_text(
        "import pycrfsuite\n"
        "trainer = pycrfsuite.Trainer(verbose=False)\n"
        "trainer.append([{'w': 'a'}, {'w': 'cat'}], ['D', 'N'])\n"
        "trainer.train('model')\n"
        "tagger = pycrfsuite.Tagger()\n"
        "with tagger.open('model') as model:\n"
        "    print(model.tag([{'w': 'a'}, {'w': 'cat'}]), type(model).__module__)\n"
    )
    script = f"{INSTALL}import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path('program.py')"
    assert run(script) == "['D', 'N'] chordal.compat.pycrfsuite._tagger\n"
