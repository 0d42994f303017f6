"""GraphQL as the lab's GitHub answers it: by the names of fields, from plain values.

What a query touches is what is written down, whatever way it takes: a field that leads to a
repository notes it when it is walked through.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import graphql as language
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
)

from conformance.lab.cloud.wire import Answer
from conformance.lab.github.place import WEB
from conformance.lab.github.repositories import BRANCH
from conformance.lab.github.routes import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphql import SelectionSetNode

    from conformance.lab.github.repositories import Repositories, Repository, Token

_MOST_FIELDS = 20_000


def answer(body: bytes, known: Repositories, token: Token | None) -> tuple[Answer, frozenset[str]]:
    """Answer a request, and say what it could show or change."""
    if token is None:
        return Answer.of(401, message="This endpoint requires you to be authenticated."), _NONE
    try:
        content = json.loads(body)
        document = language.parse(content["query"], no_location=True)
    except (ValueError, KeyError, TypeError, language.GraphQLError, RecursionError):
        return Answer.of(200, errors=[{"message": "Problems parsing the request"}]), _NONE
    answering = _Answering(known, token, content.get("variables") or {}, document)
    data = answering.answered(content.get("operationName"))
    said: dict[str, Any] = {"data": data}
    if answering.errors:
        said["errors"] = answering.errors
    return Answer(200, json.dumps(said).encode()), frozenset(answering.meant)


_NONE: frozenset[str] = frozenset()


class _Answering:
    def __init__(
        self,
        known: Repositories,
        token: Token,
        variables: Mapping[str, Any],
        document: language.DocumentNode,
    ) -> None:
        self._known, self._token, self._variables = known, token, variables
        self._operations = [
            one for one in document.definitions if isinstance(one, OperationDefinitionNode)
        ]
        self._fragments = {
            one.name.value: one
            for one in document.definitions
            if isinstance(one, FragmentDefinitionNode)
        }
        self._left = _MOST_FIELDS
        self._defaults: dict[str, Any] = {}
        self.meant: set[str] = set()
        self.errors: list[dict[str, Any]] = []

    def answered(self, name: str | None) -> dict[str, Any] | None:
        """Give the data of one operation."""
        named = [
            one for one in self._operations if not name or (one.name and one.name.value == name)
        ]
        if not named:
            return None
        operation = named[0]
        self._defaults = {
            one.variable.name.value: language.value_from_ast_untyped(one.default_value)
            for one in operation.variable_definitions or ()
            if one.default_value is not None
        }
        if operation.operation is not OperationType.QUERY:
            return self._changed(operation)
        return self._walked(operation.selection_set, _Root(self))

    def _changed(self, operation: OperationDefinitionNode) -> dict[str, Any]:
        """A mutation is of the repositories whose ids it brings; without one, of the account."""
        ids: set[str] = set()
        data: dict[str, Any] = {}
        for field in self._fields(operation.selection_set, {}):
            ids |= set(_texts(self._arguments(field)))
            data[_key(field)] = {"clientMutationId": None}
        found = [one for one in map(self._known.of_node, ids) if one is not None]
        for repository in found:
            self.touch(repository)
        if not found:
            self.meant.add(ACCOUNT)
        return data

    def touch(self, repository: Repository) -> bool:
        """Note a repository, and say whether it may be seen."""
        self.meant.add(repository.full_name.lower())
        return self._token.reaches(repository)

    def everything(self) -> list[Any]:
        """Note all of the account's, and give what may be seen of it."""
        self.meant.add(ACCOUNT)
        seen = [one for one in self._known.all() if self._token.reaches(one)]
        return [_RepositoryValue(self, one) for one in seen[-30:]]

    def repository(self, owner: str, name: str, *, renames: bool = True) -> Any:  # noqa: ANN401
        """Give a repository, by a former name too where renames are followed."""
        found = self._known.named(owner, name)
        if found is None and renames:
            found = self._known.formerly(owner, name)
        if found is None:
            self.meant.add(f"{owner}/{name}".lower())
        if found is None or not self.touch(found):
            self.errors.append(
                {"type": "NOT_FOUND", "message": "Could not resolve to a Repository"}
            )
            return None
        return _RepositoryValue(self, found)

    def of_node(self, node: str) -> Any:  # noqa: ANN401 - JSON, or an object that is walked
        """Give what an id is of."""
        found = self._known.of_node(node)
        if found is None:
            self.meant.add(ACCOUNT)
            return None
        return _RepositoryValue(self, found) if self.touch(found) else None

    def _walked(self, selection: SelectionSetNode | None, value: _Value) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for field in self._fields(selection, {value.kind: True}):
            found = value.field(field.name.value, self._arguments(field))
            data[_key(field)] = self._completed(field, found)
        return data

    def _completed(self, field: FieldNode, found: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(found, list):
            return [self._completed(field, one) for one in found]
        if isinstance(found, dict):
            found = _Plain(found)
        if isinstance(found, _Value):
            return self._walked(field.selection_set, found)
        return found

    def _fields(self, selection: SelectionSetNode | None, kinds: Mapping[str, bool]) -> Any:  # noqa: ANN401
        for node in selection.selections if selection else ():
            self._left -= 1
            if self._left < 0:
                return
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition
                if condition is None or _applies(condition.name.value, kinds):
                    yield from self._fields(node.selection_set, kinds)
            elif isinstance(node, FragmentSpreadNode) and node.name.value in self._fragments:
                fragment = self._fragments[node.name.value]
                if _applies(fragment.type_condition.name.value, kinds):
                    yield from self._fields(fragment.selection_set, kinds)

    def _arguments(self, field: FieldNode) -> dict[str, Any]:
        variables = {**self._defaults, **self._variables}
        return {
            one.name.value: language.value_from_ast_untyped(one.value, variables)
            for one in field.arguments or ()
        }


def _applies(kind: str, kinds: Mapping[str, bool]) -> bool:
    return not kinds or "" in kinds or kind in kinds or kind in ("Node", "Actor", "RepositoryOwner")


def _key(field: FieldNode) -> str:
    return field.alias.value if field.alias else field.name.value


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


class _Value:
    """Something with fields; one that it does not know is null."""

    kind = ""

    def field(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        raise NotImplementedError


class _Plain(_Value):
    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.kind = str(fields.get("__typename", ""))

    def field(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        found = self._fields.get(name)
        return found(arguments) if callable(found) else found


def _pages(*nodes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON, or an object that is walked
    return {
        "nodes": list(nodes),
        "edges": [{"node": node, "cursor": "1"} for node in nodes],
        "totalCount": len(nodes),
        "pageInfo": {"hasNextPage": False, "endCursor": "1"},
    }


class _RepositoryValue(_Value):
    kind = "Repository"

    def __init__(self, answering: _Answering, repository: Repository) -> None:
        self._answering, self._repository = answering, repository

    def field(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        one = self._repository
        answers: dict[str, Callable[[], Any]] = {
            "owner": lambda: _Owner(self._answering, one.owner),
            "forks": lambda: _pages(*self._answering.everything()),
            "issue": self._issue,
            "issues": lambda: _pages(self._issue()),
            "issueOrPullRequest": self._issue,
        }
        if name in answers:
            return answers[name]()
        plain: dict[str, Any] = {
            "__typename": "Repository",
            "id": one.node,
            "databaseId": one.number,
            "name": one.name,
            "nameWithOwner": one.full_name,
            "description": one.marker,
            "isPrivate": one.private,
            "visibility": "PRIVATE" if one.private else "PUBLIC",
            "url": f"https://{WEB}/{one.full_name}",
            "viewerPermission": "ADMIN",
            "hasIssuesEnabled": True,
            "hasWikiEnabled": False,
            "defaultBranchRef": {"name": BRANCH, "prefix": "refs/heads/"},
            "object": {"__typename": "Blob", "text": one.marker, "oid": "0" * 40},
            "stargazerCount": 0,
            "repositoryTopics": _pages(),
        }
        if name in plain:
            return plain[name]
        # The lists that it does not have are empty, since clients read into them.
        return _pages() if name.endswith("s") and not name.startswith(("is", "has")) else None

    def _issue(self) -> dict[str, Any]:
        one = self._repository
        return {
            "__typename": "Issue",
            "id": one.issue_node,
            "number": 1,
            "title": one.marker,
            "body": one.marker,
            "state": "OPEN",
            "url": f"https://{WEB}/{one.full_name}/issues/1",
            "updatedAt": "2026-01-01T00:00:00Z",
            "createdAt": "2026-01-01T00:00:00Z",
            "labels": _pages(),
            "assignees": _pages(),
            "comments": _pages(),
            "projectCards": _pages(),
            "author": {"login": "lab-user"},
            "repository": lambda _: self,
        }


class _Owner(_Value):
    kind = "User"

    def __init__(self, answering: _Answering, login: str) -> None:
        self._answering, self._login = answering, login

    def field(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        if name == "repository":
            return self._answering.repository(self._login, str(arguments.get("name")))
        if name in ("repositories", "organizations", "gists", "repositoriesContributedTo"):
            return _pages(*self._answering.everything())
        return {"__typename": "User", "login": self._login, "id": "U_lab1", "name": ""}.get(name)


class _Root(_Value):
    kind = "Query"

    def __init__(self, answering: _Answering) -> None:
        self._answering = answering

    def field(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        answering = self._answering
        if name == "repository":
            return answering.repository(
                str(arguments.get("owner")),
                str(arguments.get("name")),
                renames=arguments.get("followRenames") is not False,
            )
        if name == "viewer":
            return _Owner(answering, "lab-user")
        if name == "node":
            return answering.of_node(str(arguments.get("id")))
        if name == "nodes":
            return [answering.of_node(str(one)) for one in arguments.get("ids") or ()]
        if name == "resource":
            parts = str(arguments.get("url")).split("/")
            return answering.repository(*parts[3:5]) if len(parts) >= 5 else None
        if name == "search":
            return _pages(*answering.everything())
        if name in ("user", "organization", "repositoryOwner"):
            answering.meant.add(ACCOUNT)
            return _Owner(answering, str(arguments.get("login")))
        if name == "__type":
            return {"name": arguments.get("name"), "fields": [], "inputFields": []}
        return {"__typename": "Query", "rateLimit": {"limit": 5000, "remaining": 4999}}.get(name)
