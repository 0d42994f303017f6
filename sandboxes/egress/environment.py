"""The environment that makes programs inside use the proxy and trust what it shows."""

from __future__ import annotations

from sandboxes.trust import CA_FILE_VARIABLES

_PROXY = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")


def environment(address: str, ca_file: str) -> dict[str, str]:
    """Give the variables for programs inside.

    Args:
        address: `host:port` of the proxy, as the inside reaches it.
        ca_file: Path, inside, of the certificates that programs trust.
    """
    variables = dict.fromkeys(_PROXY, f"http://{address}")
    # What listens inside is reached without the proxy, which would refuse it.
    variables |= dict.fromkeys(_NO_PROXY, "localhost,127.0.0.1,::1")
    variables |= dict.fromkeys(CA_FILE_VARIABLES, ca_file)
    variables["NODE_USE_ENV_PROXY"] = "1"
    return variables
