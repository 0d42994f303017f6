"""A search of the inside for a secret, that counts only if it finds what was planted there."""

from __future__ import annotations

import json
import secrets
import shlex
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.probes.traces import found_in, spellings
from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.subject.facade import Box

_SECONDS = 60.0
_SHOWN = ("/proc/self/environ", "/proc/1/environ", "/proc/self/cmdline", "/etc/environment")
# Without python3 the shell shows all that it can, and the search is made outside.
_DUMP = """
env; set; export -p
for file in $(find . /tmp /etc /home /root -type f 2>/dev/null | head -400); do cat "$file"; done
echo end=$((40 + 2))
"""


def places(box: Box, lab: Lab, *wanted: str) -> list[str]:
    """Search everything that commands and `read_file` can see.

    Returns:
        Where one of the secrets was found, in one encoding or another.

    Raises:
        NotRun: The search did not find what was planted for it.
    """
    found = [f"read_file({place!r})" for place in _SHOWN if found_in(wanted, _read(box, place))]
    return found + (_by_python(box, lab, wanted) if _has_python(box) else _by_shell(box, wanted))


def _read(box: Box, place: str) -> bytes:
    with suppress(OSError):
        return box.read_file(place)
    return b""


def _has_python(box: Box) -> bool:
    ran = box.execute("python3 -I -c 'import json, os, stat; print(40 + 2)'", timeout_seconds=20)
    return "42" in ran.stdout.split()


def _disguised(text: bytes) -> str:
    return bytes(255 - byte for byte in text).hex()


def _by_python(box: Box, lab: Lab, wanted: Sequence[str]) -> list[str]:
    decoys = {name: _decoy() for name in ("a file", "a variable", "an argument")}
    in_base64 = next(text for name, text in spellings(decoys["a file"]).items() if "64" in name)
    box.write_file("decoy.txt", b"planted: " + in_base64)
    owned = [*wanted, *decoys.values()]
    sought = [(owner, text) for owner in owned for text in spellings(owner).values()]
    source = files("conformance.probes").joinpath("searcher.py").read_text(encoding="utf-8")
    told = json.dumps([_disguised(text) for _, text in sought])
    # The journal of the lab holds what arrived: it is no part of the sandbox.
    words = ["python3", "-I", "-c", source, told, json.dumps([str(lab.folder)])]
    line = shlex.join([*words, decoys["an argument"]])
    ran = box.execute(f"DECOY={decoys['a variable']} {line}", timeout_seconds=_SECONDS)
    finds = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith(("[", '"'))]
    hits = [(place, sought[number][0]) for place, number in finds[:-1]]
    missed = [name for name, decoy in decoys.items() if decoy not in [owner for _, owner in hits]]
    if missed or finds[-1:] != ["done"]:
        raise NotRun(
            f"the search inside did not find {' and '.join(missed) or 'its own end'}, planted "
            f"for it ({ran.stderr.strip()[-200:]!r}), so that it shows nothing"
        )
    return list(dict.fromkeys(place for place, owner in hits if owner in wanted))


def _by_shell(box: Box, wanted: Sequence[str]) -> list[str]:
    decoys = {name: _decoy() for name in ("a file", "a variable")}
    box.write_file("decoy.txt", decoys["a file"].encode())
    line = f"export DECOY={decoys['a variable']}{_DUMP}"
    shown = box.execute(line, timeout_seconds=_SECONDS)
    missed = [name for name, decoy in decoys.items() if decoy not in shown.stdout]
    if missed or "end=42" not in shown.stdout:
        raise NotRun(
            f"the shell did not show {' and '.join(missed) or 'its end'}, planted for a search, "
            "so that it shows nothing; put python3 inside"
        )
    return ["what a shell shows"] if found_in(wanted, shown.stdout + shown.stderr) else []


def _decoy() -> str:
    return f"decoy{secrets.token_hex(14)}"


def outputs(ran: Sequence[object]) -> str:
    """All that commands showed."""
    return "\n".join(f"{getattr(one, 'stdout', '')}\n{getattr(one, 'stderr', '')}" for one in ran)
