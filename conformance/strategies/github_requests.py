"""Requests to GitHub: the ways to one repository, and the ways to more than one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.lab.github.client import Repository

WEB, API, UPLOADS = "github.com", "api.github.com", "uploads.github.com"


@dataclass(frozen=True, slots=True)
class Row:
    """One request to GitHub.

    Attributes:
        host: Where.
        method: How.
        target: Path and query, as they are sent.
        body: Of GraphQL, in ASCII.
    """

    host: str
    method: str
    target: str
    body: str = ""

    def __str__(self) -> str:
        said = f" with {self.body}" if self.body else ""
        return f"{self.method} https://{self.host}{self.target}{said}"


def graphql(query: str, **variables: object) -> str:
    """Write the body of a GraphQL request."""
    return json.dumps({"query": query, "variables": variables})


def fetches(name: str) -> list[Row]:
    """What git asks to fetch from a repository."""
    return [
        Row(WEB, "GET", f"/{name}/info/refs?service=git-upload-pack"),
        Row(WEB, "GET", f"/{name}.git/info/refs?service=git-upload-pack"),
        Row(WEB, "POST", f"/{name}.git/git-upload-pack", "0000"),
    ]


def pushes(name: str) -> list[Row]:
    """What git asks to push to a repository."""
    return [
        Row(WEB, "GET", f"/{name}.git/info/refs?service=git-receive-pack"),
        Row(WEB, "POST", f"/{name}/git-receive-pack", "0000"),
    ]


def rest(name: str) -> list[Row]:
    """REST requests to a repository."""
    return [
        Row(API, "GET", f"/repos/{name}"),
        Row(API, "GET", f"/repos/{name}/contents/README.md"),
        Row(API, "GET", f"/repos/{name}/issues?state=all"),
        Row(API, "POST", f"/repos/{name}/issues", '{"title": "x"}'),
    ]


def queries(owner: str, name: str) -> dict[str, Row]:
    """GraphQL requests that name a repository, by the way in which they name it."""
    written = f"owner: {json.dumps(owner)}, name: {json.dumps(name)}"
    texts = {
        "literals": graphql(f"{{ repository({written}) {{ id name }} }}"),
        "variables": graphql(
            "query($o: String!, $n: String!) { repository(owner: $o, name: $n) { id name } }",
            o=owner,
            n=name,
        ),
        "a default": graphql(
            f"query($n: String = {json.dumps(name)}) "
            f"{{ repository(owner: {json.dumps(owner)}, name: $n) {{ id }} }}"
        ),
        "a fragment": graphql(
            f"{{ ...more }} fragment more on Query {{ repository({written}) {{ id }} }}"
        ),
        "an inline fragment": graphql(f"{{ ... on Query {{ repository({written}) {{ id }} }} }}"),
        "an alias": graphql(f"{{ viewer: repository({written}) {{ id }} }}"),
    }
    return {way: Row(API, "POST", "/graphql", body) for way, body in texts.items()}


def beyond(listed: Repository, hidden: Repository) -> Mapping[str, Row]:
    """GraphQL requests that lead from or beside a listed repository to another."""
    own = f"repository(owner: {json.dumps(listed.owner)}, name: {json.dumps(listed.name)})"
    other = f"repository(owner: {json.dumps(hidden.owner)}, name: {json.dumps(hidden.name)})"
    texts = {
        "a second root": f"{{ a: {own} {{ id }} b: {other} {{ id }} }}",
        "a node": f"{{ node(id: {json.dumps(hidden.node)}) {{ id }} }}",
        "nodes": f"{{ nodes(ids: [{json.dumps(hidden.node)}]) {{ id }} }}",
        "its owner": f"{{ {own} {{ owner {{ ... on User {{ repositories(first: 9) "
        f"{{ nodes {{ name }} }} }} }} }} }}",
        "its forks": f"{{ {own} {{ forks(first: 9) {{ nodes {{ name }} }} }} }}",
        "the viewer": "{ viewer { repositories(first: 9) { nodes { name } } } }",
        "a search": '{ search(query: "x", type: REPOSITORY, first: 9) { nodes { id } } }',
        "an address": f'{{ resource(url: "https://github.com/{hidden.full_name}") {{ url }} }}',
        "a user": f"{{ user(login: {json.dumps(hidden.owner)}) {{ repositories(first: 9) "
        f"{{ nodes {{ name }} }} }} }}",
        "a mutation": f"mutation {{ addComment(input: {{subjectId: "
        f'{json.dumps(hidden.issue_node)}, body: "x"}}) {{ clientMutationId }} }}',
    }
    return {way: Row(API, "POST", "/graphql", graphql(text)) for way, text in texts.items()}


def downloads(name: str) -> list[Row]:
    """Archives, releases and files of a repository."""
    return [
        Row(WEB, "GET", f"/{name}/archive/refs/heads/main.zip"),
        Row(WEB, "GET", f"/{name}/releases/download/v1/a.tar.gz"),
        Row(WEB, "GET", f"/{name}/raw/main/README.md"),
        Row(API, "GET", f"/repos/{name}/zipball/main"),
        Row(API, "GET", f"/repos/{name}/tarball/main"),
    ]


def uploads(name: str) -> list[Row]:
    """Files that are added to a release."""
    return [Row(UPLOADS, "POST", f"/repos/{name}/releases/1/assets?name=a.txt", "x")]


def elsewhere(name: str) -> list[Row]:
    """What comes from hosts that take no credential of the user's."""
    return [
        Row("codeload.github.com", "GET", f"/{name}/zip/refs/heads/main"),
        Row("raw.githubusercontent.com", "GET", f"/{name}/main/README.md"),
        Row("objects.githubusercontent.com", "GET", f"/{name}/a.tar.gz"),
    ]


ACCOUNT = (
    Row(API, "GET", "/user/repos"),
    Row(API, "GET", "/search/code?q=x"),
    Row(API, "GET", "/notifications"),
    Row(API, "GET", "/issues"),
    Row(API, "GET", "/installation/repositories"),
    Row(API, "POST", "/user/repos", '{"name": "x"}'),
    Row(API, "POST", "/gists", '{"files": {}}'),
    Row(API, "PATCH", "/user", '{"name": "x"}'),
)
"""What is of the whole account."""


def of_owner(owner: str) -> list[Row]:
    """What is of all repositories of an owner."""
    return [
        Row(API, "GET", f"/users/{owner}/repos"),
        Row(API, "GET", f"/orgs/{owner}/repos"),
        Row(API, "POST", f"/orgs/{owner}/repos", '{"name": "x"}'),
    ]


def copies(name: str) -> list[Row]:
    """Writes to a repository of which another one comes."""
    return [
        Row(API, "POST", f"/repos/{name}/forks", "{}"),
        Row(API, "POST", f"/repos/{name}/transfer", '{"new_owner": "x"}'),
        Row(API, "POST", f"/repos/{name}/generate", '{"name": "x"}'),
    ]


def comparisons(listed: Repository, hidden: Repository) -> list[Row]:
    """Comparisons with a branch of another repository."""
    start, other = f"/repos/{listed.full_name}/compare", f"{hidden.owner}:{hidden.name}:main"
    return [
        Row(API, "GET", f"{start}/main...{other}"),
        Row(API, "GET", f"{start}/{other}...main"),
    ]


def same(owner: str, name: str) -> list[Row]:
    """Other spellings of one repository: case, and the ending that git adds."""
    return [
        Row(API, "GET", f"/repos/{owner.lower()}/{name.upper()}"),
        Row(API, "GET", f"/repos/{owner.upper()}/{name.lower()}"),
        Row(WEB, "GET", f"/{owner.swapcase()}/{name.lower()}/info/refs?service=git-upload-pack"),
        Row(WEB, "GET", f"/{owner.lower()}/{name.lower()}.git/info/refs?service=git-upload-pack"),
    ]


SPELLINGS = (
    "{own}/../../{other}",
    "{own}/../{name}",
    "{own}/%2e%2e/%2e%2e/{other}",
    "{own}/%2E%2E/{name}",
    "{own}/.%2e/{name}",
    "{own}/..%2f{name}",
    "{own}/%252e%252e/{name}",
    "{own}/..;/{name}",
    "{own}/..\\{name}",
    "{own}/..%5c{name}",
    "{own}//..//{name}",
    "{own}/./../{name}",
    "{owner}%2f{name}",
    "{owner}//{name}",
    "./{other}",
    "%2e/{other}",
    "x/../{other}",
    "{own}%2f..%2f{name}",
    "{own}%00/../{name}",
    "{own};/../{name}",
)
"""Paths behind a prefix that a server may read as another repository's, and a proxy as none."""


_STEPS = (
    "..",
    ".",
    "",
    "%2e%2e",
    "%2E.",
    "..;",
    ";x",
    "..%2f",
    "%2f..",
    "..%5c",
    "%252e%252e",
    "x",
)

ways = st.lists(
    st.builds(
        "{{own}}/{}/{{{}}}".format,
        st.lists(st.sampled_from(_STEPS), min_size=1, max_size=4).map("/".join),
        st.sampled_from(("name", "other")),
    ),
    min_size=4,
    max_size=12,
)
"""Further such paths: whether one leads elsewhere is said by who reads it."""


def spelled(listed: Repository, hidden: Repository, spelling: str) -> list[Row]:
    """Requests to another repository by an odd spelling, on each interface."""
    path = spelling.format(
        own=listed.full_name, other=hidden.full_name, owner=hidden.owner, name=hidden.name
    )
    return [
        Row(API, "GET", f"/repos/{path}"),
        Row(API, "GET", f"/repos/{path}/contents/README.md"),
        Row(WEB, "GET", f"/{path}/info/refs?service=git-upload-pack"),
        Row(WEB, "POST", f"/{path}.git/git-receive-pack", "0000"),
        Row(UPLOADS, "POST", f"/repos/{path}/releases/1/assets?name=a", "x"),
    ]


def by_number(hidden: Repository) -> list[Row]:
    """Requests to a repository by its number."""
    number = hidden.number
    return [
        Row(API, "GET", f"/repositories/{number}"),
        Row(API, "GET", f"/repositories/{number}/contents/README.md"),
        Row(API, "POST", f"/repositories/{number}/issues", '{"title": "x"}'),
        Row(API, "GET", f"/repositories/0{number}"),
        Row(API, "GET", f"/repositories/%30{number}"),
    ]


def alike(listed: Repository) -> list[str]:
    """Names that only look like a listed one: longer, shorter, with another separator."""
    owner, name = listed.owner, listed.name
    names = [f"{name}x", f"x{name}", name[:-1], f"{name}.wiki"]
    names += [name.translate(str.maketrans(".-_", "-_."))]
    found = [f"{owner}/{one}" for one in names] + [f"x{owner}/{name}", f"{owner}x/{name}"]
    return [one for one in found if one != listed.full_name and not one.endswith("/")]
