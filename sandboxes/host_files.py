"""Reading and writing files of the host for a sandbox that works on it."""

from __future__ import annotations

import errno
import os
import stat

from sandboxes.bare import suppress

# Where it runs inside, the imports are waited for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_PIECE = 1024 * 1024
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read(folder: Path | str, path: str) -> bytes:
    """Read a whole file.

    Args:
        folder: Where a relative path begins.
        path: The file.

    Raises:
        FileNotFoundError: There is none.
        IsADirectoryError: It is a folder.
        PermissionError: It may not be read, or is no regular file.
    """
    try:
        place = _place(folder, path)
        _check_regular(os.stat(place).st_mode, path)
        # Non-blocking: it may have become a FIFO since, or be one that the kernel plays.
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            _check_regular(os.fstat(descriptor).st_mode, path)
            return _all_of(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _in_words(error, path) from error


def write(folder: Path | str, path: str, data: bytes) -> None:
    """Write a whole file, so that no reader sees a part of it; missing parents are made.

    A link's target is written. An existing file keeps its mode, and its owner where that
    can be.

    Args:
        folder: Where a relative path begins.
        path: The file.
        data: What it holds afterwards.

    Raises:
        IsADirectoryError: The path is a folder.
        PermissionError: It may not be written, or is no regular file.
        FileNotFoundError: A parent is a file.
        OSError: There is no room.
    """
    try:
        if path.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        place = os.path.realpath(_place(folder, path))
        existing = None
        with suppress(FileNotFoundError):
            existing = os.stat(place)
            _check_regular(existing.st_mode, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _replace(place, data, existing)
    except FileExistsError as error:  # a parent is there, and is no folder
        raise FileNotFoundError(errno.ENOTDIR, "a parent is no folder", path) from error
    except OSError as error:
        raise _in_words(error, path) from error


def _place(folder: Path | str, path: str) -> str:
    if not isinstance(path, str):
        raise TypeError(f"path is of type {type(path).__name__}; pass text")
    if "\0" in path:
        raise PermissionError(errno.EPERM, "no file has a NUL in its name")
    return os.path.join(folder, path)


def _check_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", path)
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise PermissionError(errno.EPERM, f"is {kind}, which is neither read nor written", path)


def _all_of(descriptor: int) -> bytes:
    # Not by its size: the files that the kernel plays have none.
    pieces = []
    while piece := os.read(descriptor, _PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def _replace(place: str, data: bytes, existing: os.stat_result | None) -> None:
    part = os.path.join(os.path.dirname(place), f".{os.urandom(16).hex()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) or 0 :]
            if existing is not None:
                _dress_as(file.fileno(), existing)
        os.replace(part, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


def _dress_as(descriptor: int, existing: os.stat_result) -> None:
    with suppress(PermissionError):  # only root gives files away
        os.fchown(descriptor, existing.st_uid, existing.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(existing.st_mode))


def _in_words(error: OSError, path: str) -> OSError:
    """The error that the contract names, with the path as the caller wrote it."""
    fact = error.strerror or str(error)
    number = error.errno or errno.EPERM
    if number in _MISSING:
        return FileNotFoundError(errno.ENOENT, fact, path)
    if number == errno.EISDIR:
        return IsADirectoryError(errno.EISDIR, fact, path)
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EMFILE, errno.ENFILE):
        return OSError(number, fact, path)
    return PermissionError(errno.EPERM, fact, path)
