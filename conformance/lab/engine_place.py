"""Where container images wait for the lab's engine, and where it keeps what it made of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def engine_folder(environ: Mapping[str, str]) -> Path:
    """Give the folder of the account that survives runs: images, and data roots of engines."""
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(
        environ.get("HOME") or os.path.expanduser("~"), ".cache"
    )
    return Path(cache) / "sandbox-conformance" / "engine"


def images_folder(environ: Mapping[str, str]) -> Path:
    """Give where images are put as `docker save` writes them, a `.tar` each."""
    return engine_folder(environ) / "images"
