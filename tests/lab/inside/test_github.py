"""The lab's GitHub at its own names: it is there once it was asked for, and sees who asks."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lab.client import Lab
    from conformance.lab.github.client import GitHubClient


def test_its_names_exist_and_git_clones_with_the_users_credential(lab: Lab, tmp_path: Path) -> None:
    github = lab.github()
    made = github.repository("Inside", "one")
    assert {socket.gethostbyname(name) for name in ("github.com", "api.github.com")} == {
        socket.gethostbyname("codeload.github.com")
    }
    words = ["git", "-c", f"http.sslCAInfo={lab.ca_bundle}", "-c", "credential.helper=", "clone"]
    for user, works in ((f"x-access-token:{github.token()}@", True), ("x:wrong@", False)):
        url = f"https://{user}github.com/inside/one.git"
        ran = subprocess.run(
            [*words, "-q", url, str(tmp_path / str(works))],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            env={"GIT_TERMINAL_PROMPT": "0", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            check=False,
        )
        assert (ran.returncode == 0) is works, ran.stderr
    assert (tmp_path / "True/README.md").read_text().strip() == made.marker
    seen = github.seen("inside/one")
    assert {"user", "unknown"} <= {one.credential for one in seen}
    assert all(one.meant == ["inside/one"] for one in seen)


def asked(lab: Lab, path: str, token: str) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(
        f"https://api.github.com{path}", headers={"Authorization": f"Bearer {token}"}
    )
    context = ssl.create_default_context(cafile=str(lab.ca_bundle))
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture
def github(lab: Lab) -> GitHubClient:
    return lab.github()


def test_a_limited_credential_sees_no_other_repository(lab: Lab, github: GitHubClient) -> None:
    mine, other = github.repository("Limits", "mine"), github.repository("Limits", "other")
    limited = github.issue(mine)
    assert asked(lab, "/repos/limits/mine", limited)[1]["id"] == mine.number
    assert asked(lab, "/repos/limits/other", limited)[0] == 404
    assert asked(lab, f"/repositories/{other.number}", limited)[0] == 404
    assert asked(lab, "/repos/limits/other", github.token())[1]["node_id"] == other.node


def test_a_former_name_leads_to_the_number(lab: Lab, github: GitHubClient) -> None:
    made = github.repository("Renames", "old")
    github.rename(made, "new")
    status, told = asked(lab, "/repos/renames/old", github.token())
    assert (status, told["full_name"]) == (200, "Renames/new")
    # The client followed; what showed something came by the number.
    assert [(one.meant, one.status) for one in github.seen("renames/")] == [
        (["renames/old"], 301),
        (["renames/new"], 200),
    ]
