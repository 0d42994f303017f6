"""The environment of the command: what would steer or betray it is taken out, homes are new."""

from __future__ import annotations

import re
import site
from typing import TYPE_CHECKING

from conformance.lab.plan import LAB_VARIABLE
from conformance.secrecy import names_a_secret

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_KEPT = {"ALLOW_DANGEROUS_LOCAL_HOST"}
_SCRUBBED = re.compile(
    r"""
    .*_PROXY | .*SSL_CERT_.* | .*_CA_BUNDLE | .*CA_CERTS.* | GIT_SSL_.*
    | (KOYEB|NUAGE|AGENTS_SDK|MISTRAL|AWS|GOOGLE|AZURE|DBUS)_.*
    | SSH_AUTH_SOCK | SSH_AGENT_PID | GPG_AGENT_INFO | DOCKER_HOST | DOCKER_CONTEXT | CONTAINER_HOST
    """,
    re.VERBOSE | re.IGNORECASE,
)


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """Give `environ` without proxies, trust stores, credentials and the addresses of agents."""
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or not (_SCRUBBED.fullmatch(name) or names_a_secret(name))
    }


def inside(environ: Mapping[str, str], *, scratch: Path, lab: Path, bundle: Path) -> dict[str, str]:
    """Give the environment of a command in the lab, and make the folders that it names.

    Args:
        environ: the caller's variables.
        scratch: where the throwaway folders are made.
        lab: the lab's folder.
        bundle: certificates to trust instead of the system's.
    """
    result = scrubbed(environ)
    if site.ENABLE_USER_SITE:
        # Packages of the account are found through HOME, which is about to change.
        result.setdefault("PYTHONUSERBASE", site.getuserbase())
    home = scratch / "home"
    folders = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_RUNTIME_DIR": scratch / "run",
        "TMPDIR": scratch / "tmp",
        "TMP": scratch / "tmp",
        "TEMP": scratch / "tmp",
    }
    for name, folder in folders.items():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        result[name] = str(folder)
    result["SSL_CERT_FILE"] = str(bundle)
    result[LAB_VARIABLE] = str(lab)
    return result
