"""Sandbox hooks: code that runs when a sandbox is ready and when its session closes."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from sandboxes.contract import messages
from sandboxes.contract.errors import RefusedConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Self

    from pydantic import JsonValue

    from sandboxes.contract.running import RunningSandbox


class SandboxCallbackContext:
    """What both points of a hook get.

    Attributes:
        sandbox: Runs commands with `execute()` and reads files with `read_file()`.
    """

    def __init__(self, sandbox: RunningSandbox) -> None:
        self.sandbox = sandbox


class SandboxHook:
    """Code that runs when the sandbox is created and when the session closes.

    Both points may declare session inputs, by keyword parameters that are annotated with
    `Annotated[T, Depends()]`.

    A hook keeps no state between its two points. The arguments that a subclass is
    constructed with are recorded, so that a deployed agent rebuilds it: they must be
    JSON values, unless the subclass writes its own pair of `to_unified_state` and
    `from_unified_state`.
    """

    _arguments: dict[str, JsonValue]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: ANN401 - a subclass's own signature
        """Record the arguments before the subclass's constructor sees them."""
        hook = super().__new__(cls)
        if not cls._has_its_own_pair():
            hook._arguments = cls._recorded(args, kwargs)
        return hook

    def __init__(self) -> None:
        # Without this, a subclass that has no constructor would take any argument:
        # object's own is lenient towards classes with a __new__.
        pass

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, JsonValue]]:
        """What copy and pickle pass to `__new__`, which would miss its arguments."""
        return (), dict(getattr(self, "_arguments", {}))

    @classmethod
    def _has_its_own_pair(cls) -> bool:
        own = cls.__mro__[: cls.__mro__.index(SandboxHook)]
        return all(
            any(name in vars(base) for base in own)
            for name in ("to_unified_state", "from_unified_state")
        )

    @classmethod
    def _recorded(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, JsonValue]:
        signature = inspect.signature(cls.__init__)
        arguments: dict[str, Any] = {}
        for name, value in list(signature.bind(None, *args, **kwargs).arguments.items())[1:]:
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                arguments.update(value)
            elif kind is inspect.Parameter.VAR_POSITIONAL and value:
                raise RefusedConfiguration(messages.nameless_arguments(cls.__name__, name))
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                arguments[name] = value
        for name, value in arguments.items():
            _check_json(cls.__name__, name, value)
        copied: dict[str, JsonValue] = json.loads(json.dumps(arguments))
        return copied

    def to_unified_state(self) -> dict[str, JsonValue]:
        """Return the arguments the hook was constructed with."""
        copied: dict[str, JsonValue] = json.loads(json.dumps(self._arguments))
        return copied

    @classmethod
    def from_unified_state(cls, state: dict[str, JsonValue]) -> Self:
        """Rebuild the hook by calling its constructor with the recorded arguments."""
        return cls(**state)

    if TYPE_CHECKING:
        # So that a subclass may add the session inputs that it declares.
        on_create: Callable[..., Coroutine[Any, Any, None]]
        on_destroy: Callable[..., Coroutine[Any, Any, None]]
    else:

        async def on_create(self, ctx: SandboxCallbackContext) -> None:
            """Runs once when the sandbox is ready, before the agent starts."""

        async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
            """Runs once when the session closes."""


def _check_json(hook: str, name: str, value: object) -> None:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        text = ""
    # What JSON gives back must be what the constructor was given.
    if not text or not _is_json(value):
        raise RefusedConfiguration(messages.no_json(hook, name, value))


def _is_json(value: object) -> bool:
    """Whether a value is written as JSON and read again as the same, types included.

    A tuple would come back as a list, the member of an enum as its value, an integer key
    as text.
    """
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    return value is None or type(value) in (bool, int, float, str)
