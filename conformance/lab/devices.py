"""A /dev of the lab's own: a rename over /dev/null, or a byte to a disk, stays inside."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

SCRATCH = Path("/dev/shm")  # noqa: S108 - covered by a tmpfs of our own before use

_NEEDED = ("null", "zero", "full", "random", "urandom", "tty")
# A sandbox may be built on these; they keep nothing beyond the process that opened them.
_WELCOME = ("kvm", "fuse", "net/tun")
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


def mount_devices() -> None:
    """Cover /dev with a small one of our own, or leave it where the kernel refuses that."""
    with suppress(OSError):
        # Built aside and moved at last: a half-made /dev would be worse than the present one.
        kernel.mount("sandbox-conformance", str(SCRATCH), "tmpfs", kernel.MS_NOSUID, "mode=755")
        try:
            fill(SCRATCH, (*_NEEDED, *_WELCOME))
            kernel.mount(str(SCRATCH), "/dev", None, kernel.MS_MOVE)
        except OSError:
            kernel.unmount(str(SCRATCH))
            raise


def mount_scratch() -> None:
    """Cover /dev/shm with a fresh tmpfs.

    Raises:
        OSError: it cannot be mounted.
    """
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("sandbox-conformance", str(SCRATCH), "tmpfs", flags, "mode=1777")


def fill(folder: Path, names: Iterable[str] = _NEEDED) -> None:
    """Put the machine's own devices of these names into a folder, and what goes with them.

    Raises:
        OSError: the kernel refused a mount.
    """
    for name in names:
        device, place = Path("/dev", name), folder / name
        if name in _WELCOME and not device.is_char_device():
            continue
        place.parent.mkdir(exist_ok=True)
        place.touch()
        kernel.mount(str(device), str(place), None, kernel.MS_BIND)
        with suppress(OSError):  # read-only as all of the host's, which does not stop a device
            kernel.set_read_only(str(place), on=True)
    for name, aim in _LINKS.items():
        os.symlink(aim, folder / name)
    (folder / "shm").mkdir()
    (folder / "pts").mkdir()
    flags = kernel.MS_NOSUID | kernel.MS_NOEXEC
    kernel.mount(
        "devpts", str(folder / "pts"), "devpts", flags, "newinstance,ptmxmode=0666,mode=620"
    )
