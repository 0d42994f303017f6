"""Where a client is sent: a site of the laboratory, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from conformance.probes.clients import WEB, Destination

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Scheme

Family = Literal[4, 6]
HTTPS_PORT = 443
# Nothing listens there; the packet itself is seen.
DISCARD_PORT = 9

_TLS_PORTS = (443, 8443)
_HTTP_PORTS = (80, 8080)


def entry(host: str, port: int) -> str:
    """Write an allow-list entry."""
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port == HTTPS_PORT else f"{bracketed}:{port}"


def port_at(site: Site, port: int) -> int:
    """Give the port of a site that stands for a well-known one.

    On loopback a site has three ports of its own instead: what listens on the real ones
    there belongs to this machine.
    """
    if site.https_port == HTTPS_PORT:
        return port
    if port in _TLS_PORTS:
        return site.https_port
    return site.http_port if port in _HTTP_PORTS else site.other_port


def destination(
    scheme: Scheme, site: Site, *, port: int | None = None, host: str = "", url: str = ""
) -> Destination:
    """Say where a client goes to reach a site.

    Args:
        scheme: The protocol it is to speak.
        site: The site.
        port: Another port than the site's own for that protocol.
        host: Another spelling of the site's name; an address without brackets.
        url: What to write instead of the site's own URL.
    """
    if scheme in WEB:
        written = url or site.url(scheme, host=host or None, port=port)
        return Destination(url=written, host=host or site.name)
    own = site.udp_port if scheme == "udp" else site.other_port
    return Destination(host=host or site.name, port=port or own, payload=f"/{site.nonce}\n")


@dataclass(frozen=True, slots=True)
class Place:
    """A way to go to a site: over which family, by name or address, to which port."""

    family: Family
    by_name: bool
    port: int = HTTPS_PORT

    def site(self, lab: Lab) -> Site:
        """Make a site for it."""
        return lab.site(family=self.family)

    def host(self, site: Site) -> str:
        """Choose how to write a site's host."""
        # On loopback there is one name for both families, and it may lead to the other.
        foreign = site.name == "localhost" and self.family == 6
        return site.name if self.by_name and not foreign else site.address

    def entry(self, site: Site) -> str:
        """Write the allow-list entry for it."""
        return entry(self.host(site), port_at(site, self.port))

    def destination(self, scheme: Scheme, site: Site) -> Destination:
        """Say where a client goes."""
        return destination(scheme, site, port=port_at(site, self.port), host=self.host(site))
