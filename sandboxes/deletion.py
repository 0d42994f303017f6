"""Deleting a folder by its descriptor: no link is followed and no mount is entered."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from contextlib import suppress

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN = 0o700
_ROUNDS = 5


def empty_folder(folder: int) -> None:
    """Delete all that is in an open folder.

    A folder in it is emptied of files, and what folders it holds are moved up beside it:
    so no depth is too deep, and at most two descriptors are open.

    Raises:
        OSError: Something could not be deleted, such as a mount, or somebody's own file.
    """
    mount = _mount(folder)
    for attempt in range(_ROUNDS):
        try:
            while names := os.listdir(folder):
                for name in names:
                    _delete(name, folder, mount)
        except FileNotFoundError:
            # Somebody else is deleting too, or writes on; neither can go on for ever.
            if attempt == _ROUNDS - 1:
                raise
        else:
            return


def _delete(name: str, top: int, mount: tuple[int, str]) -> None:
    """Delete an entry of the topmost folder; what folders it holds come to lie there."""
    if _unlinked(name, top):
        return
    folder = _opened(name, top)
    try:
        if _mount(folder) != mount:
            raise OSError(errno.EXDEV, "another file system is mounted here", name)
        for inner in os.listdir(folder):
            if not _unlinked(inner, folder) and not _removed(inner, folder):
                os.rename(inner, uuid.uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _unlinked(name: str, folder: int) -> bool:
    """Delete what is no folder; a link is deleted itself."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _removed(name: str, folder: int) -> bool:
    """Delete a folder if it is empty."""
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            _own(name, folder)  # to be moved, it must be ours to write to
            return False
        raise
    return True


def _opened(name: str, folder: int) -> int:
    _own(name, folder)
    return os.open(name, FOLDER, dir_fd=folder)


def _own(name: str, folder: int) -> None:
    """Make a folder one that its owner may empty: a command may have locked itself out."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if found.st_mode & _OWN == _OWN or not hasattr(os, "O_PATH"):
        return
    # Not by its name, which could have become a link by now.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        with suppress(OSError):  # what then cannot be deleted says so
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(found.st_mode) | _OWN)
    finally:
        os.close(handle)


def _mount(folder: int) -> tuple[int, str]:
    """Which file system, and which mount of it: a folder may be mounted into itself."""
    device = os.fstat(folder).st_dev
    with suppress(OSError), open(f"/proc/self/fdinfo/{folder}", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("mnt_id:"):
                return device, line.split()[1]
    return device, ""
