"""The command that writes certificates for people and containers."""

from __future__ import annotations

import ssl
import stat
from typing import TYPE_CHECKING

from conformance.lab.certs import KINDS, main

if TYPE_CHECKING:
    from pathlib import Path


def test_a_set_of_certificates_is_written(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"ca", *KINDS}
    ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    for kind in KINDS:
        path = tmp_path / f"{kind}.pem"
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
