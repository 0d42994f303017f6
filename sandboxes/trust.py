"""Which certificates the inside trusts, where that is what this process trusts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxStartError

if TYPE_CHECKING:
    from pathlib import Path

CA_VARIABLE = "SSL_CERT_FILE"


def check_trust(sandbox: str, ca_bundle: Path | None) -> None:
    """Refuse certificates that the process itself does not trust.

    To set the variable here would change what everything else in the process trusts.

    Args:
        sandbox: Name of the sandbox's class.
        ca_bundle: What a session asks for; see `OpenRequest`.

    Raises:
        SandboxStartError: The environment variable `SSL_CERT_FILE` names another file.
    """
    if ca_bundle is None:
        return
    trusted = os.environ.get(CA_VARIABLE)
    if trusted is None or os.path.realpath(trusted) != os.path.realpath(ca_bundle):
        raise SandboxStartError(
            f"{sandbox} trusts only what its process trusts, not {ca_bundle}; "
            f"set {CA_VARIABLE} to it before the process starts"
        )
