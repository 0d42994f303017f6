"""Sites: the places at the lab that a sandbox is let or not let to, one a purpose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from conformance.lab.addresses import bracketed

if TYPE_CHECKING:
    from collections.abc import Sequence

Certificate = Literal["good", "expired", "not-yet-valid", "wrong-host", "unknown-ca", "self-signed"]

_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class Names:
    """How the lab's resolver answers for a site.

    Args:
        answers: addresses for each question in turn, counted per record type; the last
            answer repeats, so two make a rebinding name. Empty: the name has no address.
        delay: seconds before each answer.
        silent: no answer at all.
    """

    answers: Sequence[Sequence[str]]
    delay: float = 0.0
    silent: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Give what JSON can carry."""
        answers = [list(answer) for answer in self.answers]
        return {"answers": answers, "delay": self.delay, "silent": self.silent}


@dataclass(frozen=True)
class Site:
    """A place at the lab.

    Args:
        name: its host name; other spellings of it are the site's as well.
        address: its address, the first of `addresses`.
        nonce: what marks its name and paths, unique in the run.
        token: what only this origin answers in its body.
        https_port: where it speaks TLS.
        http_port: where it speaks plain HTTP.
        other_port: where it takes raw TCP.
        udp_port: where it takes datagrams.
        addresses: all of its addresses.
        certificate: what is wrong with its certificate, or "good".
        worker: name of the worker that made it.
    """

    name: str
    address: str
    nonce: str
    token: str = field(repr=False)
    https_port: int = 443
    http_port: int = 80
    other_port: int = 5432
    udp_port: int = 5005
    addresses: tuple[str, ...] = ()
    certificate: Certificate = "good"
    worker: str = ""

    @property
    def entry(self) -> str:
        """The allow-list entry for the site's HTTPS."""
        return self.name if self.https_port == 443 else f"{self.name}:{self.https_port}"

    def url(
        self,
        scheme: str = "https",
        *,
        host: str | None = None,
        port: int | None = None,
        path: str = "",
    ) -> str:
        """Give a URL of the site; its path carries the nonce.

        Args:
            scheme: "https" or "http".
            host: what to write for the host instead of the site's name; a bare IPv6
                literal gets its brackets, anything else is taken as it is.
            port: what to write for the port; the scheme's own one is left out.
            path: what follows the nonce.
        """
        own = self.https_port if scheme == "https" else self.http_port
        port = own if port is None else port
        host = self.name if host is None else host
        host = bracketed(host) if host.count(":") > 1 and "[" not in host else host
        suffix = "" if port == _DEFAULT_PORTS.get(scheme) else f":{port}"
        rest = f"/{path.lstrip('/')}" if path else ""
        return f"{scheme}://{host}{suffix}/{self.nonce}{rest}"

    @classmethod
    def from_wire(cls, fields: dict[str, Any]) -> Site:
        """Read what the servers tell of a site."""
        fields["addresses"] = tuple(fields["addresses"])
        return cls(**fields)
