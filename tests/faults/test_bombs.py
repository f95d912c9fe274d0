"""The catalogue of tools/bombs.py: small files that ask for much are refused in little memory."""

import importlib.util
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("peak memory is read from /proc", allow_module_level=True)
pytest.importorskip("pyarrow", reason="some bombs are tables")
pytest.importorskip("starlette", reason="some bombs are requests")

SOURCE = Path(__file__).parents[2] / "tools" / "bombs.py"
if not SOURCE.exists():
    pytest.skip("there are no tools beside these tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("bombs", SOURCE)
bombs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bombs)


pytestmark = pytest.mark.unsanitized("a sanitizer keeps memory that was freed")


@pytest.mark.slow
@pytest.mark.parametrize("first", bombs.groups())
def test_bombs_take_little_memory(first, tmp_path):
    names = bombs.groups()[first]
    found = dict(zip(names, bombs.exploded(names, tmp_path), strict=True))
    for name, outcome in found.items():
        assert outcome.megabytes < bombs.MEGABYTES, (name, outcome)
        assert "Error" in outcome.ended or outcome.ended in ("read", "Refusal"), (name, outcome)
        assert "MemoryError" not in outcome.ended, name


def test_the_measure_sees_memory_that_is_taken(tmp_path, monkeypatch):
    large = bombs.Bomb(lambda path: None, "x = np.ones(30_000_000); del x")
    crash = bombs.Bomb(lambda path: None, "import os; os._exit(3)")
    monkeypatch.setitem(bombs.BOMBS, "large", large)
    monkeypatch.setitem(bombs.BOMBS, "crash", crash)
    names = ["large", "request, k", "crash", "request, k"]
    found = list(bombs.exploded(names, tmp_path))
    assert found[0].ended == "read"
    assert 200 < found[0].megabytes < 300
    assert found[1].ended == "Refusal"
    assert found[1].megabytes < 20
    assert [own.ended[:11] for own in found[2:]] == ["exit code 3"] * 2
