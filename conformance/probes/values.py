"""What a value type does when it is built, compared, hashed and changed.

Checks call value types directly, so what these raise is caught here: it is the
subject's, never the harness's.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import reject

from conformance.subject.blame import shown
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.subject.targets import Target
    from sandboxes.contract import Network

T = TypeVar("T")

_STRANGERS: tuple[object, ...] = (None, "allow", 7, (), [])

HOST = "packages.example.org"
"""An entry that every allow list takes."""


def refusal(call: Callable[..., object], *args: Any, **options: Any) -> Exception | None:  # noqa: ANN401 - the call's own
    """The exception that building or asking a value raises, or None."""
    try:
        call(*args, **options)
    except Exception as error:  # noqa: BLE001 - any error is a refusal
        return error
    return None


def built(call: Callable[..., T], *args: Any, **options: Any) -> T:  # noqa: ANN401 - the call's own
    """Build or ask a value that is right.

    Raises:
        Violation: It raised.
    """
    try:
        return call(*args, **options)
    except Exception as error:
        raise Violation(
            f"{written(call, *args, **options)} raised {shown(error)}",
            remedy="accept what is right",
        ) from error


def listing(target: Target, texts: Sequence[str]) -> Network:
    """Build an allow list of right entries.

    Raises:
        Violation: Not even the plainest one can be built.
        UnsatisfiedAssumption: These are refused, of which NET-02 speaks.
    """
    if refusal(target.Network.allow, hosts=texts) is not None:
        built(target.Network.allow, hosts=[HOST])
        reject()
    return target.Network.allow(hosts=texts)


def written(call: Callable[..., object], *args: Any, **options: Any) -> str:  # noqa: ANN401
    """Write a call as a person does."""
    owner = getattr(call, "__self__", None)
    told = [*map(repr, args), *(f"{name}={value!r}" for name, value in options.items())]
    of = "" if owner is None else f"{owner.__name__ if isinstance(owner, type) else repr(owner)}."
    return f"{of}{call.__name__}({', '.join(told)})"


def equal(first: object, second: object) -> bool:
    """Whether two values are equal, in both directions and by both operators."""
    return bool(
        built(operator.eq, first, second)
        and built(operator.eq, second, first)
        and not built(operator.ne, first, second)
    )


def not_equal_by_value(value: object, twin: object, others: Iterable[object]) -> str:
    """Compare and hash a value.

    Args:
        value: The value.
        twin: What was built from the same.
        others: What was built from something else.

    Returns:
        What is wrong, as a person writes it; empty if nothing is.
    """
    if not equal(value, twin):
        return "it is unequal to another one of the same"
    for other in others:
        if built(operator.eq, value, other) or not built(operator.ne, value, other):
            return f"it is equal to {other!r}"
    for stranger in _STRANGERS:
        error = refusal(operator.eq, value, stranger)
        if error is not None:
            return f"to compare it with {stranger!r} raised {shown(error)}"
        if built(operator.eq, value, stranger):
            return f"it is equal to {stranger!r}"
    error = refusal(hash, value)
    if error is not None:
        return f"its hash raised {shown(error)}"
    return "" if hash(value) == hash(twin) else "its hash is not that of an equal one"


def emptied(value: object, fields: Iterable[str]) -> str:
    """Try to take everything out of what a value gives out under these names.

    Returns:
        The first of it that is no longer what it was, as a person writes it; empty if none.
    """
    for name in fields:
        held: Any = getattr(value, name, ())
        before = list(held)
        refusal(lambda held=held: held.clear())
        if list(getattr(value, name, ())) != before:
            return f"its {name} could be emptied"
    return ""


def changed(value: object, fields: Iterable[str]) -> str:
    """Try to set and to delete each of these attributes of a value.

    Returns:
        The first of it that raised nothing, as a person writes it; empty if all raised.
    """
    for name in fields:
        present = getattr(value, name)
        if refusal(setattr, value, name, present) is None:
            return f"{name} could be set"
        if refusal(delattr, value, name) is None:
            return f"{name} could be deleted"
    return ""
