"""Which names speak of credentials: their values go into no environment and no report."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL|PRIVATE_?KEY", re.IGNORECASE
)


def names_a_secret(name: str) -> bool:
    """Whether a variable or an option of this name is likely to hold a credential."""
    return _SECRET.search(name) is not None
