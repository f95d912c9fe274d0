"""Kill a worker with SIGKILL at random moments of fits on a local cluster, and compare weights.

    python tools/kill_workers.py --times 10

Every fit has a cluster of two worker processes. At a random moment of its time one of them is
killed, and its nanny starts another. The last line says how many fits have the weights of a fit
that nobody disturbed, bit for bit.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import threading
import time
import warnings
from typing import Any

import dask
import dask.bag
import numpy as np
from distributed import Client, LocalCluster

from chordal import ChainCRF
from chordal.dask import fit


def sentences(n: int) -> list[tuple[list[Any], list[str]]]:
    """Random sequences with labels."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        own = rng.integers(5, size=int(rng.integers(5, 30)))
        x = [[f"w={rng.zipf(1.4)}", f"s={(v + rng.integers(2)) % 5}"] for v in own]
        found.append((x, [f"L{v}" for v in own]))
    return found


class Assassin(threading.Thread):
    """Kills one worker of a client after some seconds."""

    def __init__(self, client: Client, after: float) -> None:
        super().__init__(daemon=True)
        self.client, self.after, self.pid = client, after, 0
        self.pids = list(client.run(os.getpid).values())

    def run(self) -> None:
        """Wait, and kill."""
        time.sleep(self.after)
        self.pid = random.choice(self.pids)
        os.kill(self.pid, signal.SIGKILL)


def main() -> int:
    """Run the fits; 0 if all weights are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--sequences", type=int, default=400)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--max-iter", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random.seed(given.seed)
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set({"distributed.comm.timeouts.connect": "3s"})  # to a worker that is dead
    data = sentences(given.sequences)

    def fitted(client: Client) -> np.ndarray:
        pairs = dask.bag.from_sequence(data, npartitions=given.partitions)
        return fit(ChainCRF(max_iter=given.max_iter), pairs, client=client).weights_

    equal, expected, usual = 0, np.zeros(0), 0.0
    for k in range(given.times + 1):  # the first is not disturbed
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            assassin = Assassin(client, random.uniform(0.0, usual))
            started = time.perf_counter()
            if k:
                assassin.start()
            found = fitted(client)
            seconds = time.perf_counter() - started
            if not k:
                expected, usual = found, seconds
                continue
            assassin.join()
        same = np.array_equal(found, expected)
        equal += same
        print(
            f"{k}: worker {assassin.pid} killed after {assassin.after:.2f} s of about {usual:.2f} "
            f"s; {seconds:.2f} s in all; weights {'equal' if same else 'DIFFER'}",
            flush=True,
        )
    print(f"equal weights: {equal} of {given.times}")
    return 0 if equal == given.times else 1


if __name__ == "__main__":
    raise SystemExit(main())
