"""Files of a container, as its commands see them: no path is looked up anywhere else."""

from __future__ import annotations

import errno
import posixpath
from typing import TYPE_CHECKING

from sandboxes.docker_container import WORKSPACE

if TYPE_CHECKING:
    from sandboxes.docker_container import Container

_SECONDS = 120.0
# What the C library calls the errors, which is all that a shell tells.
_ERRORS: dict[str, tuple[type[OSError], int]] = {
    "Is a directory": (IsADirectoryError, errno.EISDIR),
    "No such file or directory": (FileNotFoundError, errno.ENOENT),
    "Not a directory": (FileNotFoundError, errno.ENOENT),
    "Directory nonexistent": (FileNotFoundError, errno.ENOENT),
    "nonexistent directory": (FileNotFoundError, errno.ENOENT),  # BusyBox
    "File exists": (FileNotFoundError, errno.ENOENT),  # a parent is there, and is no folder
    "No space left on device": (OSError, errno.ENOSPC),
    "Disk quota exceeded": (OSError, errno.EDQUOT),
    "Input/output error": (OSError, errno.EIO),
    "File too large": (OSError, errno.EFBIG),
}


def read(container: Container, path: str) -> bytes:
    """Read a whole file; see `RunningSandbox.read_file`."""
    answer = container.ask("read", [_place(path)], seconds=_SECONDS)
    if answer.word:
        raise _error(answer.word, path)
    return answer.data


def write(container: Container, path: str, data: bytes) -> None:
    """Write a whole file, so that no reader sees a part; see `RunningSandbox.write_file`."""
    arguments = [_place(path), str(len(data))]
    answer = container.ask("write", arguments, seconds=_SECONDS, data=data)
    if answer.word:
        raise _error(answer.word, path)


def _place(path: str) -> str:
    if not isinstance(path, str):
        raise TypeError(f"path is of type {type(path).__name__}; pass text")
    if "\0" in path:
        raise PermissionError(errno.EPERM, "no file has a NUL in its name", path)
    try:
        path.encode()
    except UnicodeEncodeError:
        fact = "the engine cannot be given a lone surrogate in a path"
        raise PermissionError(errno.EPERM, fact, path) from None
    return posixpath.join(WORKSPACE, path)


def _error(word: str, path: str) -> OSError:
    kind, number = _ERRORS.get(word, (PermissionError, errno.EPERM))
    return kind(number, word, path)
