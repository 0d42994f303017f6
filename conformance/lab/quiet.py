"""Network devices that say nothing by themselves."""

from __future__ import annotations

import contextlib
from pathlib import Path


def quieten(device: str) -> None:
    """Keep the kernel from speaking on `device` by itself (router and duplicate discovery).

    What it would say is no attempt of a sandbox; the sniffer leaves it out in any case, so a
    kernel that refuses a setting does no harm.
    """
    settings = {
        "ipv6/conf": ("disable_ipv6", "accept_ra", "autoconf", "accept_dad", "dad_transmits"),
        "ipv4/conf": ("rp_filter",),
    }
    for family, names in settings.items():
        for name in names:
            with contextlib.suppress(OSError):
                Path(f"/proc/sys/net/{family}/{device}/{name}").write_text("0", encoding="ascii")
