"""Which requests to GitHub go through: each row of the decisions that were taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.egress.denied import Denied
from sandboxes.egress.github import GitHubRequest, GitHubRules, Granted

LISTED = GitHubRules(Granted(("Octo/Tools", "octo/second.lib"), ids=(42, 7)))
EVERYTHING = GitHubRules(Granted("all"))
NOTHING = GitHubRules(Granted(()))

GITHUB, API, UPLOADS = "github.com", "api.github.com", "uploads.github.com"

GRANTED = [
    (GITHUB, "GET", "/octo/tools/info/refs?service=git-upload-pack"),
    (GITHUB, "GET", "/OCTO/Tools.git/info/refs?service=git-receive-pack"),
    (GITHUB, "POST", "/octo/tools.git/git-upload-pack"),
    (GITHUB, "POST", "/octo/second.lib/git-receive-pack"),
    (GITHUB, "POST", "/octo/tools.git/info/lfs/objects/batch"),
    (GITHUB, "GET", "/octo/tools.git/info/lfs/locks?path=a"),
    (GITHUB, "POST", "/octo/tools.git/info/lfs/locks/verify"),
    (GITHUB, "GET", "/octo/tools/archive/refs/heads/main.zip"),
    (GITHUB, "GET", "/octo/tools/releases/download/v1/tool.tar.gz"),
    (GITHUB, "GET", "/octo/tools/raw/main/a%20file.txt"),
    (API, "GET", "/repos/octo/tools"),
    (API, "POST", "/repos/octo/tools/issues"),
    (API, "GET", "/repos/OCTO/TOOLS/contents/a/b.txt?ref=main"),
    (API, "GET", "/repos/octo/tools/contents/%C3%BC.txt"),
    (API, "PUT", "/repos/octo/tools/contents/a.txt"),
    (API, "POST", "/repos/octo/tools/pulls"),
    (API, "GET", "/repos/octo/tools/collaborators"),
    (API, "GET", "/repos/octo/tools/forks"),
    (API, "GET", "/repos/octo/tools/git/commits/0123456789abcdef"),
    (API, "DELETE", "/repos/octo/tools/git/refs/heads/old"),
    (API, "GET", "/repos/octo/tools/compare/main...feature/new"),
    (API, "GET", "/repos/octo/tools/compare/main...octo:feature"),
    (API, "GET", "/repos/octo/tools/compare/octo:second.lib:main..octo:tools:main"),
    (API, "GET", "/repositories/42"),
    (API, "GET", "/repositories/7/issues?page=2"),
    (API, "GET", "/user"),
    (API, "GET", "/"),
    (API, "GET", "/rate_limit"),
    (API, "GET", "/licenses/mit"),
    (UPLOADS, "POST", "/repos/octo/tools/releases/1/assets?name=a.zip"),
]

REFUSED_IN_A_LIST = [
    # Another repository, or another that is only called alike.
    (GITHUB, "GET", "/other/tools/info/refs?service=git-upload-pack"),
    (GITHUB, "POST", "/octo/tool/git-upload-pack"),
    (GITHUB, "POST", "/octo/toolsx/git-upload-pack"),
    (GITHUB, "POST", "/octo/tools.git.git/git-upload-pack"),
    (GITHUB, "POST", "/octo/tools.wiki.git/git-receive-pack"),
    (GITHUB, "POST", "/octo/tools.wiki/git-upload-pack"),
    (GITHUB, "POST", "/other/tools.git/info/lfs/objects/batch"),
    (GITHUB, "GET", "/other/tools/archive/main.zip"),
    (API, "GET", "/repos/other/tools"),
    (API, "GET", "/repos/octo/tools.git"),
    (API, "GET", "/repos/octo/secondxlib"),
    (API, "PUT", "/repos/other/tools/contents/a.txt"),
    (API, "GET", "/repositories/43"),
    (API, "GET", "/repositories/042"),
    (API, "GET", "/repositories/+42"),
    (API, "GET", "/repositories/4_2"),
    (API, "GET", "/repositories"),
    (UPLOADS, "POST", "/repos/other/tools/releases/1/assets?name=a"),
    # A comparison with a repository that is not listed, or may not be.
    (API, "GET", "/repos/octo/tools/compare/main...other:main"),
    (API, "GET", "/repos/octo/tools/compare/other:main...main"),
    (API, "GET", "/repos/octo/tools/compare/main..other:tools:main"),
    (API, "GET", "/repos/octo/tools/compare/main...oct%6f:hidden:main"),
    (API, "GET", "/repos/octo/tools/compare/a:b:c:d...main"),
    (API, "GET", "/repositories/42/compare/main...octo:main"),
    # What carries a repository away, or leaves a way in.
    (API, "DELETE", "/repos/octo/tools"),
    (API, "PATCH", "/repos/octo/tools"),
    (API, "DELETE", "/repositories/42"),
    (API, "POST", "/repos/octo/tools/forks"),
    (API, "POST", "/repos/octo/tools/%66orks"),
    (API, "POST", "/repos/octo/tools/transfer"),
    (API, "POST", "/repos/octo/tools/generate"),
    (API, "PUT", "/repos/octo/tools/collaborators/mallory"),
    (API, "POST", "/repos/octo/tools/hooks"),
    (API, "POST", "/repos/octo/tools/keys"),
    (API, "POST", "/repositories/42/keys"),
    (API, "PUT", "/repos/octo/tools/actions/secrets/KEY"),
    (API, "POST", "/repos/octo/tools/actions/runners/registration-token"),
    (API, "PATCH", "/repos/octo/tools/actions/variables/KEY"),
    (API, "PUT", "/repos/octo/tools/environments/production/secrets/KEY"),
    (API, "PUT", "/repos/octo/tools/import"),
    (API, "DELETE", "/repos/octo/tools/branches/feature/new/protection"),
    (API, "POST", "/repos/octo/tools/pulls/7/codespaces"),
    (API, "POST", "/repos/octo/tools/security-advisories/GHSA-1/forks"),
    (API, "PUT", "/repos/octo/tools/actions/oidc/customization/sub"),
    (API, "DELETE", "/repos/octo/tools/vulnerability-alerts"),
    # Lists of more than one repository, and what has none.
    (API, "GET", "/user/repos"),
    (API, "GET", "/users/octo/repos"),
    (API, "GET", "/orgs/octo/repos"),
    (API, "POST", "/orgs/octo/repos"),
    (API, "GET", "/teams/1"),
    (API, "GET", "/installation/repositories"),
    (API, "GET", "/notifications"),
    (API, "GET", "/issues"),
    (API, "GET", "/events"),
    (API, "GET", "/networks/octo/tools/events"),
    (API, "POST", "/gists"),
    (API, "GET", "/search/code?q=repo:octo/tools+x"),
    (API, "GET", "/codespaces"),
    (API, "PATCH", "/user"),
    (API, "POST", "/user/keys"),
    (API, "GET", "/some/new/thing"),
    (API, "GET", "/graphql"),
]

NEVER_GRANTED = [
    # Neither git's nor a download: pages, old protocols, services that are none.
    (GITHUB, "GET", "/octo/tools"),
    (GITHUB, "GET", "/octo/tools/info/refs"),
    (GITHUB, "GET", "/octo/tools/info/refs?service=git-upload-archive"),
    (GITHUB, "GET", "/octo/tools/info/refs?service=git-upload-pack&service=git-receive-pack"),
    (GITHUB, "GET", "/octo/tools/HEAD"),
    (GITHUB, "GET", "/octo/tools/objects/info/packs"),
    (GITHUB, "GET", "/octo/tools/archive"),
    (GITHUB, "POST", "/octo/tools/archive/main.zip"),
    (GITHUB, "GET", "/login"),
    (GITHUB, "POST", "/settings/tokens"),
    (GITHUB, "POST", "/graphql"),
    (UPLOADS, "GET", "/repos/octo/tools/releases/1/assets"),
    (UPLOADS, "POST", "/repos/octo/tools/releases/x/assets"),
    # Paths that GitHub might read otherwise.
    (API, "GET", "/repos/octo/tools/../../other/tools"),
    (API, "GET", "/repos/octo/tools/%2e%2e/x"),
    (API, "GET", "/repos/octo%2Ftools"),
    (API, "GET", "/repos/octo/tools%5c..%5cother"),
    (API, "GET", "/repos//octo/tools"),
    (API, "GET", "/repos/./octo/tools"),
    (API, "GET", "/repos/octo/tools%00"),
    (API, "GET", "/repos/octo/tools%252f"),
    (API, "GET", "/repos/octo/tools;x=/y"),
    (API, "GET", "/repos/octo/tools\\x"),
    (API, "GET", "/repos/octo/tools/%c0%afx"),
    (API, "GET", "/repos/octo/tools/\u00fc"),
    (API, "GET", "/repos/octo/tools#/x"),
    (API, "GET", "https://api.github.com/repos/octo/tools"),
    (API, "TRACE", "/repos/octo/tools"),
    (API, "get", "/repos/octo/tools"),
    # Hosts that get no credential, whatever GitHub redirects to.
    ("codeload.github.com", "GET", "/octo/tools/zip/main"),
    ("raw.githubusercontent.com", "GET", "/octo/tools/main/a"),
    ("gist.github.com", "POST", "/octo/tools.git/git-receive-pack"),
]


def credential(rules: GitHubRules, row: tuple[str, str, str]) -> str:
    """How the credential joins the request, or that it is denied."""
    try:
        return rules.decide(GitHubRequest(*row)).scheme
    except Denied:
        return "denied"


@pytest.mark.parametrize("row", GRANTED, ids=" ".join)
def test_what_a_listed_repository_needs_gets_the_credential(row: tuple[str, str, str]) -> None:
    scheme = "basic" if row[0] == GITHUB else "bearer"

    assert credential(LISTED, row) == scheme
    assert credential(EVERYTHING, row) == scheme


@pytest.mark.parametrize("row", [row for row in GRANTED if "octo" in row[2].lower()], ids=" ".join)
def test_an_empty_list_grants_nothing(row: tuple[str, str, str]) -> None:
    assert credential(NOTHING, row) == "denied"


@pytest.mark.parametrize("row", REFUSED_IN_A_LIST, ids=" ".join)
def test_what_reaches_beyond_the_list_is_denied_there_alone(row: tuple[str, str, str]) -> None:
    assert credential(LISTED, row) == "denied"
    assert credential(EVERYTHING, row) != "denied"


@pytest.mark.parametrize("row", NEVER_GRANTED, ids=ascii)
def test_what_is_none_of_the_bindings_never_gets_it(row: tuple[str, str, str]) -> None:
    assert credential(LISTED, row) == "denied"
    assert credential(EVERYTHING, row) == "denied"


def test_a_repository_that_is_not_listed_is_told_from_none_by_nothing() -> None:
    reasons = set()
    for path in ("/repos/other/private", "/repos/other/no-such", "/orgs/x", "/repositories/1"):
        with pytest.raises(Denied) as caught:
            LISTED.decide(GitHubRequest(API, "GET", path))
        reasons.add((caught.value.status, caught.value.reason))

    assert len(reasons) == 1


_letters = st.text("abcOCTOtools.-_%2f/\\;:.gitwk", max_size=12)


@given(owner=_letters, name=_letters, rest=st.sampled_from(["/git-upload-pack", "/issues", ""]))
def test_no_spelling_of_another_name_is_taken_for_a_listed_one(
    owner: str, name: str, rest: str
) -> None:
    for host, start, ending in ((GITHUB, "/", ".git"), (API, "/repos/", "")):
        method = "POST" if host == GITHUB else "GET"
        row = (host, method, f"{start}{owner}/{name}{rest}")
        if credential(LISTED, row) != "denied":
            plain = f"{owner}/{name}".lower()
            assert plain.removesuffix(ending) in {"octo/tools", "octo/second.lib"}
