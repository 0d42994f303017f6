"""The lab's Sandbox Proxy at its own names: who may use it, and what it adds to requests."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from conformance.lab.sandbox_proxy.identities import Rule

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lab.client import Lab
    from conformance.lab.sandbox_proxy.client import User

BOOTSTRAP = "https://api.mistral.ai/v1/sandbox-proxy/bootstrap"
RULES = {"type": "secret_injection"}
API = {"type": "mistral_api", "ttl_seconds": 60, "run_as": "auto"}


def asked(credential: str, *integrations: Any) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        BOOTSTRAP,
        json.dumps({"integrations": integrations}).encode(),
        {"Authorization": f"Bearer {credential}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def curl(*words: str) -> str:
    """Give the last status of a transfer; of the proxy's answer to CONNECT where there is one."""
    show = "%{http_connect} %{http_code}"
    line = ["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", show, *words]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout


class Way:
    """A session's way out."""

    def __init__(self, lab: Lab, folder: Path, user: User, *integrations: Any) -> None:
        status, self.told = asked(user.credential, *integrations)
        assert status == 200, self.told
        self.bundle = folder / "ca.pem"
        self.bundle.write_text(self.told["certificate"] + lab.ca_bundle.read_text())
        self.proxy = self.told["environment"]["HTTPS_PROXY"]

    def curl(self, *words: str) -> str:
        """Go that way."""
        return curl("-x", self.proxy, "--cacert", str(self.bundle), *words)


def test_a_rule_joins_what_goes_through_the_proxy_alone(lab: Lab, tmp_path: Path) -> None:
    site, other = lab.site(), lab.site()
    rule = Rule(host=site.entry, header="X-Key", value="value-canary", path_prefix=f"/{site.nonce}")
    user = lab.sandbox_proxy().user(rules=[rule])
    way = Way(lab, tmp_path, user, RULES)
    assert "value-canary" not in json.dumps(way.told)
    assert way.curl(site.url()) == "200 200"
    assert way.curl(f"https://{site.name}/elsewhere") == "200 200"
    assert way.curl(other.url()) == "200 200"
    assert way.curl(other.url("http")) == "000 200"
    assert curl("--cacert", str(lab.ca_bundle), site.url()) == "000 200"
    for place, keys in ((site, ["value-canary", "", ""]), (other, ["", ""])):
        came = [one for one in lab.seen(place) if one.kind == "request"]
        assert [dict(one.headers).get("x-key", "") for one in came] == keys
        assert not any(name.startswith("proxy-") for one in came for name, _ in one.headers)


def test_the_gate_takes_a_credential_while_it_lives(lab: Lab, tmp_path: Path) -> None:
    site, user = lab.site(), lab.sandbox_proxy().user()
    way = Way(lab, tmp_path, user, API)
    bare = "https://sandbox-proxy.mistral.ai"
    assert way.curl(site.url()) == "200 200"
    for proxy in (bare, "https://sandbox:wrong@sandbox-proxy.mistral.ai", way.proxy + "x"):
        assert curl("-x", proxy, "--cacert", str(way.bundle), site.url())[:3] != "200"
    assert curl("-x", bare, "--cacert", str(way.bundle), site.url()) == "407 000"
    user.end_sessions()
    assert way.curl(site.url()) == "407 000"
    assert len([one for one in lab.seen(site) if one.kind == "request"]) == 1


def test_the_sessions_own_key_and_no_other_becomes_the_users(lab: Lab, tmp_path: Path) -> None:
    user = lab.sandbox_proxy().user()
    way = Way(lab, tmp_path, user, API)
    key = way.told["environment"]["MISTRAL_API_KEY"]
    url = "https://api.mistral.ai/v1/models"
    assert way.curl("-H", f"Authorization: Bearer {key}", url) == "200 200"
    assert way.curl("-H", "Authorization: Bearer other", url) == "200 401"
    assert way.curl(url) == "200 401"
    assert curl("--cacert", str(lab.ca_bundle), "-H", f"Authorization: Bearer {key}", url)[4:] == (
        "401"
    )
    assert [row["target"] for row in user.requests()] == ["/v1/models"]


@pytest.mark.parametrize(
    ("integrations", "status"),
    [
        ([], 422),
        ([{"type": "other"}], 422),
        ([RULES, RULES], 422),
        ([{**API, "ttl_seconds": 0}], 422),
        ([{**API, "run_as": "me"}], 422),
        ([{"type": "github", "repos": "some"}], 422),
        ([{"type": "github", "repos": ["acme/b"], "host": "ghe.example"}], 422),
        ([{"type": "github", "repos": ["acme/a", "acme/b"]}], 403),
        ([{"type": "github", "repos": ["Acme/A"]}], 200),
        ([{"type": "github", "repos": "all"}], 200),
    ],
)
def test_a_bootstrap_is_judged_by_what_it_asks_for(
    lab: Lab, integrations: list[Any], status: int
) -> None:
    user = lab.sandbox_proxy().user(repositories=["acme/a"])
    found, told = asked(user.credential, *integrations)
    assert found == status, told
    assert ("acme/b" in told.get("message", "")) is (status == 403)
    assert [row["status"] for row in user.bootstraps()] == [status]
    assert asked("nobody's", *integrations)[0] == 401
