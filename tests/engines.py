"""Whether the lab can start a container engine on this machine, for tests that need one."""

from __future__ import annotations

import os
import shutil

from conformance.lab.engine_place import images_folder


def missing() -> str:
    """What is missing for an engine in the lab; nothing if it can be had."""
    if os.geteuid() != 0:
        return "only root starts an engine in the lab"
    if shutil.which("dockerd") is None:
        return "dockerd is needed (docker.io)"
    images = images_folder(os.environ)
    if not all((images / f"{name}.tar").exists() for name in ("debian", "busybox")):
        return "images are needed: python fixtures/images/make.py"
    return ""


def without_crun() -> str:
    """What is missing for containers that crun starts; nothing if it can be had."""
    return "" if shutil.which("crun") else "crun is needed (crun)"
