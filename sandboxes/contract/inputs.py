"""Session inputs: what a session works on, given when it starts, declared where it is used.

A point of a hook or a tool declares one by a keyword parameter,
`repo: Annotated[RepositoryContext, Depends()]`. All of them are checked before anything
is created.
"""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from sandboxes.contract.errors import InvalidSessionInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class SessionInput(BaseModel):
    """One input of a session: subclass it, name it by `input_id`, and declare its fields.

    Attributes:
        input_id: Names the input among those of a session, such as `"acme.repository"`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_id: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Depends:
    """Marks a parameter that takes a session input: `Annotated[T, Depends()]`."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One declaration of a session input.

    Attributes:
        user: Who declares it, such as `"hook SeedWorkspace.on_create"`.
        parameter: By which parameter.
        kind: The class of the input.
        optional: Whether the parameter has a default.
    """

    user: str
    parameter: str
    kind: type[SessionInput]
    optional: bool


def declared_inputs(user: str, function: Callable[..., Any]) -> tuple[Declared, ...]:
    """Find the session inputs that a function declares.

    Raises:
        InvalidSessionInput: A declaration cannot be read, or names no session input.
    """
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = _resolved(function, parameter.annotation)
        if isinstance(annotation, str) and "Depends" in annotation:
            raise InvalidSessionInput(
                f"{user}: the type of {name} cannot be found from {annotation!r}; "
                "import or define it at the top of its module"
            )
        if get_origin(annotation) is not Annotated or not _marked(annotation):
            continue
        kind = _without_none(get_args(annotation)[0])
        if not (isinstance(kind, type) and issubclass(kind, SessionInput)):
            raise InvalidSessionInput(
                f"{user}: {name} is no session input; derive its type from agents.SessionInput"
            )
        if not isinstance(getattr(kind, "input_id", None), str) or not kind.input_id.strip():
            raise InvalidSessionInput(
                f"{user}: {kind.__name__} has no input_id; "
                'name it in the class, such as input_id = "acme.repository"'
            )
        optional = parameter.default is not parameter.empty
        found.append(Declared(user, name, kind, optional))
    return tuple(found)


def check_all_given(user: str, function: Callable[..., Any], declared: Iterable[Declared]) -> None:
    """See to it that nothing is left out when a point of a hook is called.

    Raises:
        InvalidSessionInput: A parameter behind the first has neither a default nor an
            input.
    """
    inputs = {one.parameter for one in declared}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        free = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if not free and parameter.default is parameter.empty and name not in inputs:
            raise InvalidSessionInput(
                f"{user}: nothing gives {name} a value; "
                "annotate it as Annotated[T, agents.Depends()], or give it a default"
            )


def _resolved(function: Callable[..., Any], annotation: object) -> object:
    """The object that an annotation's text stands for, or the text where nothing does."""
    if not isinstance(annotation, str):
        return annotation
    bare = inspect.unwrap(getattr(function, "__func__", function))
    try:
        return eval(annotation, getattr(bare, "__globals__", {}), _enclosing(bare))  # noqa: S307 - what Python itself would have evaluated at the definition
    except Exception:  # noqa: BLE001 - whatever another one's annotation raises, it is no input
        return annotation


def _enclosing(function: Callable[..., Any]) -> dict[str, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    return dict(inspect.getclosurevars(function).nonlocals)


def _marked(annotation: object) -> bool:
    return any(mark is Depends or isinstance(mark, Depends) for mark in get_args(annotation)[1:])


def _without_none(kind: Any) -> Any:  # noqa: ANN401 - anything that may be annotated
    if get_origin(kind) not in (Union, UnionType):
        return kind
    kinds = [one for one in typing.get_args(kind) if one is not NoneType]
    return kinds[0] if len(kinds) == 1 else kind


class SessionInputs:
    """The inputs of one session, checked.

    Args:
        given: Inputs by `input_id`: instances, or JSON objects that make one.
        declared: All declarations of the session's hooks and tools.

    Raises:
        InvalidSessionInput: One is missing, of a wrong type, or declared by nobody.
    """

    def __init__(self, given: Mapping[str, object] | None, declared: Iterable[Declared]) -> None:
        self._declared = tuple(declared)
        self._values: dict[tuple[str, type[SessionInput]], SessionInput] = {}
        given = MappingProxyType(dict(given or {}))
        for one in self._declared:
            key = (one.kind.input_id, one.kind)
            if one.kind.input_id in given:
                self._values[key] = _checked(one, given[one.kind.input_id])
            elif not one.optional:
                raise InvalidSessionInput(
                    f"{one.user}: session input {one.kind.input_id!r} ({one.parameter}) is "
                    "missing; pass it in session_inputs="
                )
        known = sorted({one.kind.input_id for one in self._declared})
        for name in given:
            if name not in known:
                raise InvalidSessionInput(
                    f"session input {name!r} is declared by no hook and no tool; "
                    f"{'pass only ' + ', '.join(known) if known else 'leave it out'}"
                )

    def arguments(self, declared: Iterable[Declared]) -> dict[str, SessionInput]:
        """Return the keyword arguments of a function, from its declarations."""
        keys = ((one.parameter, (one.kind.input_id, one.kind)) for one in declared)
        return {parameter: self._values[key] for parameter, key in keys if key in self._values}

    def dump(self) -> dict[str, Any]:
        """Return the inputs as JSON objects, from which they can be made again."""
        return {name: value.model_dump(mode="json") for (name, _), value in self._values.items()}


def _checked(declared: Declared, value: object) -> SessionInput:
    subject = f"{declared.user}: session input {declared.kind.input_id!r} ({declared.parameter})"
    remedy = f"pass a {declared.kind.__name__}"
    if isinstance(value, declared.kind):
        return value
    if isinstance(value, BaseModel) or not isinstance(value, dict):
        raise InvalidSessionInput(f"{subject} is of type {type(value).__name__}; {remedy}")
    try:
        return declared.kind.model_validate(value)
    except ValidationError as error:
        # Without the values, which may be secrets put in the wrong place.
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False)
        )
    raise InvalidSessionInput(f"{subject} is no {declared.kind.__name__} ({faults}); {remedy}")
