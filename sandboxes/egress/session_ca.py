"""A certificate authority for one session: its keys are in memory only, and die with it."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandboxes.contract import HostEntry

_SLACK = datetime.timedelta(days=1)
_LIFETIME = datetime.timedelta(days=30)
# Clients that stop reading early, and certificates, stay far below what a pipe holds.
_MAX_PEM = 16 * 1024


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: HostEntry) -> x509.GeneralName:
    if host.is_address:
        return x509.IPAddress(ipaddress.ip_address(host.host))
    return x509.DNSName(host.host)


def _permitted(host: HostEntry) -> x509.GeneralName:
    if host.is_address:
        return x509.IPAddress(ipaddress.ip_network(host.host))
    return x509.DNSName(host.host)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


class SessionCa:
    """Makes certificates for the hosts whose requests are opened, and for no other.

    The authority's own certificate is limited to these hosts (name constraints): who
    trusts it, trusts it for nothing else.

    Args:
        hosts: The hosts that certificates may be made for.
    """

    def __init__(self, hosts: Iterable[HostEntry]) -> None:
        self._hosts = frozenset(hosts)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[str, ssl.SSLContext] = {}
        name = _name("Session CA of an egress proxy")
        builder = self._builder(name, name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_usage(authority=True), True)
        permitted = sorted({_permitted(host) for host in self._hosts}, key=str)
        if permitted:
            builder = builder.add_extension(x509.NameConstraints(permitted, None), True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        """The authority's certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SLACK)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
        )

    def context(self, host: HostEntry) -> ssl.SSLContext:
        """What the proxy serves TLS with, in the name of a host.

        Raises:
            KeyError: The host is none of this authority's.
        """
        if host not in self._hosts:
            raise KeyError(str(host))
        if host.host not in self._contexts:
            self._contexts[host.host] = self._serve_as(host)
        return self._contexts[host.host]

    def _serve_as(self, host: HostEntry) -> ssl.SSLContext:
        builder = self._builder(
            x509.Name([]), self._certificate.subject, self._leaf_key.public_key()
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_usage(authority=False), True)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False
        )
        # Critical, because there is no other name in it.
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), True)
        leaf = builder.sign(self._key, hashes.SHA256())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(["http/1.1"])
        _load(context, leaf, self._leaf_key)
        return context


def _load(
    context: ssl.SSLContext, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    """Give a context its key by way of pipes: it takes files only, and no file may have it."""
    parts = (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    readers: list[int] = []
    try:
        for part in parts:
            reader, writer = os.pipe()
            readers.append(reader)
            with open(writer, "wb", closefd=True) as pipe:
                if len(part) > _MAX_PEM:
                    raise ValueError("a certificate is longer than a pipe surely holds")
                pipe.write(part)
        context.load_cert_chain(*(f"/dev/fd/{reader}" for reader in readers))
    finally:
        for reader in readers:
            os.close(reader)
