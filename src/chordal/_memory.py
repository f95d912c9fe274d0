"""How much memory there is, and how much of it an answer may take."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path

#: What an answer may take of the memory that is available, if no limit is given.
SHARE = 0.5
#: What `auto` lets an exact method take: the same on every machine that has it.
AUTO_LIMIT = 1e9
_UNKNOWN = 4e9  # where nothing can be found out
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@cache
def default_memory_limit() -> float:
    """Half of the memory that was available when this was first asked, in bytes.

    Asked once, so that what a process answers does not depend on what it did before.
    """
    return SHARE * available_memory()


def auto_memory_limit() -> float:
    """What `auto` lets an exact method take: 1 GB, or less if that is not there."""
    return min(AUTO_LIMIT, default_memory_limit())


def available_memory() -> float:
    """Bytes that this process may still take: of the machine, its control group and RLIMIT_AS.

    >>> available_memory() > 0
    True
    """
    known = [_of_machine(), _of_group(), _of_process()]
    return max(1.0, min((size for size in known if size is not None), default=_UNKNOWN))


def parse_size(text: str) -> float:
    """Bytes as people write them.

    >>> parse_size("500M"), parse_size("2 GB"), parse_size("1e9")
    (500000000.0, 2000000000.0, 1000000000.0)
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    try:
        size = float(found[1]) * _UNITS[found[2].upper()] if found else 0.0
    except ValueError:  # two points
        size = 0.0
    if not 0.0 < size < float("inf"):
        raise ValueError(f"a size must be a number above 0 such as 500M or 2G, got {text!r}")
    return size


def size_of(n_bytes: float) -> str:
    """Bytes as people read them.

    >>> size_of(2**31), size_of(100), size_of(10**20)
    ('2.1 GB', '100 B', '100,000,000.0 TB')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:,.1f} {unit}"
    return f"{int(n_bytes)} B"


def _of_machine() -> float | None:
    found = re.search(r"^MemAvailable:\s*(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    if found:
        return 1024.0 * int(found[1])
    if sys.platform == "win32":
        return _of_windows()
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):  # macOS knows the second only
        if pages in os.sysconf_names:
            return float(os.sysconf(pages)) * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_windows() -> float | None:
    import ctypes

    status = (ctypes.c_ulonglong * 8)()  # MEMORYSTATUSEX: its length, then eight bytes a field
    status[0] = ctypes.sizeof(status)
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(status):  # type: ignore[attr-defined]
        return None
    return float(status[2])


def _of_group() -> float | None:
    """What the control group leaves, of version 2 or 1; the innermost that says something."""
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            roots, names = Path("/sys/fs/cgroup"), ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            roots = Path("/sys/fs/cgroup/memory")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        for folder in (roots / path.lstrip("/"), roots):
            limit, used = (_text(folder / name).strip() for name in names)
            if limit.isdigit() and used.isdigit():
                cached = re.search(
                    r"^(?:total_)?inactive_file (\d+)", _text(folder / "memory.stat"), re.M
                )
                return float(int(limit) - int(used) + (int(cached[1]) if cached else 0))
    return None


def _of_process() -> float | None:
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _text("/proc/self/statm").split()
    used = int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0
    return float(limit - used)


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
