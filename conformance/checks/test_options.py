"""CFG: what a constructor makes of its options, and that they stay what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from conformance.marks import verifies
from conformance.probes import frozen
from conformance.probes.choices import beside, company
from conformance.requirements import CFG_11, CFG_12
from conformance.strategies import options
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.subject.declarations import constructor
from conformance.verdicts import NotApplicable, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.subject.targets import Target


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _is_refused_by_name(target: Target, option: str, value: object) -> None:
    for others in company(target, option):
        call = f"built with {option}={value!r}{beside(others)}"
        refusal = target.refusal(**{option: value}, **others)
        if refusal is None:
            raise Violation(
                f"{call} it raised nothing", remedy=f"look at {option} when the sandbox is built"
            )
        if _letters(option) not in _letters(str(refusal)):
            raise Violation(
                f"{call} it raised {shown(refusal)}", remedy=f"name {option} in the error"
            )


def _is_accepted(target: Target, option: str, *values: object) -> None:
    for value in values:
        refusal = _refusal_in_any_company(target, option, value)
        if refusal is not None and not _is_set_by_the_class(refusal):
            raise Violation(
                f"built with {option}={value!r} it raised {shown(refusal)}",
                remedy=f"refuse only what {option} cannot be",
            )


def _refusal_in_any_company(target: Target, option: str, value: object) -> Exception | None:
    """Why a value is never taken; what opens a network is refused where none may be open."""
    first = None
    for others in company(target, option):
        refusal = target.refusal(**{option: value}, **others)
        if refusal is None:
            return None
        first = first or refusal
    return first


def _is_set_by_the_class(refusal: Exception) -> bool:
    """Whether a constructor passes an option on by itself, so that nobody can choose it."""
    return isinstance(refusal, TypeError) and "multiple values for" in str(refusal)


def _is_its_own(target: Target, name: str) -> bool:
    """Whether an option only has the name of a public one: its default is of another kind."""
    default = constructor(target.cls)[name].default
    return isinstance(default, (list, tuple, dict)) and name not in ("hooks", "header_bindings")


def _known(target: Target, names: Iterable[str]) -> list[str]:
    found = [name for name in names if target.has_option(name) and not _is_its_own(target, name)]
    if not found:
        raise NotApplicable(f"{target.cls.__name__} has none of the options {', '.join(names)}")
    return found


@verifies(CFG_11)
@given(value=options.wrong_limits)
@each("value", options.WRONG_LIMITS)
def test_an_unusable_limit_is_refused(target: Target, value: object) -> None:
    """A limit that is negative, zero, NaN or no number is refused with an error that names it."""
    for option in _known(target, options.LIMITS):
        _is_refused_by_name(target, option, value)
        if option in ("default_exec_timeout_seconds", "ttl_seconds"):
            _is_accepted(target, option, options.ORDINARY_SECONDS)


@verifies(CFG_11)
@given(value=options.wrong_names)
@each("value", options.WRONG_NAMES)
def test_an_empty_name_is_refused(target: Target, value: object) -> None:
    """A name that is empty or no text is refused with an error that names the option."""
    for option in _known(target, options.NAMES):
        _is_refused_by_name(target, option, value)
        if option == "instance_id":
            _is_accepted(target, option, "build-1")


@verifies(CFG_11)
@given(hooks=options.wrong_hooks)
@each("hooks", options.WRONG_HOOKS)
def test_what_is_no_hook_is_refused(target: Target, hooks: object) -> None:
    """Entries of `hooks` that are no hooks are refused, and a hook that stands in no sequence."""
    _known(target, ["hooks"])
    _is_refused_by_name(target, "hooks", hooks)
    _is_accepted(target, "hooks", *options.RIGHT_HOOKS)


@verifies(CFG_11)
def test_a_wrong_type_is_refused(target: Target) -> None:
    """A value of another type or kind is refused with an error that names the option."""
    wrong = {**options.WRONG_TYPES, **dict.fromkeys(options.COUNTS, options.WRONG_COUNTS)}
    for option in _known(target, wrong):
        for value in wrong[option]:
            _is_refused_by_name(target, option, value)
        if option in options.SWITCHES:
            _is_accepted(target, option, True, False)


@verifies(CFG_11)
def test_a_default_can_be_passed_as_well(target: Target) -> None:
    """What a constructor has for the default of an option is one of the values that it takes."""
    for name, parameter in constructor(target.cls).items():
        # What these two are where they are left out has a requirement each.
        if name not in ("network", "access") and parameter.default is not parameter.empty:
            _is_accepted(target, name, parameter.default)


@verifies(CFG_12)
def test_a_configured_sandbox_cannot_be_changed(target: Target) -> None:
    """No public attribute of a built sandbox can be assigned or deleted."""
    sandbox = target.build()
    for name in frozen.attributes(target, sandbox):
        if change := frozen.changed(sandbox, name):
            raise Violation(
                f"{change} raised nothing, or changed it all the same",
                remedy="raise AttributeError from __setattr__ and __delattr__ once it is built",
            )


@verifies(CFG_12)
def test_what_was_passed_cannot_change_it_later(target: Target) -> None:
    """Neither the caller's list nor what the sandbox gives out changes its configuration."""
    for option, call in frozen.lists(target):
        sandbox = target.build(**call)
        before = list(getattr(sandbox, option))
        call[option].clear()
        whose = "the caller's list was emptied"
        if list(getattr(sandbox, option)) == before:
            frozen.empty(getattr(sandbox, option))
            whose = f"its own {option} were emptied"
        after = list(getattr(sandbox, option))
        if after != before:
            raise Violation(
                f"built with {option}={before!r} it had {after!r} after {whose}",
                remedy=f"keep {option} in a tuple of your own",
            )


@verifies(CFG_12)
def test_what_was_passed_for_its_own_options_cannot_change_it_later(target: Target) -> None:
    """Neither a list nor a dictionary of the caller's changes what a sandbox made of it."""
    for option, call in frozen.own_lists(target):
        sandbox = target.build(**call)
        before = list(getattr(sandbox, option))
        call[option].clear()
        after = list(getattr(sandbox, option))
        if after != before:
            raise Violation(
                f"built with {option}={before!r} it had {after!r} once the caller's was emptied",
                remedy=f"keep a copy of {option}",
            )


@verifies(CFG_12)
def test_its_repr_shows_no_secret(target: Target) -> None:
    """No text of a built sandbox shows a secret of its options, hooks or environment."""
    with frozen.secrets_of_the_environment() as planted:
        given, hidden = frozen.secret_options(target)
        sandbox = target.build(**given)
    for how, text in frozen.texts(sandbox):
        for origin, secret in (planted | hidden).items():
            if secret in text:
                raise Violation(
                    f"{how} of a {target.cls.__name__} shows {origin}",
                    remedy="leave out of __repr__ and __str__ what may be a secret",
                )
