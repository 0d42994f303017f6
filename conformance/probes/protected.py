"""Files inside that hold a text, and who may read them."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.facade import Box

_SECONDS = 60.0
# Told as its complement, so that the search does not find itself.
_SOURCE = """
import json, os, stat, sys
sought = bytes(255 - byte for byte in bytes.fromhex(sys.argv[1]))
skipped = ["/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/bin", "/sbin"]
skipped += json.loads(sys.argv[2])
for folder, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in skipped]
    for name in names:
        path = os.path.join(folder, name)
        try:
            about = os.lstat(path)
            if not stat.S_ISREG(about.st_mode) or about.st_size > 1 << 20:
                continue
            with open(path, "rb") as file:
                if sought in file.read():
                    print(json.dumps([path, stat.S_IMODE(about.st_mode)]))
        except OSError:
            pass
print(json.dumps("done"))
"""


@dataclass(frozen=True)
class Found:
    """A file that holds it.

    Attributes:
        path: Where.
        mode: Its permissions.
    """

    path: str
    mode: int


def files_with(box: Box, lab: Lab, text: str) -> list[Found]:
    """Search all files inside that can be read, but for programs.

    Raises:
        NotRun: The search did not come to its end, or did not find what was planted for it.
    """
    planted = f"{text[::-1]}planted"
    box.write_file("planted.txt", planted.encode())
    for sought in (planted, text):
        found = _search(box, lab, sought)
        if sought == planted and not any(one.path.endswith("/planted.txt") for one in found):
            raise NotRun("the search inside did not find the file that was planted for it")
    return found


def _search(box: Box, lab: Lab, text: str) -> list[Found]:
    told = bytes(255 - byte for byte in text.encode()).hex()
    line = shlex.join(["python3", "-I", "-c", _SOURCE, told, json.dumps([str(lab.folder)])])
    ran = box.execute(line, timeout_seconds=_SECONDS)
    rows = [json.loads(row) for row in ran.stdout.splitlines() if row.startswith(("[", '"'))]
    if rows[-1:] != ["done"]:
        raise NotRun(f"the search inside did not end ({ran.stderr.strip()[-200:]!r})")
    return [Found(str(path), int(mode)) for path, mode in rows[:-1]]
