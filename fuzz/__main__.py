"""Runs targets: ``python -m fuzz [TARGET …] --seconds 60``; each in a process of its own.

A target runs by the mutators of `fuzz.mutation`, for half of the time guided by coverage if atheris
is installed (``--engine`` chooses one). With ``--executions N``, slow targets run longer, until
each has run N inputs. A finding is an error that the target may not raise, a crash, 5 seconds
of the processor, 2 GB of memory, or a process that stands still. Inputs are kept in ``build/fuzz``
with what the process said, and count in later runs until they are removed; ``--again FILE`` runs
one. ``build/fuzz/total.json`` adds up the executions of each target.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import importlib.util
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz.calls import calls
from fuzz.layers import layers
from fuzz.readers import TARGETS
from fuzz.target import Target, memory

KEPT = Path("build/fuzz")
ROOM = 1 << 20
SLOW = 5.0  # of the processor
STILL = 300.0  # without an execution, at the start and the end too: others may need the processor
MEMORY = 2 << 30
SHORTEST, LONGEST = 4.0, 600.0  # seconds of one more round of a slow target
ALL = {**TARGETS, "calls": calls}
if importlib.util.find_spec("torch"):
    ALL["layers"] = layers
NATIVE = "patterns"  # compiled with libFuzzer, where there is clang


class SlowError(BaseException):
    """An input took too long."""


def main() -> None:
    """Run the targets that the command line names, or all; exit with 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(ALL))
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--executions", type=int, default=0, help="at least, of each target")
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
    seed = int(time.time()) if options.seed is None else options.seed
    counts, found = dict[str, int](), 0
    for name in options.targets or [*ALL, NATIVE]:
        own = ["native"] if name == NATIVE else engines
        counts[name], bad = fuzzed(name, own, options.seconds, options.executions, seed)
        found += bad
    print(f"all targets: {sum(counts.values()):,} executions, {found} findings")
    _add_up(counts, found)
    sys.exit(1 if found else 0)


def fuzzed(
    name: str, engines: list[str], seconds: float, wanted: int, seed: int
) -> tuple[int, int]:
    """Run a target, longer if it has run too few inputs; executions and findings."""
    total, found, left = 0, 0, seconds
    while left > 0.0:
        before = total
        for engine in engines:
            if engine == "native":
                n, found = run_native(left)
            else:
                n, found = run(name, engine, left / len(engines), seed + total)
            total += n
            print(f"{name:16} {engine:7} {n:10,} executions, {found} findings", flush=True)
        n = total - before
        more = min(LONGEST, max(SHORTEST, 1.1 * left * (wanted - total) / max(n, 1)))
        left = more if 0 < total < wanted else 0.0
    return total, found


def _add_up(counts: dict[str, int], found: int) -> None:
    """Keep the sums of all runs, by target."""
    place = KEPT / "total.json"
    both = json.loads(place.read_text()) if place.exists() else {"executions": {}, "findings": 0}
    for name, n in counts.items():
        both["executions"][name] = both["executions"].get(name, 0) + n
    both["findings"] += found
    place.write_text(json.dumps(both, indent=1))
    total, least = sum(both["executions"].values()), min(both["executions"].items(), key=_second)
    print(
        f"since build/fuzz was made: {total:,} executions of {len(both['executions'])} targets, "
        f"{both['findings']} findings; fewest: {least[0]}, {least[1]:,}"
    )


def _second(pair: tuple[str, int]) -> int:
    return pair[1]


def run(name: str, engine: str, seconds: float, seed: int) -> tuple[int, int]:
    """Run a target for some seconds, again after each crash; executions and findings."""
    KEPT.mkdir(parents=True, exist_ok=True)
    shared = KEPT / f"{name}.current"
    executions, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.5:
        shared.write_bytes(bytes(ROOM))
        command = [sys.executable, "-m", "fuzz", name, "--child", engine, "--seconds", str(left)]
        command += ["--seed", str(seed + executions)]
        how, said = _ended(command, shared, KEPT / f"{name}.said")
        raw = shared.read_bytes()
        n, size = struct.unpack("<QQ", raw[:16])
        executions += n
        if how and n:
            keep(name, raw[16 : 16 + size], f"the process {how}\n{said}")
        if how and not n:
            raise SystemExit(f"{name} {how} before it started:\n{said}")
    return executions, len(list(KEPT.glob(f"{name}-*.txt")))


def _ended(command: list[str], shared: Path, said: Path) -> tuple[str, str]:
    """Run a process until it ends or stands still; how it ended, unless well, and what it said."""
    with open(said, "wb") as file, tempfile.TemporaryDirectory(dir=memory()) as place:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=file, env={**os.environ, "TMPDIR": place}
        )
        count, since = b"", time.monotonic()
        while process.poll() is None:
            time.sleep(0.1)
            with open(shared, "rb") as counter:
                before, count = count, counter.read(8)
            since = time.monotonic() if count != before else since
            if time.monotonic() > since + STILL:
                process.send_signal(signal.SIGABRT)  # it says where each of its threads is
                process.wait(STILL)
                return f"stood still for {STILL:.0f} s", _last(said)
        code = process.returncode
        return f"ended with {code}" if code else "", _last(said)


def _last(said: Path) -> str:
    return said.read_text(errors="replace")[-4000:]


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
    faulthandler.enable()
    if engine == "guided":
        import atheris

        for module in [m for m in sys.modules if m.split(".")[0] in ("chordal", "fuzz")]:
            if module != "chordal._kernels":
                del sys.modules[module]
        with atheris.instrument_imports(include=["chordal"], enable_loader_override=False):
            from fuzz.calls import calls as again
            from fuzz.layers import layers as networks
            from fuzz.readers import TARGETS as guided

            target = {**guided, "calls": again, "layers": networks}[name]()
    else:
        target = ALL[name]()
    resource.setrlimit(resource.RLIMIT_AS, (_used() + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGPROF, _slow)
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
        signal.setitimer(signal.ITIMER_PROF, SLOW)  # on a machine with other work too
        try:
            try:
                target.run(data)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
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
