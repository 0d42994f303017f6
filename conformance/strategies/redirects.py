"""Redirects that lead from a listed host to where the list does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from conformance.lab.sites import Site

STATUSES = (300, 301, 302, 303, 307, 308)

_ELSEWHERE: dict[str, str] = {
    "another host": "https://{other}{path}",
    "another host, no scheme": "//{other}{path}",
    "another host behind user info": "https://{listed}@{other}{path}",
    "another host behind a backslash": "https://{listed}\\@{other}{path}",
    "another host behind a slash and a backslash": "/\\{other}{path}",
    "another host behind two backslashes": "\\\\{other}{path}",
    "another host behind three slashes": "https:///{other}{path}",
    "another host behind three slashes, no scheme": "///{other}{path}",
    "another host, upper case": "HTTPS://{OTHER}{path}",
    "an address": "https://{address}{path}",
    "another port": "https://{name}:{port}{path}",
    "plain HTTP": "http://{name}:{http}{path}",
    "plain HTTP on the listed port": "http://{name}:{https}{path}",
    "plain HTTP of another host": "http://{plain}{path}",
}


@dataclass(frozen=True, slots=True)
class Redirect:
    """A status, and the kind of place that its Location names."""

    kind: str
    status: int = 302

    def location(self, *, listed: Site, other: Site, port: int) -> str:
        """Write the Location.

        Args:
            listed: The host that the list names.
            other: One that it does not name.
            port: A port of the listed host that is not listed.
        """
        path = f"/{other.nonce}"
        authority = other.entry
        return _ELSEWHERE[self.kind].format(
            listed=listed.entry,
            name=listed.name,
            https=listed.https_port,
            http=listed.http_port,
            port=port,
            other=authority,
            OTHER=authority.upper(),
            address=_authority(other.address, other.https_port),
            plain=_authority(other.name, other.http_port, 80),
            path=path,
        )


def _authority(host: str, port: int, default: int = 443) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port == default else f"{bracketed}:{port}"


REDIRECTS = (
    *(Redirect("another host", status) for status in STATUSES),
    *(Redirect(kind) for kind in _ELSEWHERE if kind != "another host"),
)
"""Each status, and each kind of place."""

redirects = st.builds(Redirect, st.sampled_from(list(_ELSEWHERE)), st.sampled_from(STATUSES))
