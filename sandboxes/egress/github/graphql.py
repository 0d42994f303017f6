"""GraphQL: queries that read granted repositories, and lead nowhere else.

What is sent is written anew from what was judged, and follows no rename: GitHub would answer
for the new name, which may not be granted.

There is no schema here to follow: a field is let through by its name alone, and what it may
hold is said by its kind in `fields`. A field that nobody has looked at is denied.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import graphql as language
from graphql import (
    ArgumentNode,
    BooleanValueNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    NameNode,
    OperationDefinitionNode,
    OperationType,
    StringValueNode,
    VariableNode,
)

from sandboxes.egress.denied import Denied
from sandboxes.egress.github.fields import INSIDE, PEOPLE, REPOSITORIES, ROOTS, WORDS
from sandboxes.egress.github.granted import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphql import SelectionSetNode

    from sandboxes.egress.github.granted import Granted

LONGEST = 256 * 1024
"""The most bytes of a request's body."""

_MOST_TOKENS = 5000
_DEEPEST = 40
_MOST_FIELDS = 5000


_RENAMES = "followRenames"
_FOLLOWS_NONE = ArgumentNode(name=NameNode(value=_RENAMES), value=BooleanValueNode(value=False))


class _Request(NamedTuple):
    content: dict[str, Any]
    document: DocumentNode
    operation: OperationDefinitionNode
    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, Any]


def decide(body: bytes, granted: Granted) -> bytes:
    """Judge the body of a GraphQL request, and give what is sent instead.

    Raises:
        Denied: It is none that is understood, writes, or could reach beyond the granted
            repositories.
    """
    try:
        request = _read(body)
        named = _judge(request, granted)
        query = language.print_ast(language.visit(request.document, _Renamed(named)))
    except RecursionError:
        raise _malformed() from None
    return json.dumps({**request.content, "query": query}).encode()


def _judge(request: _Request, granted: Granted) -> list[FieldNode]:
    """Judge a request, and give the fields that name a repository."""
    fields, found = _Fields(request.fragments), []
    for field in fields.of(request.operation.selection_set):
        name = field.name.value
        if name == "repository":
            granted.check(_named(field, request))
            fields.check(field, INSIDE)
            found.append(field)
        elif name in ROOTS:
            fields.check(field, ROOTS[name])
        else:
            raise _not_known(name)
    return found


class _Renamed(language.Visitor):
    """Has repositories that go by another name by now count as none."""

    def __init__(self, fields: list[FieldNode]) -> None:
        super().__init__()
        # By identity: nodes that look alike may stand elsewhere.
        self._fields = {id(field) for field in fields}

    def leave_field(self, node: FieldNode, *_: object) -> FieldNode | None:
        """Give the field that is written instead; None leaves it."""
        if id(node) not in self._fields:
            return None
        kept = [one for one in node.arguments or () if one.name.value != _RENAMES]
        return replace(node, arguments=(*kept, _FOLLOWS_NONE))


def _read(body: bytes) -> _Request:
    content = _content(body)
    try:
        document = language.parse(
            content["query"], no_location=True, max_tokens=_MOST_TOKENS, max_source_length=LONGEST
        )
    except language.GraphQLError:
        raise _malformed() from None
    operation = _operation(document)
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    if len(fragments) + 1 != len(document.definitions):
        raise _malformed()
    return _Request(content, document, operation, fragments, content.get("variables") or {})


def _content(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body.decode("utf-8"), object_pairs_hook=_once)
    except ValueError:
        raise _malformed() from None
    known = {"query", "variables", "operationName"}
    if not isinstance(content, dict) or not content.keys() <= known:
        raise _malformed()
    if not isinstance(content.get("query"), str):
        raise _malformed()
    if not isinstance(content.get("variables"), dict | None):
        raise _malformed()
    if not isinstance(content.get("operationName"), str | None):
        raise _malformed()
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; of a name that comes twice, a server may take the other one."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _operation(document: DocumentNode) -> OperationDefinitionNode:
    found = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    if len(found) != 1:
        raise _malformed()
    if found[0].operation is not OperationType.QUERY:
        raise Denied(403, "GitHubBinding lets no GraphQL mutation through; use git or REST")
    return found[0]


def _named(field: FieldNode, request: _Request) -> Repository:
    """The repository that a root field asks for."""
    arguments = field.arguments or ()
    given = {argument.name.value: argument.value for argument in arguments}
    known = {"owner", "name", _RENAMES}
    if len(given) != len(arguments) or not {"owner", "name"} <= given.keys() <= known:
        raise _malformed()
    return Repository.of(_text(given["owner"], request), _text(given["name"], request))


def _text(value: object, request: _Request) -> str:
    if isinstance(value, StringValueNode):
        return value.value
    text = None
    if isinstance(value, VariableNode):
        text = _variable(value.name.value, request)
    if not isinstance(text, str):
        raise _malformed()
    return text


def _variable(name: str, request: _Request) -> object:
    if name in request.variables:
        return request.variables[name]
    found = [
        definition.default_value
        for definition in request.operation.variable_definitions or ()
        if definition.variable.name.value == name
    ]
    if len(found) == 1 and isinstance(found[0], StringValueNode):
        return found[0].value
    return None


class _Fields:
    """The fields of a request, with its fragments put in."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._seen = 0

    def of(
        self, selection: SelectionSetNode | None, above: tuple[str, ...] = ()
    ) -> Iterator[FieldNode]:
        """Give the fields of a selection, whatever type a fragment puts them on."""
        for node in selection.selections if selection else ():
            self._seen += 1
            if self._seen > _MOST_FIELDS:
                raise _malformed()
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, InlineFragmentNode):
                yield from self.of(node.selection_set, above)
            elif isinstance(node, FragmentSpreadNode):
                name = node.name.value
                if name in above or name not in self._fragments or len(above) > _DEEPEST:
                    raise _malformed()
                yield from self.of(self._fragments[name].selection_set, (*above, name))

    def check(self, field: FieldNode, words: frozenset[str], depth: int = 0) -> None:
        """Judge what a field holds.

        Args:
            field: The field.
            words: What may be in it.
            depth: How deep it is.

        Raises:
            Denied: Something in it is not let through.
        """
        if depth > _DEEPEST:
            raise _malformed()
        for inner in self.of(field.selection_set):
            name = inner.name.value
            if name not in words:
                raise _not_known(name)
            if name in PEOPLE:
                self.check(inner, PEOPLE[name], depth + 1)
            elif name in REPOSITORIES:
                self.check(inner, REPOSITORIES[name], depth + 1)
            elif name in WORDS:
                self.check(inner, frozenset(), depth + 1)
            else:
                self.check(inner, words, depth + 1)


def _malformed() -> Denied:
    return Denied(400, "the GraphQL request cannot be judged; send one operation as JSON")


def _not_known(name: str) -> Denied:
    # A GraphQL name is of letters, digits and `_`; it may still be long.
    return Denied(
        403, f"GitHubBinding lets the GraphQL field {name[:60]} not through; use git or REST"
    )
