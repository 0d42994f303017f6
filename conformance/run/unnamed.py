"""Files without a name: they are gone with their last descriptor, whoever empties a folder."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


class Unnamed:
    """A file of this process that processes below it reach by a path.

    Attributes:
        path: Where it can be opened while this process lives.
    """

    def __init__(self) -> None:
        if sys.platform == "linux":
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
            self.path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
        else:
            named = tempfile.NamedTemporaryFile()  # noqa: SIM115 - lives as long as this object
            self._file, self.path = named, named.name

    def write(self, text: str) -> None:
        """Replace its content."""
        Path(self.path).write_text(text, encoding="utf-8")
