"""BND-01, BND-24: what a header binding is made of, and how long a credential may live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes import values
from conformance.requirements import BND_01, BND_24
from conformance.strategies import binding_values
from conformance.strategies.each import each
from conformance.verdicts import Violation
from sandboxes.contract import GitHubBinding, HeaderBinding, MistralApiBinding

if TYPE_CHECKING:
    from conformance.strategies.binding_values import Wrong
    from conformance.subject.targets import Target


@verifies(BND_01)
@needs(binding=HeaderBinding)
@given(fields=binding_values.right)
@each("fields", [dict(binding_values.FIELDS)])
def test_a_right_binding_is_kept_as_it_is(target: Target, fields: dict[str, Any]) -> None:
    """A binding of right parts is built, holds what it was given, and has the defaults."""
    built = values.built(target.HeaderBinding, **fields)
    held = {name: getattr(built, name, None) for name in fields}
    if held != fields:
        raise Violation(
            f"{target.HeaderBinding.__name__}({fields!r}) holds {held!r}",
            remedy="keep each part as it was given",
        )
    least = {name: fields[name] for name in ("host", "header", "secret_name")}
    short = values.built(target.HeaderBinding, **least)
    if (short.path_prefix, short.prefix, short.suffix) != ("/", "", ""):
        raise Violation(
            f"without them, path_prefix, prefix and suffix of {short!r} are not '/', '' and ''",
            remedy="bind the whole host and add nothing where nothing is said",
        )


@verifies(BND_01)
@needs(binding=HeaderBinding)
@given(wrong=binding_values.wrong)
@each("wrong", binding_values.WRONG)
def test_a_wrong_part_of_a_binding_raises(target: Target, wrong: Wrong) -> None:
    """A host, header name, prefix of paths or text around the value that is unusable raises."""
    values.built(target.HeaderBinding, **binding_values.FIELDS)
    if values.refusal(target.HeaderBinding, **wrong.fields) is None:
        raise Violation(
            f"HeaderBinding(..., {wrong.field}={wrong.text!r}) raised nothing",
            remedy="parse the host as an entry and the header as a token, let path_prefix begin "
            "with / and no part have CR, LF or NUL",
        )


def _lives(kind: type[Any], seconds: object, fields: dict[str, Any]) -> None:
    """Judge that a lifetime is refused.

    Raises:
        Violation: It is taken.
    """
    if values.refusal(kind, **fields, ttl_seconds=seconds) is None:
        raise Violation(
            f"{kind.__name__}(ttl_seconds={seconds!r}) raised nothing",
            remedy="take whole seconds, one or more",
        )


@verifies(BND_24)
@needs(binding=GitHubBinding)
@given(seconds=binding_values.no_lifetimes, right=binding_values.lifetimes)
@each("seconds", binding_values.NO_LIFETIMES, right=1)
def test_a_lifetime_of_github_access_is_positive(
    target: Target, seconds: object, right: int
) -> None:
    """A `GitHubBinding` takes whole seconds, one or more, and nothing else."""
    fields = {"repos": ("acme/api",)}
    values.built(target.GitHubBinding, **fields, ttl_seconds=right)
    _lives(target.GitHubBinding, seconds, fields)


@verifies(BND_24)
@needs(binding=MistralApiBinding)
@given(seconds=binding_values.no_lifetimes, right=binding_values.lifetimes)
@each("seconds", binding_values.NO_LIFETIMES, right=1)
def test_a_lifetime_of_api_access_is_positive(target: Target, seconds: object, right: int) -> None:
    """A `MistralApiBinding` takes whole seconds, one or more, and nothing else."""
    values.built(target.MistralApiBinding, ttl_seconds=right)
    _lives(target.MistralApiBinding, seconds, {})
