"""Certificates of the lab: its authorities, and leaves that are wrong in one way each.

`python -m conformance.lab.certs [FOLDER]` writes a set for people and containers.
"""

from __future__ import annotations

import argparse
import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import idna
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

KINDS = ("good", "expired", "not-yet-valid", "wrong-host", "unknown-ca", "self-signed")

_WRONG_HOST = "wrong-host.invalid"
_LONG_AGO = datetime.timedelta(days=30)
_A_DAY = datetime.timedelta(days=1)


class SelfSigned:
    """A leaf that nobody but itself vouches for.

    Args:
        names: host names and addresses that it is for.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "self-signed")])
        now = datetime.datetime.now(tz=datetime.UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _A_DAY)
            .not_valid_after(now + _LONG_AGO)
            .add_extension(x509.SubjectAlternativeName(list(map(_general_name, names))), False)
            .sign(self._key, hashes.SHA256())
        )

    def chain_pem(self) -> bytes:
        """Give key and certificate."""
        key = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        return key + self._certificate.public_bytes(serialization.Encoding.PEM)

    def configure_cert(self, context: ssl.SSLContext) -> None:
        """Have `context` present this leaf."""
        with trustme.Blob(self.chain_pem()).tempfile() as path:
            context.load_cert_chain(path)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Authorities:
    """The authority that the lab's bundle holds, and one that nobody trusts."""

    def __init__(self) -> None:
        self._trusted = trustme.CA(organization_name="sandbox-conformance lab")
        self._unknown = trustme.CA(organization_name="an authority that nobody trusts")

    def write_bundle(self, path: Path) -> None:
        """Write the certificate that clients trust."""
        self._trusted.cert_pem.write_to_path(path)

    def issue(self, kind: str, names: Sequence[str]) -> trustme.LeafCert | SelfSigned:
        """Make a leaf for `names`, host names and addresses.

        Args:
            kind: one of `KINDS`; what is wrong with it.
            names: whom it is for; a name that no certificate can carry is left out.

        Raises:
            KeyError: the kind is unknown.
        """
        if kind == "self-signed":
            return SelfSigned(names)
        now = datetime.datetime.now(tz=datetime.UTC)
        begin, end, authority = {
            "good": (now - _A_DAY, now + _LONG_AGO, self._trusted),
            "expired": (now - _LONG_AGO, now - _A_DAY, self._trusted),
            "not-yet-valid": (now + _A_DAY, now + _LONG_AGO, self._trusted),
            "wrong-host": (now - _A_DAY, now + _LONG_AGO, self._trusted),
            "unknown-ca": (now - _A_DAY, now + _LONG_AGO, self._unknown),
        }[kind]
        identities = [_WRONG_HOST] if kind == "wrong-host" else _nameable(names)
        return authority.issue_cert(*identities, not_before=begin, not_after=end)


def _nameable(names: Sequence[str]) -> list[str]:
    fitting = []
    for name in names:
        try:
            if isinstance(_general_name(name), x509.DNSName):
                idna.encode(name, uts46=True)
        except ValueError:
            continue
        fitting.append(name)
    return fitting or [_WRONG_HOST]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write an authority and a leaf of each kind for localhost into a folder."""
    parser = argparse.ArgumentParser(prog="python -m conformance.lab.certs", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("certs"))
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    authorities = Authorities()
    authorities.write_bundle(folder / "ca.pem")
    for kind in KINDS:
        leaf = authorities.issue(kind, ("localhost", "127.0.0.1", "::1"))
        pem = (
            leaf.chain_pem()
            if isinstance(leaf, SelfSigned)
            else leaf.private_key_and_cert_chain_pem.bytes()
        )
        path = folder / f"{kind}.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
