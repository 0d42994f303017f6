"""What the lab's GitHub takes a request for: as much as a generous server could."""

from __future__ import annotations

import base64
import json

import pytest

from conformance.lab.github import answering
from conformance.lab.github.client import Repository as Told
from conformance.lab.github.repositories import Repositories
from conformance.lab.github.routes import ACCOUNT, route
from conformance.strategies import github_requests
from conformance.strategies.github_requests import API, UPLOADS, WEB


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Repositories:
    made = Repositories(tmp_path_factory.mktemp("github"))
    for name in ("Tools.lib", "hidden", "old"):
        made.make("Acme", name, private=True)
    made.rename(700_002, "new")
    return made


def told(known: Repositories, name: str) -> Told:
    found = known.named("acme", name)
    assert found is not None
    return Told(**found.to_wire())


@pytest.mark.parametrize(
    ("host", "target", "meant"),
    [
        (WEB, "/acme/TOOLS.lib.git/info/refs?service=git-upload-pack", "acme/tools.lib"),
        (WEB, "/acme/tools.lib.git.git/git-upload-pack", "acme/tools.lib.git"),
        (WEB, "/acme/tools.lib.wiki.git/git-upload-pack", "acme/tools.lib.wiki"),
        (WEB, "/settings", ACCOUNT),
        (API, "/repos/acme/tools.lib/../hidden", "acme/hidden"),
        (API, "/repos/acme/tools.lib/%252e%252e/hidden/issues", "acme/hidden"),
        (API, "/repos/acme%2fhidden", "acme/hidden"),
        (API, "/repos/acme/tools.lib;/../hidden", "acme/hidden"),
        (API, "/repositories/700001/issues", "acme/hidden"),
        (API, "/repositories/0700001", "acme/hidden"),
        (API, "/repositories/9", "repositories/9"),
        (API, "/repos/acme/old/issues", "acme/old"),
        (API, "/user/repos", ACCOUNT),
        (API, "/orgs/acme/repos", ACCOUNT),
        (API, "/user", None),
        (API, "/licenses/mit", None),
        (UPLOADS, "/repos/acme/hidden/releases/1/assets", "acme/hidden"),
        ("codeload.github.com", "/acme/hidden/zip/main", ACCOUNT),
    ],
)
def test_a_request_means_one_repository_or_the_account(
    known: Repositories, host: str, target: str, meant: str | None
) -> None:
    found = route(host, "GET", target, known)
    assert found.meant == ({meant} if meant else set())


def test_a_comparison_and_a_copy_mean_more_than_one(known: Repositories) -> None:
    target = "/repos/acme/tools.lib/compare/main...acme:hidden:main"
    assert route(API, "GET", target, known).meant == {"acme/tools.lib", "acme/hidden"}
    copy = route(API, "POST", "/repos/acme/tools.lib/forks", known)
    assert copy.meant == {"acme/tools.lib", ACCOUNT}


@pytest.mark.parametrize("spelling", github_requests.SPELLINGS)
def test_every_spelling_of_the_checks_means_the_other_repository(
    known: Repositories, spelling: str
) -> None:
    listed, hidden = told(known, "Tools.lib"), told(known, "hidden")
    rows = github_requests.spelled(listed, hidden, spelling)
    assert any(
        route(row.host, row.method, row.target, known).meant == {"acme/hidden"} for row in rows
    )


def meant(known: Repositories, body: str) -> frozenset[str]:
    said, found = answering.answer(body.encode(), known, known.user)
    assert said.status == 200
    return found


def test_graphql_means_what_it_walks_through(known: Repositories) -> None:
    listed, hidden = told(known, "Tools.lib"), told(known, "hidden")
    for way, row in github_requests.queries("acme", "tools.lib").items():
        assert meant(known, row.body) == {"acme/tools.lib"}, way
    for way, row in github_requests.beyond(listed, hidden).items():
        assert meant(known, row.body) & {"acme/hidden", ACCOUNT}, way
    former = github_requests.queries("acme", "old")["literals"].body
    assert meant(known, former) == {"acme/new"}
    unfollowed = former.replace('name: \\"old\\"', 'name: \\"old\\", followRenames: false')
    assert unfollowed != former
    assert meant(known, unfollowed) == {"acme/old"}


def test_a_credential_is_known_in_either_form(known: Repositories) -> None:
    value = known.user.value
    basic = base64.b64encode(f"x-access-token:{value}".encode()).decode()
    shown = (f"Basic {basic}", f"Bearer {value}", f"token {value}", "Bearer x", "Basic !", "")
    names = [known.bearer({"authorization": text})[0] for text in shown]
    assert names == ["user", "user", "user", "unknown", "unknown", ""]


def test_graphql_needs_a_credential_and_json(known: Repositories) -> None:
    body = json.dumps({"query": "{ viewer { login } }"}).encode()
    assert answering.answer(body, known, None)[0].status == 401
    assert b"errors" in answering.answer(b"{", known, known.user)[0].body


def test_a_repository_is_a_real_one(known: Repositories) -> None:
    found = known.named("ACME", "HIDDEN")
    assert found is not None
    assert (found.path / "HEAD").read_text().strip() == "ref: refs/heads/main"
