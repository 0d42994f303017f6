"""What the caller hands to the launcher, and what the lab's folder tells those inside."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Mode = Literal["sealed", "loopback"]

LAB_VARIABLE = "SANDBOX_CONFORMANCE_LAB"
FACTS_NAME = "lab.json"
CONTROL_NAME = "control.sock"
BUNDLE_NAME = "ca.pem"
JOURNAL_NAME = "journal.jsonl"
LOCK_NAMES = ("gate.lock", "room.lock")
CANARY_NAME = "canary"
LOCK_NAME = "launcher.lock"
ADDRESSES_LOCK_NAME = "addresses.lock"


@dataclass(frozen=True)
class Plan:
    """One launch, as sent to the launcher.

    Args:
        command: what to run inside.
        mode: how.
        cwd: working folder of the command.
        results: folders that stay the real ones.
        environ: variables of the command, before scrubbing.
        caller: process id of the caller; the launcher ends with it.
        status: descriptor that the launcher reports on: one line.
        pass_fds: descriptors of the command besides the standard three.
        leave_sockets: daemons' sockets that are not masked.
    """

    command: tuple[str, ...]
    mode: Mode
    cwd: str
    results: tuple[str, ...]
    environ: Mapping[str, str]
    caller: int
    status: int = -1
    pass_fds: tuple[int, ...] = ()
    leave_sockets: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Give the text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan back."""
        fields = json.loads(text)
        for name in ("command", "results", "pass_fds", "leave_sockets"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


@dataclass(frozen=True)
class Facts:
    """What a process inside has to know of its lab: the content of `lab.json`.

    Args:
        mode: "sealed" or "loopback".
        namespaces: ids of the lab's namespaces, by kind; empty where there are none.
        host_namespaces: those of the caller.
        proxies: URL of each forward proxy, by kind.
        missing: what this lab cannot show, each with the reason and the remedy.
        hidden: folders that could not be put under an overlay and are not visible.
        engine: socket at which the lab's container engine is asked for; empty where none is.
        engine_missing: why there is none, and what to do.
        engine_keeper: process that all of the engine's descend from.
        services: sockets at which services of the lab's own are asked for, by their names.
        service_keepers: processes that all of theirs descend from.
        own_engine: address of the person's own engine, where the lab offers to use that.
        place: name of all sites in a lab without names; empty where each has its address.
        engine_images: folder of the machine that the engine loads images from.
    """

    mode: Mode
    namespaces: Mapping[str, str] = field(default_factory=dict)
    host_namespaces: Mapping[str, str] = field(default_factory=dict)
    proxies: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    engine: str = ""
    engine_missing: str = ""
    engine_keeper: int = 0
    engine_images: str = ""
    services: Mapping[str, str] = field(default_factory=dict)
    service_keepers: tuple[int, ...] = ()
    own_engine: str = ""
    place: str = "localhost"

    def write(self, folder: Path) -> None:
        """Put the facts into the lab's folder."""
        (folder / FACTS_NAME).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Facts:
        """Read the facts of the lab in `folder`.

        Raises:
            LabError: there is no lab there.
        """
        try:
            fields = json.loads((folder / FACTS_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError) as cause:
            raise LabError(
                f"{folder} holds no laboratory ({cause}); start the command through run_in_lab"
            ) from cause
        for name in ("hidden", "service_keepers"):
            fields[name] = tuple(fields[name])
        return cls(**fields)
