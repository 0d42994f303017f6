"""GraphQL requests to GitHub: reads of listed repositories, and no way on from there."""

from __future__ import annotations

import json

import pytest

from sandboxes.egress.denied import Denied
from sandboxes.egress.github import GitHubRequest, GitHubRules, Granted

LISTED = GitHubRules(Granted(("octo/tools",)))
EVERYTHING = GitHubRules(Granted("all"))


def request(body: bytes) -> GitHubRequest:
    return GitHubRequest("api.github.com", "POST", "/graphql", body)


def body(query: str, **variables: object) -> bytes:
    return json.dumps({"query": query, "variables": variables}).encode()


def granted(content: bytes, rules: GitHubRules = LISTED) -> bool:
    try:
        assert rules.decide(request(content)).scheme == "bearer"
    except Denied:
        return False
    return True


def inside(selection: str) -> bytes:
    return body(f'{{ repository(owner: "octo", name: "tools") {{ {selection} }} }}')


@pytest.mark.parametrize(
    "content",
    [
        body('{ repository(owner: "Octo", name: "Tools") { id name } }'),
        body(
            "query Info($owner: String!, $name: String!) { repository(owner: $owner, name: $name)"
            " { ...repo parent { ...repo } mergeCommitAllowed } } fragment repo on Repository"
            " { id name owner { login } hasIssuesEnabled defaultBranchRef { name } }",
            owner="octo",
            name="tools",
        ),
        body('query($n: String = "tools") { repository(owner: "octo", name: $n) { id } }'),
        body('{ a: repository(owner: "octo", name: "tools") { b: name } viewer { login } }'),
        inside("issues(first: 30, states: OPEN) { totalCount nodes { number title labels(first: 9)"
               " { nodes { name color } } author { login } } pageInfo { hasNextPage endCursor } }"),
        inside("pullRequest(number: 1) { title headRepositoryOwner { login ... on User { name } }"
               " commits(last: 1) { nodes { commit { oid statusCheckRollup { contexts(first: 9)"
               " { nodes { ... on CheckRun { name status } } } } } } }"
               " reviewRequests(first: 9) { nodes { requestedReviewer { ... on Team { slug"
               " organization { login } } } } } }"),
        inside('object(expression: "main:README.md") { ... on Blob { text } }'),
        inside("releases(first: 3) { nodes { tagName isDraft } }"),
        body("{ rateLimit { remaining } __typename }"),
        body('{ __type(name: "Issue") { fields(includeDeprecated: true) { name } } }'),
        json.dumps({"query": "{ viewer { login } }"}).encode(),
        json.dumps({"query": "{ viewer { login } }", "variables": None}).encode(),
    ],
)  # fmt: skip
def test_reads_of_a_listed_repository_go_through(content: bytes) -> None:
    assert granted(content)


@pytest.mark.parametrize(
    "content",
    [
        # Another repository, by each way to name one.
        body('{ repository(owner: "octo", name: "hidden") { id } }'),
        body('{ a: repository(owner: "octo", name: "tools") { id }'
             ' b: repository(owner: "octo", name: "hidden") { id } }'),
        body("query($n: String!) { repository(owner: \"octo\", name: $n) { id } }", n="hidden"),
        body('query($n: String = "hidden") { repository(owner: "octo", name: $n) { id } }'),
        body('query($n: String = "tools") { repository(owner: "octo", name: $n) { id } }',
             n="hidden"),
        body('query($n: String = "tools") { repository(owner: "octo", name: $n) { id } }', n=None),
        body("query($n: String!) { repository(owner: \"octo\", name: $n) { id } }", n=["tools"]),
        body('{ repository(owner: "octo", name: "tools", name: "hidden") { id } }'),
        body('{ repository(name: "tools") { id } }'),
        body('{ ...on Query { repository(owner: "octo", name: "hidden") { id } } }'),
        body('query { ...f } fragment f on Query { repository(owner: "x", name: "y") { id } }'),
        body('{ node(id: "R_1") { id } }'),
        body('{ nodes(ids: ["R_1"]) { id } }'),
        body('{ search(query: "x", type: ISSUE, first: 1) { nodes { ... on Issue { title } } } }'),
        body('{ user(login: "octo") { repositories(first: 9) { nodes { name } } } }'),
        body('{ organization(login: "octo") { id } }'),
        body('{ repositoryOwner(login: "octo") { id } }'),
        body('{ resource(url: "https://github.com/octo/hidden") { url } }'),
        body("{ viewer { repositories(first: 9) { nodes { name } } } }"),
        body("{ viewer { login: organizations(first: 1) { nodes { name } } } }"),
        # From a listed repository to others.
        inside("owner { ... on User { repositories(first: 9) { nodes { name } } } }"),
        inside("owner { login: repositories(first: 9) { nodes { name } } }"),
        inside('owner { repository(name: "hidden") { id } }'),
        inside("parent { issues(first: 9) { nodes { title } } }"),
        inside("parent { defaultBranchRef { target { ... on Commit { tree { oid } } } } }"),
        inside("templateRepository { object(expression: \"main\") { oid } }"),
        inside("forks(first: 9) { nodes { name } }"),
        inside("pullRequest(number: 1) { headRepository { object(expression: \"x\") { oid } } }"),
        inside("pullRequest(number: 1) { closingIssuesReferences(first: 9) { nodes { title } } }"),
        inside("issue(number: 1) { timelineItems(first: 9) { nodes { __typename } } }"),
        inside("issue(number: 1) { author { ... on User { gists(first: 9) { totalCount } } } }"),
        inside("issue(number: 1) { assignees(first: 1) { nodes { gists { totalCount } } } }"),
        inside("issue(number: 1) { projectCards { nodes { project { body } } } }"),
        inside("repositoryTopics(first: 1) { nodes { topic { repositories { totalCount } } } }"),
        inside("...f } } fragment f on Repository { owner { ...g } } fragment g on User {"
               " repositories(first: 9) { nodes { name }"),
        inside("something_new"),
        # Writes.
        body('mutation { addStar(input: {starrableId: "R_1"}) { clientMutationId } }'),
        body("subscription { x }"),
        body("query A { viewer { login } } mutation B { x { id } }"),
        # What another reader could take otherwise, or what never ends.
        b"not json",
        b"[]",
        b'[{"query": "{ viewer { login } }"}]',
        b'{"query": "{ viewer { login } }", "query": "{ node(id: 1) { id } }"}',
        b'{"query": "{ viewer { login } }", "extensions": {"persistedQuery": {}}}',
        b'{"variables": {}}',
        b'{"query": ["{ viewer { login } }"]}',
        b'{"query": "{ viewer { login } }", "variables": []  , "operationName": 1}',
        b"{\"query\": \"{ viewer { login \"}",
        body("query A { viewer { login } } query B { viewer { login } }"),
        body("{ viewer { login } } type X { a: Int }"),
        inside("...f } } fragment f on Repository { ...f"),
        inside("...missing"),
        body("{ " + "viewer { login } " * 5000 + "}"),
        inside("issues { nodes { " * 60 + "id" + " } }" * 60),
        inside("... { " * 3000 + "id" + " }" * 3000),
        b'{"query": ' + b"[" * 100_000,
    ],
    ids=lambda content: content[:60].decode(),
)  # fmt: skip
def test_what_leads_elsewhere_or_writes_is_denied(content: bytes) -> None:
    assert not granted(content)


def test_a_chain_of_fragments_that_doubles_each_time_is_given_up() -> None:
    doubling = " ".join(
        f"fragment f{number} on Repository {{ ...f{number + 1} ...f{number + 1} }}"
        for number in range(30)
    )

    assert not granted(inside(f"...f0 }} }} {doubling} fragment f30 on Repository {{ id"))


def test_all_repositories_need_no_look_into_the_body() -> None:
    mutation = request(b"mutation { x }")

    assert LISTED.wants_body(mutation)
    assert not EVERYTHING.wants_body(mutation)
    assert granted(b"", EVERYTHING)


def test_a_way_to_graphql_that_is_spelled_otherwise_is_none() -> None:
    for target in ("/graphql/", "/GraphQL", "/graphql?x=1", "/graph%71l?x"):
        with pytest.raises(Denied):
            LISTED.decide(
                GitHubRequest("api.github.com", "POST", target, body("{ viewer { login } }"))
            )
