"""SciPy's linear programs, interruptible by Ctrl-C.

HiGHS does not check signals while it runs, and SciPy cannot stop it. So it never runs in the
calling thread, which waits and can be interrupted:

- For the first `SHORT` seconds, enough for most programs, it runs in a thread. After Ctrl-C the
thread continues until this limit. The same holds for a `time_limit` of at most `LONG` seconds.
- Longer programs are restarted in another Python process, which Ctrl-C kills.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from math import inf
from typing import TYPE_CHECKING, Any

from chordal._limits import check_time, seconds_left
from chordal._optional import needed

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

SHORT, LONG = 3.0, 10.0  # seconds; another process takes some 0.5 to start
_LIMIT = 1  # the status where time was over
_STEP = 0.05

_PROCESS = """
import pickle, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
sys.path[:], name, arguments = pickle.load(sys.stdin.buffer)
import scipy.optimize
pickle.dump(getattr(scipy.optimize, name)(**arguments), sys.stdout.buffer)
"""


def solved(name: str, arguments: dict[str, Any], options: dict[str, float]) -> OptimizeResult:
    """The result of `linprog` or `milp` of scipy.optimize, within the remaining time."""
    check_time()
    limit = seconds_left()
    with needed("scipy", f"inference by {name}"):
        import scipy.optimize

    def call(seconds: float) -> OptimizeResult:
        run = getattr(scipy.optimize, name)
        return run(**arguments, options={**options, "time_limit": seconds})

    if limit == inf:
        result = _in_thread(call, SHORT)
        if result.status != _LIMIT:
            return result
    elif limit <= LONG:
        return _in_thread(call, limit)
    return _in_process(name, {**arguments, "options": {**options, "time_limit": limit}})


def _in_thread(call: Any, seconds: float) -> OptimizeResult:
    ended: list[OptimizeResult | BaseException] = []

    def run() -> None:
        try:
            ended.append(call(seconds))
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run, name="chordal", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_STEP)  # without a limit, some systems hear no signal
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


def _in_process(name: str, arguments: dict[str, Any]) -> OptimizeResult:
    with subprocess.Popen(
        [sys.executable, "-c", _PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((sys.path, name, arguments), process.stdin)
            process.stdin.close()
            answer = process.stdout.read()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(f"the process that runs {name} ended with code {process.returncode}")
    result: OptimizeResult = pickle.loads(answer)
    return result
