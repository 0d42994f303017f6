"""The environment that makes programs inside use the proxy and trust what it shows."""

from __future__ import annotations

_PROXY = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_CA_FILE = (
    "SSL_CERT_FILE",  # openssl, Python, Go, Ruby
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
)


def environment(address: str, ca_file: str) -> dict[str, str]:
    """Give the variables for programs inside.

    Args:
        address: `host:port` of the proxy, as the inside reaches it.
        ca_file: Path, inside, of the certificates that programs trust.
    """
    variables = dict.fromkeys(_PROXY, f"http://{address}")
    # What listens inside is reached without the proxy, which would refuse it.
    variables |= dict.fromkeys(_NO_PROXY, "localhost,127.0.0.1,::1")
    variables |= dict.fromkeys(_CA_FILE, ca_file)
    variables["NODE_USE_ENV_PROXY"] = "1"
    return variables
