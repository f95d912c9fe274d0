"""Builds the source archive and wheels, and tries them in empty environments.

    python tools/wheel_test.py                          # this Python
    python tools/wheel_test.py python3.10 python3.13    # and others: a wheel and a short trial each

1. The source archive, into dist/.
2. A wheel from that archive, into dist/: for the stable ABI if Python is 3.12 or newer. A later
   Python takes the wheel that an earlier one made where its tags allow.
3. The wheel in an empty environment: tools/smoke.py. With this Python also a part of the tests.
4. The archive, installed by pip alone in another empty environment: tools/smoke.py.

Environments are made anew in build/wheel-test, where the tests are copied without src/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK, DIST = ROOT / "build/wheel-test", ROOT / "dist"
BUILD = ["build", "scikit-build-core>=0.11", "nanobind>=2.5", "cmake", "ninja"]
TESTS = ["cli/test_commands.py", "compat", "features", "formats", "test_threads.py"]


def run(*command: str | Path, cwd: Path = WORK) -> None:
    """Run a command outside the sources; stop if it fails."""
    print("$", *[str(c).replace(f"{ROOT}/", "") for c in command], flush=True)
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if subprocess.run(list(command), cwd=cwd, env=kept).returncode:
        sys.exit(f"{command[0]} failed")


def pip(python: Path, *arguments: str | Path) -> None:
    """Run pip of an environment."""
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def environment(python: str | Path, name: str) -> Path:
    """The Python of a new, empty environment."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def archive(builder: Path) -> Path:
    """The source archive, newly made."""
    for old in DIST.glob("chordal-*"):
        old.unlink()
    run(builder, "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST, ROOT)
    (made,) = DIST.glob("chordal-*.tar.gz")
    return made


def fitting(python: Path) -> Path | None:
    """A wheel in dist/ that this Python can install."""
    # Pip knows the tags, and takes the best of these wheels.
    found = WORK / "fitting"
    shutil.rmtree(found, ignore_errors=True)
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index"]
    command += ["--only-binary=:all:", "--find-links", DIST, "--dest", found, "chordal"]
    subprocess.run(command, stderr=subprocess.DEVNULL)
    return next((DIST / wheel.name for wheel in found.glob("*.whl")), None)


def wheel(python: str, name: str, source: Path) -> Path:
    """A wheel for this Python, built from the archive unless one is there already."""
    builder = environment(python, f"{name}-build")
    ready = fitting(builder)
    if ready:
        return ready
    pip(builder, "install", *BUILD)
    # PATH finds CMake and Ninja of the environment.
    os.environ["PATH"] = f"{builder.parent}{os.pathsep}{os.environ['PATH']}"
    options = ["--no-build-isolation", "--no-deps", "--wheel-dir", str(DIST)]
    # Pythons that have no stable ABI to build for pass over the setting.
    pip(builder, "wheel", *options, "--config-settings=wheel.py-api=cp312", source)
    made = fitting(builder)
    if made is None:
        sys.exit(f"{python}: the wheel that was built does not fit the Python that built it")
    return made


def try_wheel(python: str, source: Path, whole: bool) -> None:
    """Build, install into an empty environment and try; `whole`: with tests and the archive."""
    name = "here" if whole else Path(python).parents[1].name + Path(python).name
    made = wheel(python, name, source)
    empty = environment(python, f"{name}-wheel")
    pip(empty, "install", made)
    run(empty, ROOT / "tools/smoke.py")
    if not whole:
        return
    pip(empty, "install", f"chordal[test] @ {made.as_uri()}")
    away = WORK / "tests-away"
    shutil.rmtree(away, ignore_errors=True)
    for part in ["tests", "docs", "examples", "benchmarks", "tools"]:
        shutil.copytree(ROOT / part, away / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ["pyproject.toml", "README.md"]:
        shutil.copy(ROOT / file, away)
    tests = [f"tests/{name}" for name in TESTS]
    run(empty, "-m", "pytest", "-q", "-m", "not slow and not data", *tests, cwd=away)
    other = environment(python, f"{name}-archive")
    pip(other, "install", source)
    run(other, ROOT / "tools/smoke.py")


def main() -> None:
    """Build and try with this Python, and with those that are named."""
    WORK.mkdir(parents=True, exist_ok=True)
    builder = environment(sys.executable, "archive-build")
    pip(builder, "install", *BUILD)
    source = archive(builder)
    try_wheel(sys.executable, source, whole=True)
    for python in sys.argv[1:]:
        try_wheel(shutil.which(python) or python, source, whole=False)
    print("tried:", *sorted(path.name for path in DIST.glob("chordal-*")))


if __name__ == "__main__":
    main()
