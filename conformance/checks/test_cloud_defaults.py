"""LIF-12, LIF-17: options that come from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from conformance.marks import alone, needs, verifies
from conformance.probes.clouds import PREFIX, defaults, raised, started, watched
from conformance.requirements import LIF_12, LIF_17, reference
from conformance.strategies import cloud_options
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.probes.clouds import Watch
    from conformance.strategies.cloud_options import Defaulted
    from conformance.subject.targets import Target
    from sandboxes.contract import Sandbox

_WINS = "let an option that is passed win over its variable, and its variable over the default"
_LIMIT = 1


def _is_documented(target: Target) -> None:
    if not reference.is_a(target.cls, "MistralSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no MistralSandbox")


def _asked(target: Target, watch: Watch, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - its own
    """What a sandbox with these options asks the cloud to make, without what differs each time."""
    before = len(watch.asked("POST", "/v1/"))
    error = started(target, **options)
    rows = watch.asked("POST", "/v1/")[before:]
    if not rows:
        raise NotRun(f"with {options} it asked the cloud for nothing ({error}): see LIF-01")
    return dict(_leaves([row["body"] for row in rows], ()))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """What bodies hold: names up to where they become random, and neither ids nor secrets."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, one in pairs:
            if name != "env" and not str(name).endswith("_id"):
                yield from _leaves(one, (*path, str(name)))
    else:
        short = str(value).partition("-")[0] if path[-1] == "name" else value
        yield ".".join(path[1:]), short


def _difference(asked: dict[str, Any], wanted: dict[str, Any]) -> str:
    places = [place for place in {**wanted, **asked} if asked.get(place) != wanted.get(place)]
    return "; ".join(
        f"{place} {asked.get(place)!r}, not {wanted.get(place)!r}" for place in places[:3]
    )


@verifies(LIF_12)
@needs(opens=True, cloud=True)
@alone
@pytest.mark.parametrize("case", cloud_options.ASKED_FOR, ids=lambda case: case.name)
def test_what_is_left_out_comes_from_its_variable(
    target: Target, lab: Lab, case: Defaulted
) -> None:
    """An option is its variable's where it is left out, and what is passed where it is not."""
    _is_documented(target)
    name, beside = case.name, dict(case.beside)
    if name == "enable_mesh":
        beside["network"] = target.Network.all()
    variable = f"{PREFIX}{name.upper()}"
    with watched(lab) as watch, watch.cloud.broken("broken"):
        plain = _asked(target, watch, **beside)
        value, other = (
            _asked(target, watch, **beside, **{name: one}) for one in (case.value, case.other)
        )
        with defaults(**{name: case.text}):
            left_out = _asked(target, watch, **beside)
            passed = _asked(target, watch, **beside, **{name: case.other})
    if plain == value == other:
        raise NotApplicable(f"the cloud is not asked for {name}")
    if left_out != value:
        raise Violation(
            f"with {variable}={case.text} and without {name} the cloud was asked for "
            + _difference(left_out, value),
            remedy=_WINS,
        )
    if passed != other:
        raise Violation(
            f"with {variable}={case.text} and {name}={case.other!r} the cloud was asked for "
            + _difference(passed, other),
            remedy=_WINS,
        )


@verifies(LIF_12)
@needs(opens=True, cloud=True)
def test_the_limits_of_commands_and_scripts_come_from_variables(target: Target) -> None:
    """The default limit of commands, the setup script and its limit come from variables."""
    _is_documented(target)
    with defaults(default_exec_timeout_seconds="1", setup_script="echo set > set.txt"):
        with target.open() as box:
            limit, text = box.default_timeout_seconds, box.execute("cat set.txt").stdout.strip()
        with target.open(default_exec_timeout_seconds=7, setup_script="true") as box:
            passed, later = box.default_timeout_seconds, box.execute("cat set.txt").exit_code
    if (limit, text) != (1, "set") or passed != 7 or later == 0:
        raise Violation(
            f"the limit and the script of variables gave {limit} s and {text!r}; beside those "
            f"passed, {passed} s and exit code {later}",
            remedy=_WINS,
        )
    with defaults(setup_script_timeout_seconds=str(_LIMIT)):
        error = raised(lambda: _opened(target, setup_script="sleep 20"))
    if error is None:
        raise Violation(
            f"a setup script of 20 s was run with {PREFIX}SETUP_SCRIPT_TIMEOUT_SECONDS={_LIMIT}",
            remedy=_WINS,
        )


def _opened(target: Target, **options: Any) -> None:  # noqa: ANN401 - a subject's own options
    with target.open(**options):
        pass


def _shape(sandbox: Sandbox) -> dict[str, object]:
    names = ("network", "header_bindings", "hooks", "access", "egress_policy")
    found = {name: getattr(sandbox, name, None) for name in names}
    return found | {"supports_background_processes": sandbox.supports_background_processes}


@verifies(LIF_12)
def test_six_options_come_from_no_variable(target: Target) -> None:
    """The six options that the documents leave out have no variable."""
    _is_documented(target)
    plain = _shape(target.build())
    for name, text in cloud_options.NEVER.items():
        with defaults(**{name: text}):
            error = target.refusal()
            shape = plain if error else _shape(target.build())
        if error is not None or shape != plain:
            raise Violation(
                f"with {PREFIX}{name.upper()}={text} it "
                + (f"raised {shown(error)}" if error else f"had {shape}, not {plain}"),
                remedy=f"take {name} from its caller alone",
            )


@verifies(LIF_17)
@given(case=cloud_options.unreadable)
@each("case", cloud_options.UNREADABLE)
def test_a_default_that_cannot_be_read_is_named(target: Target, case: tuple[str, str]) -> None:
    """A variable that cannot give its option's default is named when the sandbox is built."""
    _is_documented(target)
    name, text = case
    variable = f"{PREFIX}{name.upper()}"
    with defaults(**{name: text}):
        error = target.refusal()
    if error is None or variable not in str(error):
        raise Violation(
            f"with {variable}={text!r} it "
            + ("was built" if error is None else f"raised {shown(error)}"),
            remedy=f"read {variable} in the constructor, and name it where it cannot be used",
        )
