"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_BY_NUMBER = os.chmod in os.supports_fd
#: Error numbers of a disk, a file or a share that may not grow.
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when all is written.

    The bytes go to a temporary file in the same folder, which is flushed to the disk and renamed at
    the end of the ``with`` block. If anything fails, a full disk or Ctrl-C included, the temporary
    file is removed and what was at `path` before is still there, unchanged. Where the system can
    (Linux), the temporary file has no name until it is whole: a process that is killed while it
    writes leaves nothing.

    A link is followed, and permissions of an old file are kept. What is not a regular file, such as
    ``/dev/stdout`` or a named pipe, is written to directly.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "model")
    >>> with atomic_write(path) as file:
    ...     file.write(b"weights")
    7
    >>> os.listdir(folder.name)
    ['model']
    >>> folder.cleanup()
    """
    if _is_special(path):
        try:
            with open(path, "wb") as file:
                yield file
        except OSError as error:
            if error.errno in FULL:  # it comes without a name
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error
            raise
        return
    final = os.path.realpath(path)
    folder, name = os.path.split(final)
    temporary = os.path.join(folder, f"{_mark(name)}{os.urandom(8).hex()}.tmp")
    try:
        with _opened(folder, temporary) as file:
            if os.path.exists(final):
                os.chmod(file.fileno() if _BY_NUMBER else temporary, os.stat(final).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not os.path.exists(temporary):
                _give_name(file, temporary)
        os.replace(temporary, final)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and (
            error.filename in (temporary, folder) or error.errno in FULL
        ):
            # The name that the user knows; a full disk's error comes without any.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    _flush_folder(folder)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now what `atomic_write` would raise when it opens a file there.

    >>> check_writable("no such folder/model")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no such folder/model'
    """
    if _is_special(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return
    folder, name = os.path.split(os.path.realpath(path))
    temporary = os.path.join(folder, f"{_mark(name)}{os.urandom(8).hex()}.tmp")
    try:
        with _opened(folder, temporary):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Whether it is written to directly; refuses folders and empty names."""
    if not os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, "cannot write to a file without a name", "")
    if os.path.isdir(path):
        raise IsADirectoryError(f"cannot write to {os.fspath(path)}: it is a folder")
    opened = os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    return opened or (os.path.exists(path) and not os.path.isfile(path))


def _opened(folder: str, temporary: str) -> BinaryIO:
    """A new file: without a name, or with this one."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # not every file system can; what else is wrong, open says
            return open(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b")
    # Not tempfile: its files can be read by their owner alone, whatever the umask.
    return open(temporary, "xb")


def _give_name(file: BinaryIO, name: str) -> None:
    """Give an open file without a name one."""
    number = file.fileno()
    try:
        # With a folder, which does not matter here, Python follows the link; else it does not.
        os.link(f"/proc/self/fd/{number}", name, src_dir_fd=number, follow_symlinks=True)
    except OSError:  # no /proc, or names are not allowed: what is written must not be lost
        file.seek(0)
        with open(name, "xb") as copy:
            os.chmod(name, os.fstat(number).st_mode & 0o777)
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())


def _mark(name: str) -> str:
    """How names of temporary files begin; names may have up to 255 bytes."""
    return f".chordal-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}-"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete temporary files that killed writers of this file left; call it when none is writing.

    >>> remove_leftovers("a file in this folder")
    """
    folder, name = os.path.split(os.path.realpath(path))
    for own in os.listdir(folder):
        if own.startswith(_mark(name)) and own.endswith(".tmp"):
            with suppress(OSError):
                os.unlink(os.path.join(folder, own))


def _flush_folder(folder: str) -> None:
    """Make a rename last through a power failure, where the system can."""
    with suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
