"""Runs targets: ``python -m fuzz [TARGET …] --seconds 60``; each in a process of its own.

A target runs by the mutators of `fuzz.mutation`, for half of the time guided by coverage if atheris
is installed (``--engine`` chooses one). A finding is an error that the target may not raise, a
crash, 5 seconds without an end, or 2 GB of memory. Inputs are kept in ``build/fuzz``, and count in
later runs until they are removed; ``--again FILE`` runs one.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import mmap
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz.calls import calls
from fuzz.readers import TARGETS, Target

KEPT = Path("build/fuzz")
ROOM = 1 << 20
SLOW = 5.0
MEMORY = 2 << 30
ALL = {**TARGETS, "calls": calls}
NATIVE = "patterns"  # compiled with libFuzzer, where there is clang


class SlowError(BaseException):
    """An input took too long."""


def main() -> None:
    """Run the targets that the command line names, or all; exit with 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(ALL))
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--engine", choices=["plain", "guided", "both"], default="both")
    parser.add_argument("--seed", type=int, default=None, help="of the plain engine; else the time")
    parser.add_argument("--again", metavar="FILE", help="run one input of the target")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name in options.targets:
        if name not in (*ALL, NATIVE):
            parser.error(f"no target {name!r}; there are: {', '.join([*ALL, NATIVE])}")
    if options.again:
        ALL[options.targets[0]]().run(Path(options.again).read_bytes())
        return
    if options.child:
        child(options.targets[0], options.child, options.seconds, options.seed or 0)
        return
    engines = ["plain", "guided"] if options.engine == "both" else [options.engine]
    if importlib.util.find_spec("atheris") is None and "guided" in engines:
        engines = ["plain"]
        print("atheris is not installed: no coverage guides the inputs", flush=True)
    total = found = 0
    seed = int(time.time()) if options.seed is None else options.seed
    for name in options.targets or [*ALL, NATIVE]:
        if name == NATIVE:
            n, bad = run_native(options.seconds)
            total, found = total + n, found + bad
            print(f"{name:16} native  {n:10,} executions, {bad} findings", flush=True)
            continue
        for engine in engines:
            n, bad = run(name, engine, options.seconds / len(engines), seed)
            total, found = total + n, found + bad
            print(f"{name:16} {engine:7} {n:10,} executions, {bad} findings", flush=True)
    print(f"all targets: {total:,} executions, {found} findings")
    _add_up(total, found)
    sys.exit(1 if found else 0)


def _add_up(total: int, found: int) -> None:
    """Keep the sum of all runs."""
    place = KEPT / "total.json"
    before = json.loads(place.read_text()) if place.exists() else {"executions": 0, "findings": 0}
    both = {"executions": before["executions"] + total, "findings": before["findings"] + found}
    place.write_text(json.dumps(both))
    print(
        f"since build/fuzz was made: {both['executions']:,} executions, {both['findings']} findings"
    )


def run(name: str, engine: str, seconds: float, seed: int) -> tuple[int, int]:
    """Run a target for some seconds, again after each crash; executions and findings."""
    KEPT.mkdir(parents=True, exist_ok=True)
    shared = KEPT / f"{name}.current"
    executions, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.5:
        shared.write_bytes(bytes(ROOM))
        command = [sys.executable, "-m", "fuzz", name, "--child", engine, "--seconds", str(left)]
        command += ["--seed", str(seed + executions)]
        try:
            code = subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=left + 60
            ).returncode
        except subprocess.TimeoutExpired:
            code = -signal.SIGALRM
        raw = shared.read_bytes()
        n, size = struct.unpack("<QQ", raw[:16])
        executions += n
        if code != 0 and n:
            keep(name, raw[16 : 16 + size], f"the process ended with {code}")
        if code != 0 and not n:
            raise SystemExit(f"{name} does not start: python -m fuzz {name} --child {engine}")
    return executions, len(list(KEPT.glob(f"{name}-*.txt")))


def run_native(seconds: float) -> tuple[int, int]:
    """Compile the native target and run it; executions and findings."""
    compiler = shutil.which("clang++")
    if compiler is None:
        print("there is no clang++: native code is not fuzzed", flush=True)
        return 0, 0
    import nanobind

    KEPT.mkdir(parents=True, exist_ok=True)
    program, source = KEPT / NATIVE, Path(__file__).parent / "native" / f"{NATIVE}.cpp"
    kernels = Path(__file__).parents[1] / "kernels"
    sources = [source, *kernels.glob("*.hpp")]
    if not program.exists() or program.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        folders = [str(kernels), nanobind.include_dir(), sysconfig.get_paths()["include"]]
        flags = ["-std=c++20", "-g", "-O2", "-fno-sanitize-recover=all"]
        flags += ["-fsanitize=fuzzer,address,undefined", *(f"-I{folder}" for folder in folders)]
        subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
    corpus = KEPT / "corpus" / NATIVE
    corpus.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={max(1, int(seconds))}", "-max_len=64", "-print_final_stats=1"]
    ran = subprocess.run(
        [program, *limits, f"-artifact_prefix={KEPT}/{NATIVE}-", corpus],
        capture_output=True,
        text=True,
        errors="replace",
    )
    count = re.search(r"number_of_executed_units: (\d+)", ran.stderr)
    if ran.returncode:
        keep(NATIVE, b"", ran.stderr[-4000:])
    return int(count[1]) if count else 0, int(ran.returncode != 0)


def keep(name: str, data: bytes, why: str) -> None:
    """Keep an input, and why; one for each place where errors come from."""
    kept = KEPT / f"{name}-{_mark(why.splitlines()[0])}"
    if not kept.exists():
        kept.write_bytes(data)
        kept.with_suffix(".txt").write_text(why)


def child(name: str, engine: str, seconds: float, seed: int) -> None:
    """What the process of a target does."""
    if engine == "guided":
        import atheris

        for module in [m for m in sys.modules if m.split(".")[0] in ("chordal", "fuzz")]:
            if module != "chordal._kernels":
                del sys.modules[module]
        with atheris.instrument_imports(include=["chordal"], enable_loader_override=False):
            from fuzz.calls import calls as again
            from fuzz.readers import TARGETS as guided

            target = {**guided, "calls": again}[name]()
    else:
        target = ALL[name]()
    resource.setrlimit(resource.RLIMIT_AS, (_used() + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _slow)
    once = _once(name, target)
    if engine == "guided":
        _guided(name, target, once, seconds)
    rng, end = random.Random(seed), time.monotonic() + seconds
    corpus = list(target.seeds)
    while time.monotonic() < end:
        for _ in range(20):
            data = target.mutate(rng.choice(corpus), rng)
            if once(data) and rng.randrange(50) == 0:  # it was taken: go on from it
                corpus.append(data)
                if len(corpus) > 200:
                    del corpus[rng.randrange(len(target.seeds), len(corpus))]


def _once(name: str, target: Target) -> Any:
    with open(KEPT / f"{name}.current", "r+b") as file:
        memory = mmap.mmap(file.fileno(), ROOM)
    count = 0

    def once(data: bytes) -> bool:
        """Run one input; whether the target took it."""
        nonlocal count
        data = bytes(data[: ROOM - 16])
        memory[8 : 16 + len(data)] = struct.pack("<Q", len(data)) + data
        signal.setitimer(signal.ITIMER_REAL, SLOW)
        try:
            target.run(data)
            return True
        except target.may_raise:
            return False
        except (Exception, SlowError) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} at {Path(where.filename).name}:{where.name}"
            shown = (
                "" if isinstance(error, SlowError) else "".join(traceback.format_exception(error))
            )
            keep(name, data, f"{place}\n{shown}")
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            count += 1
            memory[:8] = struct.pack("<Q", count)

    return once


def _mark(why: str) -> str:
    return hashlib.blake2b(why.encode(), digest_size=4).hexdigest()


def _guided(name: str, target: Target, once: Any, seconds: float) -> None:
    """By libFuzzer's choice of inputs, which our mutators change; it ends the process."""
    import atheris

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.randrange(5) == 0:
            return bytes(atheris.Mutate(data, size))
        return target.mutate(data or rng.choice(target.seeds), rng)[:size]

    corpus = KEPT / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for k, seed in enumerate(target.seeds):
        (corpus / str(k)).write_bytes(seed)
    limits = [f"-max_total_time={max(1, int(seconds))}", "-rss_limit_mb=0", "-timeout=60"]
    words = ["fuzz", str(corpus), *limits, "-max_len=16384", "-verbosity=0"]
    atheris.Setup(words, lambda data: once(data) and None, custom_mutator=mutate)
    atheris.Fuzz()


def _slow(number: int, frame: FrameType | None) -> None:
    raise SlowError


def _used() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
