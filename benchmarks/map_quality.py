"""The best labellings that are found in 20 s: the portfolio, every method by itself, and toulbar2.

Every model is asked about in a process of its own, which ends at the limit. Where the portfolio
proves its labelling, no single method is asked: none can be better. toulbar2 is asked everywhere,
which checks the proofs; it is measured where `pytoulbar2` is installed, and `$CHORDAL_TOULBAR2`
may name a folder that has it. `$CHORDAL_MAP_SEED` is the seed of the random models, 0 by default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks._map_models import files, random_names
from benchmarks._run import ROOT, Part, Row, Run

SECONDS, QUICK_SECONDS = 20.0, 2.0
GRACE = 15.0  # to start, to read the model, and to end
SEED = int(os.environ.get("CHORDAL_MAP_SEED", "0"))
PORTFOLIO, TOULBAR2 = "portfolio", "toulbar2"
REQUIRED = {"single": 0.95, TOULBAR2: 0.8}
#: Scores that differ by a smaller share are equal: toulbar2 rounds costs to six digits.
EQUAL = 1e-6

Found = dict[str, Any]


def _asked(name: str, method: str, seconds: float) -> Found:
    """Score, bound and seconds of one method on one model; no score if it has none."""
    command = [sys.executable, "-m", "benchmarks._map_worker", name, method, str(seconds)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=4 * seconds + GRACE
        )
    except subprocess.TimeoutExpired:
        return {"problem": "did not end"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"problem": done.stderr.strip()[-200:]}


def _at_least(score: float | None, other: float | None) -> bool:
    if other is None:
        return True
    return score is not None and score >= other - EQUAL * max(1.0, abs(other))


def _proved(found: Found) -> bool:
    """Whether an answer's bound is its score."""
    return found.get("score") is not None and _at_least(found["score"], found["bound"])


def _methods() -> list[str]:
    from chordal.inference import INFERENCE

    answering = [name for name in INFERENCE if "map" in INFERENCE.get(name).answers]
    return [name for name in answering if name not in (PORTFOLIO, "exhaustive")]


def _compared(run: Run, rivals: list[str], names: list[str]) -> tuple[list[str], dict[str, Found]]:
    """The models on which the portfolio is below the best rival, and its answers."""
    seconds = QUICK_SECONDS if run.quick else SECONDS
    below, answers = [], {}
    for name in names:
        short = name.rpartition("/")[2]
        run.say(f"{short}: portfolio")
        ours = answers[short] = _asked(name, PORTFOLIO, seconds)
        best, who = None, ""
        for rival in rivals if rivals == [TOULBAR2] or not _proved(ours) else []:
            run.say(f"{short}: {rival}")
            score = _asked(name, rival, seconds).get("score")
            if score is not None and (best is None or score > best):
                best, who = score, rival
        if not _at_least(ours.get("score"), best):
            below.append(f"{short} ({who} {best:.6g}, ours {ours.get('score')})")
    return below, answers


def _names(run: Run) -> list[str]:
    random = list(random_names(SEED))
    return random[::8] if run.quick else random + files()


def _row(run: Run, what: str, rival: str, below: list[str], n: int) -> Row:
    share, least = 1.0 - len(below) / n, REQUIRED[rival]
    return Row(
        what,
        ours=f"{n - len(below)} of {n}",
        ratio=f"{100 * share:.0f}%",
        requirement=f"≥ {100 * least:.0f}%",
        met=run.judged(share >= least),
        problem="below on: " + ", ".join(below) if below else "",
    )


def _single(run: Run) -> Iterator[Row]:
    names = _names(run)
    below, answers = _compared(run, _methods(), names)
    yield _row(run, "best labels, as good as the best single method", "single", below, len(names))
    noisy = {name: found for name, found in answers.items() if name.startswith(("noisy", "Promed"))}
    proved = sum(found.get("status") == "CONVERGED" for found in noisy.values())
    if noisy:
        what = "noisy-or networks solved to proof"
        met = run.judged(proved == len(noisy))
        yield Row(what, ours=f"{proved} of {len(noisy)}", requirement="all", met=met)


def _toulbar2(run: Run) -> Iterator[Row]:
    if folder := os.environ.get("CHORDAL_TOULBAR2"):
        sys.path.append(folder)
    import pytoulbar2  # noqa: F401  # its absence is said

    names = _names(run)
    below, _ = _compared(run, [TOULBAR2], names)
    yield _row(run, "best labels, as good as toulbar2", TOULBAR2, below, len(names))


ORDER = 90
PARTS: dict[str, Part] = {"single": _single, "toulbar2": _toulbar2}
