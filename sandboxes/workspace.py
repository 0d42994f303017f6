"""The folder on the host where a session works: found or made, kept or deleted.

Deleting is what can go wrong beyond repair. So a descriptor of the folder is held from
the start, what is deleted is that folder and no other that took its name, and whether it
holds something precious is asked at the start and again before the end.
"""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError, SandboxStartError
from sandboxes.deletion import FOLDER, empty_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_ATTEMPTS = 5


class Workspace:
    """An open folder that commands run in.

    Attributes:
        path: Where it is, without links.
    """

    def __init__(self, path: Path, folder: int, made: list[Path], *, delete: bool) -> None:
        """Hold a folder; `given` and `new` are what find one."""
        self.path = path
        self._folder = folder
        self._mode = stat.S_IMODE(os.fstat(folder).st_mode)
        self._made = made
        self._delete = delete

    @classmethod
    def given(cls, text: str, *, delete: bool) -> Workspace:
        """Take the folder that a user names; it is made if it is missing.

        Args:
            text: Its path; a relative one begins at the process's working folder.
            delete: Whether it is deleted at the end.

        Raises:
            SandboxStartError: It cannot be had, or must not be deleted.
        """
        if delete and not os.path.isabs(text):
            raise _must_not_delete(text, "it is not absolute")
        path = Path(os.path.realpath(text))
        made: list[Path] = []
        try:
            _make(path, made, 0o777)
            folder = os.open(path, FOLDER)
        except OSError as error:
            _unmake(made)
            raise SandboxStartError(
                f"the workspace {path} cannot be used ({error.strerror}); "
                "pass workspace= a folder of your own"
            ) from error
        precious = _precious(os.fstat(folder)) if delete else ""
        if precious:
            os.close(folder)
            raise _must_not_delete(text, f"it contains {precious}")
        return cls(path, folder, made, delete=delete)

    @classmethod
    def new(cls, base: Path, *, delete: bool) -> Workspace:
        """Make a private folder of a new name.

        Args:
            base: What it is made in; made if missing.
            delete: Whether it is deleted at the end, with the base if nothing else is in it.

        Raises:
            SandboxStartError: It cannot be made.
        """
        made: list[Path] = []
        try:
            path = _new_below(base, made)
            # Whoever is last removes the base: not always the one who made it.
            made = made if base in made else [*made, base]
            return cls(path, os.open(path, FOLDER), made, delete=delete)
        except OSError as error:
            _unmake(made)
            raise SandboxStartError(
                f"no workspace can be made in {base} ({error.strerror}); "
                "pass workspace= a folder that may be written to"
            ) from error

    def ready(self) -> Path:
        """Give the path, and make the folder again if a command deleted it.

        Raises:
            SandboxError: It cannot be made again.
        """
        try:
            os.makedirs(self.path, self._mode)
        except FileExistsError:
            return self.path
        except OSError as error:
            raise SandboxError(
                f"the workspace {self.path} was deleted, and cannot be made again "
                f"({error.strerror}); start another session"
            ) from error
        deleted, self._folder = self._folder, os.open(self.path, FOLDER)
        os.close(deleted)
        return self.path

    def release(self) -> None:
        """Let go of the folder, and delete it if it is to be deleted.

        Raises:
            SandboxError: It is another folder by now, holds something precious, or could
                not be deleted whole; in the first two cases nothing is deleted.
        """
        try:
            if self._delete:
                self._delete_it()
                _unmake(self._made)
        finally:
            os.close(self._folder)

    def _delete_it(self) -> None:
        held = os.fstat(self._folder)
        try:
            here = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return  # somebody tidied up
        if not os.path.samestat(here, held):
            raise self._undeleted("is no longer the folder that the session opened")
        precious = _precious(held)
        if precious:
            raise self._undeleted(f"contains {precious}")
        try:
            empty_folder(self._folder)
            # No link and no folder with anything in it can fall to this.
            os.rmdir(self.path)
        except OSError as error:
            where = f" at {error.filename!r}" if error.filename else ""
            raise SandboxError(
                f"the workspace {self.path} could not be deleted whole "
                f"({error.strerror}{where}); delete the rest by hand"
            ) from error

    def _undeleted(self, fact: str) -> SandboxError:
        return SandboxError(
            f"the workspace {self.path} {fact}, and nothing was deleted; delete it by hand"
        )


def _must_not_delete(text: str, fact: str) -> SandboxStartError:
    return SandboxStartError(
        f"the workspace {text!r} must not be deleted: {fact}; "
        "pass an absolute path to a folder of its own, or leave delete_on_cleanup out"
    )


def _make(path: Path, made: list[Path], mode: int) -> None:
    """Make a folder with its parents, and note which were missing."""
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent, made, mode)
    with suppress(FileExistsError):  # by somebody else, or a file, which opening tells
        os.mkdir(path, mode)
        made.append(path)


def _new_below(base: Path, made: list[Path]) -> Path:
    for attempt in range(_ATTEMPTS):
        try:
            _make(base, made, 0o700)
            # A name of its own, so that nothing of an earlier session is found there.
            return Path(tempfile.mkdtemp(prefix="session-", dir=base)).resolve()
        except FileNotFoundError:  # another session just removed the base
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _unmake(made: list[Path]) -> None:
    """Remove the folders that were made on the way, as far as they are empty."""
    for path in reversed(made):
        with suppress(OSError):
            os.rmdir(path)


def _precious(folder: os.stat_result) -> str:
    """Say what a folder contains that must never be deleted; an empty text if nothing."""
    for what, place in _places():
        # By what they are, not by how they are spelled: links and mounts have many names.
        for spelling in {os.path.abspath(place), os.path.realpath(place)}:
            for ancestor in (Path(spelling), *Path(spelling).parents):
                with suppress(OSError):
                    if os.path.samestat(os.stat(ancestor), folder):
                        return f"{what} {place}"
    return ""


def _places() -> Iterator[tuple[str, str]]:
    yield "the home folder", os.path.expanduser("~")
    with suppress(KeyError):  # an account without an entry
        yield "the account's home folder", pwd.getpwuid(os.geteuid()).pw_dir
    with suppress(FileNotFoundError):  # it was deleted
        yield "the working folder", os.getcwd()
