"""Fits that are killed with SIGKILL at random moments, and started again: are the weights the same?

Each trial starts a fit with a checkpoint in a process of its own, kills it after a random time,
starts it again, once to three times, and lets the last one end. Its weights are compared, bit for
bit, with those of a fit that nobody killed and that wrote no checkpoint. Run:

    python tools/kill_and_resume.py --times 20
    python tools/kill_and_resume.py --times 20 --solver adam --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SOLVERS = ["lbfgs", "owlqn", "adam", "sgd", "averaged_perceptron", "block_frank_wolfe", "one_slack"]
MOST = 3  # kills of one fit

CHILD = """
import sys, warnings
import numpy as np
from chordal import ChainCRF, Checkpoint

warnings.simplefilter("ignore")
solver, path, out = sys.argv[1:]
rng = np.random.default_rng(0)
word = lambda: [f"w{rng.zipf(1.3) % 5000}", f"s{rng.integers(200)}"]
X = [[word() for _ in range(20)] for _ in range(1500)]
y = [[int(x[0][1:]) % 7 + (rng.random() < 0.2) for x in own] for own in X]
l1 = 0.1 if solver == "owlqn" else 0.0
crf = ChainCRF(solver=solver, l1=l1, l2=0.1, max_iter=40, tol=0.0, random_state=0)
print("begins", flush=True)
crf.fit(X, y, checkpoint=Checkpoint(path, interval=1) if path else None)
np.save(out, crf.weights_)
"""


def fit(solver: str, path: str, out: str, seconds: float | None) -> tuple[bool, float]:
    """Run a fit to its end, or kill it so long after it began; whether it ended, and when."""
    words = [sys.executable, "-c", CHILD, solver, path, out]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        if child.stdout.readline() != b"begins\n":
            sys.exit("the fit did not begin")
        began = time.monotonic()
        try:
            code = child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            code = child.wait()
    if code not in (0, -signal.SIGKILL):
        sys.exit(f"the fit ended with code {code}")
    return code == 0, time.monotonic() - began


def main() -> None:
    """Trials, and their figure."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how often a fit is killed")
    parser.add_argument("--solver", choices=SOLVERS, help="one solver alone; else all take turns")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    names = [asked.solver] if asked.solver else SOLVERS
    right = kills = trials = 0
    with tempfile.TemporaryDirectory() as folder:
        whole = {name: os.path.join(folder, f"{name}.npy") for name in names}
        length = {name: fit(name, "", whole[name], None)[1] for name in names}
        while kills < asked.times:
            name = names[trials % len(names)]
            path, out = os.path.join(folder, f"{trials}"), os.path.join(folder, "found.npy")
            ended, n, most = False, 0, chance.randint(1, MOST)
            while not ended and n < most and kills < asked.times:
                moment = chance.uniform(0.05, 1.0) * length[name]
                ended, _ = fit(name, path, out, moment)
                n += not ended
                kills += not ended
            if not ended:
                fit(name, path, out, None)
            same = bool((np.load(out) == np.load(whole[name])).all())
            right, trials = right + same, trials + 1
            print(f"{name}: killed {n} times, the same weights: {same}", flush=True)
    print(f"{kills} kills in {trials} fits: {right} of {trials} ended with the same weights")
    sys.exit(right < trials)


if __name__ == "__main__":
    main()
