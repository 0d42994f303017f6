"""Which certificates the inside trusts, where that is what this process trusts."""

from __future__ import annotations

import os
from pathlib import Path

from sandboxes.contract import SandboxStartError

CA_VARIABLE = "SSL_CERT_FILE"

CA_FILE_VARIABLES = (
    CA_VARIABLE,  # openssl, Python, Go, Ruby
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
)
"""Variables that name the file of certificates that a program trusts."""

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where Linux keeps the certificates that clients trust by themselves."""


def system_certificates() -> bytes:
    """Give the certificates that this machine's clients trust by themselves, as PEM."""
    found = (Path(path).read_bytes() for path in SYSTEM_BUNDLES if os.path.exists(path))
    return next(found, b"")


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
