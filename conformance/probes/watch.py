"""An observer of what Python code does to the world, by the interpreter's audit events."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.verdicts import HarnessError

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

# What creates, starts, calls or sends; reading files and importing modules does not.
_DEEDS = frozenset(
    {
        "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.startfile", "os.system",
        "subprocess.Popen", "_thread.start_new_thread", "socket.bind", "socket.connect",
        "socket.getaddrinfo", "socket.gethostbyaddr", "socket.gethostbyname", "socket.sendmsg",
        "socket.sendto", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename",
        "os.rmdir", "os.symlink", "os.truncate", "shutil.rmtree", "tempfile.mkdtemp",
        "tempfile.mkstemp", "os.mkfifo", "os.mknod",
    }
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_watching: list[Watch] = []
_installed: list[bool] = []


class Watch:
    """Note the deeds of this process, in any of its threads, while the block runs.

    Attributes:
        deeds: One readable line each, in order.
    """

    def __init__(self) -> None:
        self.deeds: list[str] = []

    def __enter__(self) -> Self:
        # An audit hook cannot be taken out again, so there is one for the whole process.
        if not _installed:
            sys.addaudithook(_note)
            _installed.append(True)
        _watching.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _watching.remove(self)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if not _watching:
        return
    if event == "open":
        path, _, flags = arguments
        # A first import compiles modules; that is no deed of the constructor.
        if not isinstance(flags, int) or not flags & _WRITING or ".pyc" in str(path):
            return
    elif event not in _DEEDS or "__pycache__" in str(arguments[:1]):
        return
    if _is_importing():
        return
    shown = ", ".join(repr(argument)[:80] for argument in arguments[:2])
    for watch in _watching:
        watch.deeds.append(f"{event}({shown})")


def _is_importing() -> bool:
    """Whether this thread is in the middle of an import, whose deeds are the module's own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def prove_watching() -> None:
    """Show that the observer is awake: a harmless deed is seen, and idleness is not.

    Raises:
        HarnessError: It is not.
    """
    with tempfile.TemporaryDirectory() as folder:
        with Watch() as idle:
            pass
        with Watch() as busy:
            (Path(folder) / "seen").mkdir()
    if idle.deeds or not any(deed.startswith("os.mkdir") for deed in busy.deeds):
        raise HarnessError(
            f"the audit hook saw {idle.deeds} while idle and {busy.deeds} for one mkdir; "
            "run on CPython without other audit hooks"
        )
