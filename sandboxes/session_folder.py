"""The private folder of one session under the system's temporary folder.

Nobody but its owner may have prepared what a session finds there, so every step
goes through descriptors that follow no link, and what a sandbox could not have
made itself is taken out before the session sees it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError, SandboxStartError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ID_LENGTH = 128

_log = logging.getLogger(__name__)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_ATTEMPTS = 5


def unusable_id(text: object) -> str:
    """Say why an id cannot name a folder; an empty text if it can."""
    if not isinstance(text, str):
        return f"is of type {type(text).__name__}"
    if not text.strip():
        return "is empty"
    if len(text) > MAX_ID_LENGTH:
        return f"is longer than {MAX_ID_LENGTH} characters"
    if not text.isprintable():
        return "has a control character"
    if "/" in text or "\\" in text or text in (".", ".."):
        return "is a path"
    return ""


def folder_name(prefix: str, ids: tuple[str | None, ...]) -> str:
    """Name a session's folder after its ids.

    The readable part is for people; the digest keeps ids apart that differ only in
    case, in normal form, or in where one ends and the next begins.
    """
    readable = [re.sub(r"[^A-Za-z0-9_]+", "-", part)[:40] for part in ids if part is not None]
    digest = hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:32]
    return "-".join([prefix, *readable, digest])


class SessionFolder:
    """An open, locked folder, `0700`, with subfolders.

    Attributes:
        path: Where it is.
    """

    def __init__(self, name: str, subfolders: tuple[str, ...]) -> None:
        """Create the folder, or take it over where an earlier session left it.

        Raises:
            SandboxStartError: Another session holds it, or it is not our own.
        """
        self._name = name
        self._parent = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY)
        self.path = Path(tempfile.gettempdir()).resolve() / name
        try:
            self._folder = self._take()
        except BaseException:
            os.close(self._parent)
            raise
        try:
            for subfolder in subfolders:
                self._prepare(subfolder)
        except BaseException:
            self.release(delete=False)
            raise

    def _refused(self, fact: str, remedy: str) -> SandboxStartError:
        return SandboxStartError(f"the session's folder {self.path} {fact}; {remedy}")

    def _take(self) -> int:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._name, 0o700, dir_fd=self._parent)
            with contextlib.suppress(FileNotFoundError):  # its last session just deleted it
                folder = self._open(self._name, self._parent)
                try:
                    self._lock(folder)
                    here = os.stat(self._name, dir_fd=self._parent, follow_symlinks=False)
                except BaseException:
                    os.close(folder)
                    raise
                if os.path.samestat(here, os.fstat(folder)):
                    return folder
                os.close(folder)
        raise self._refused("is deleted again and again", "start another session")

    def _open(self, name: str, parent: int) -> int:
        try:
            folder = os.open(name, _FOLDER, dir_fd=parent)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._refused(
                f"is or holds no folder of ours at {name!r} ({error.strerror})",
                "remove what is there",
            ) from error
        found = os.fstat(folder)
        # A command may have opened the workspace to all, which the folder around it,
        # that no command sees, still keeps private.
        open_to_others = parent == self._parent and stat.S_IMODE(found.st_mode) & 0o077
        if found.st_uid != os.geteuid() or open_to_others:
            os.close(folder)
            raise self._refused(
                f"belongs to somebody else or is open to others at {name!r}", "remove what is there"
            )
        return folder

    def _lock(self, folder: int) -> None:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._refused(
                "is in use by another session", "close that one first, or use another id"
            ) from None

    def _prepare(self, name: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self._folder)
        found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            os.chmod(name, 0o700, dir_fd=self._folder)  # a command may have locked itself out
        subfolder = self._open(name, self._folder)
        try:
            for entry, folder in _foreign_entries(subfolder):
                _log.warning("%s: removed %r, which no session made", self.path, entry)
                os.unlink(entry, dir_fd=folder)
        finally:
            os.close(subfolder)

    def release(self, *, delete: bool) -> None:
        """Let the next session in; with `delete`, remove the folder first."""
        try:
            if delete:
                self._delete()
        finally:
            os.close(self._folder)
            os.close(self._parent)

    def _delete(self) -> None:
        for attempt in range(_ATTEMPTS):
            for _ in _walk(self._folder):  # makes each folder one that we may empty
                pass
            try:
                shutil.rmtree(self._name, dir_fd=self._parent)
            except FileNotFoundError:
                return  # somebody tidied up the temporary folder
            except OSError as error:
                # What a last command that would not end wrote meanwhile.
                if attempt == _ATTEMPTS - 1:
                    raise SandboxError(
                        f"the session's folder {self.path} could not be deleted "
                        f"({error.strerror}); delete it by hand"
                    ) from error
            else:
                return


def _walk(top: int) -> Iterator[tuple[list[str], int]]:
    """Yield the entries of each folder below, links and all, with its descriptor."""
    for _, folders, files, folder in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        for name in folders:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                os.chmod(name, stat.S_IMODE(mode) | 0o700, dir_fd=folder)
        yield folders + files, folder


def _foreign_entries(top: int) -> Iterator[tuple[str, int]]:
    """Yield what a sandbox's own commands cannot have made.

    The interpreter lets a command make links to below their own folder only, and
    neither pipes nor devices, on which a reader could block for ever.
    """
    for names, folder in _walk(top):
        for name in names:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                target = Path(os.readlink(name, dir_fd=folder))
                if target.is_absolute() or ".." in target.parts:
                    yield name, folder
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield name, folder
