"""Certificates for whatever is dialled: minted when a connection needs one, and kept a while."""

from __future__ import annotations

import datetime
import ssl
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.lab.certs import Authorities
    from conformance.lab.servers.registry import Registry

_KEPT_CONTEXTS = 256


class Certificates:
    """TLS contexts by what the client dialled and asked for.

    Args:
        authorities: who signs.
        registry: the sites, each with what is to be wrong with its certificate.
    """

    def __init__(self, authorities: Authorities, registry: Registry) -> None:
        self._authorities = authorities
        self._registry = registry
        self._context = lru_cache(maxsize=_KEPT_CONTEXTS)(self._new_context)

    def context(self, address: str, port: int, name: str) -> ssl.SSLContext:
        """Give the context for a connection to `address` whose hello asks for `name`."""
        site = self._registry.serving(address, port, name)
        today = datetime.datetime.now(tz=datetime.UTC).date()  # a kept one must not grow old
        if site is None:
            return self._context("good", tuple(filter(None, (name, address))), today)
        return self._context(site.certificate, (site.name, *sorted(set(site.addresses))), today)

    def _new_context(
        self, kind: str, names: tuple[str, ...], _day: datetime.date
    ) -> ssl.SSLContext:
        leaf = self._authorities.issue(kind, names)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf.configure_cert(context)
        context.set_alpn_protocols(["http/1.1"])
        return context
