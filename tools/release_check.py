"""What is still missing for publication.

    python tools/release_check.py        # exit status 1 if something is missing

It looks at the project's files, at git and at the archives and wheels in dist/, which
`make wheel-test` and the wheels workflow make. Twine must be installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ["cp310-cp310", "cp311-cp311", "cp312-abi3", "cp314-cp314t"]
PLATFORMS = {
    "manylinux x86-64": r"manylinux\w*x86_64",
    "manylinux aarch64": r"manylinux\w*aarch64",
    "macOS x86-64": r"macosx\w*x86_64",
    "macOS arm64": r"macosx\w*arm64",
    "Windows x86-64": r"win_amd64",
}
Check = tuple[str, str]  # what is checked, and what is missing: nothing if it is empty


def missing_wheels(names: list[str]) -> list[str]:
    """Pythons and platforms that none of these wheels serves."""
    return [
        f"{python} {platform}"
        for python in PYTHONS
        for platform, pattern in PLATFORMS.items()
        if not any(re.search(rf"-{python}-(\w+\.)*{pattern}", name) for name in names)
    ]


def relative_links(text: str) -> list[str]:
    """Links and pictures that lead nowhere on a page that has the text alone."""
    return [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def _texts(version: str, settings: str) -> Iterator[Check]:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## (\S+)(.*)", changes, re.MULTILINE)
    top = found.group(1).strip("[]") if found else "nothing"
    ready = top == version and found and re.search(r"\d{4}-\d\d-\d\d", found.group(2))
    yield (
        "the changelog begins with this version and its date",
        "" if ready else f"it begins with {top}; write '## {version} - <date>'",
    )
    licensed = 'license = "' in settings and (ROOT / "LICENSE").is_file()
    yield "licence", "" if licensed else "no licence in pyproject.toml, or no LICENSE"
    urls = "[project.urls]" in settings
    yield "addresses of the project", "" if urls else "pyproject.toml has no [project.urls]"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"^pip install (\S+)", readme, re.MULTILINE)
    command = first.group(0) if first else "no pip install"
    yield (
        "README leads with `pip install chordal`",
        "" if command == "pip install chordal" else f"it leads with `{command}`",
    )
    links = relative_links(readme)
    yield (
        "README's links work on the package's page",
        f"{len(links)} are relative, such as {links[0]}" if links else "",
    )


def _archives(version: str) -> Iterator[Check]:
    dist = sorted(path.name for path in (ROOT / "dist").glob(f"chordal-{version}[-.]*"))
    source = f"chordal-{version}.tar.gz"
    yield "source archive", "" if source in dist else f"dist/{source}: run `make wheel-test`"
    if dist:
        command = [sys.executable, "-m", "twine", "check", "--strict"]
        done = subprocess.run(
            command + [ROOT / "dist" / name for name in dist], capture_output=True, text=True
        )
        said = (done.stdout + done.stderr).strip().splitlines()
        yield "descriptions render (twine)", said[-1] if done.returncode and said else ""
    wheels = missing_wheels(dist)
    where = "; the wheels workflow builds them: put them into dist/"
    yield "wheels", f"{len(wheels)} are missing: {', '.join(wheels)}{where}" if wheels else ""


def _repository(version: str) -> Iterator[Check]:
    changed = _git("status", "--porcelain").splitlines()
    yield "nothing is uncommitted", f"{len(changed)} files are changed" if changed else ""
    tagged = f"v{version}" in _git("tag", "--points-at", "HEAD").split()
    yield "tag", "" if tagged else f"git tag v{version}"


def main() -> None:
    """Print what is done and what is missing."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"', settings, re.MULTILINE)
    if found is None:
        sys.exit("pyproject.toml has no version")
    version = found.group(1)
    checks = [*_texts(version, settings), *_archives(version), *_repository(version)]
    for what, missing in checks:
        print(f"missing  {what}: {missing}" if missing else f"done     {what}")
    print("by hand  the name on the package index, and a trusted publisher for the wheels workflow")
    missing = sum(bool(missing) for _, missing in checks)
    print(f"chordal {version}: {missing or 'nothing'} missing of {len(checks)}")
    sys.exit(missing > 0)


if __name__ == "__main__":
    main()
