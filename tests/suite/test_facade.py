"""Blocking access to a subject: bounded, checked, and blamed on the right side."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.bounds import Bounds
from conformance.subject import blame, facade
from conformance.subject.loop import LoopThread
from conformance.subject.targets import Surroundings, Target
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import Network
from sandboxes.no_sandbox import NoSandbox
from tests.suite import subjects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandboxes.contract import Sandbox


@pytest.fixture(autouse=True)
def short_bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bounds = Bounds(open=1, close=1, files=1, kill=0.3, slack=0.3, unlimited=0.4)
    monkeypatch.setattr(facade, "BOUNDS", bounds)
    blame.forget()
    yield
    blame.forget()


def target(cls: type[Sandbox], **options: Any) -> Target:
    return Target("subject", cls, options)


def test_commands_and_files_go_through() -> None:
    with target(subjects.Right).open() as box:
        assert box.execute("hello").stdout == "hello"
        box.write_file("a", b"\x00")
        assert box.read_file("a") == b"\x00"
        assert box.default_timeout_seconds == 5
        assert box.inventory() == []


@pytest.mark.parametrize(
    ("cls", "fact"),
    [
        (subjects.Hangs, "the call hangs"),
        (subjects.Stubborn, "the call hangs"),
        (subjects.Blocks, "blocks the event loop"),
    ],
)
def test_a_call_that_does_not_return_is_a_violation_and_the_next_check_goes_on(
    cls: type[Sandbox], fact: str
) -> None:
    subject = target(cls)
    begun = time.monotonic()
    with pytest.raises(Violation, match=fact), subject.open() as box:
        box.execute("x")
    assert time.monotonic() - begun < 10
    with subject.open() as box:
        assert box.default_timeout_seconds == 5


def test_the_limit_of_a_command_is_part_of_its_bound() -> None:
    with target(subjects.Hangs).open() as box:
        begun = time.monotonic()
        with pytest.raises(Violation, match=r"within 2\.6 s"):
            box.execute("x", timeout_seconds=2)
    assert time.monotonic() - begun >= 2.6


def test_a_sandbox_that_never_opens_is_a_violation() -> None:
    with pytest.raises(Violation, match=r"open\(\) did not return"), _open(subjects.NeverOpens):
        pass


def test_open_must_yield_a_running_sandbox() -> None:
    with pytest.raises(Violation, match="yielded a NoneType"), _open(subjects.YieldsNothing):
        pass


def _open(cls: type[Sandbox]) -> Any:
    return target(cls).open()


@pytest.mark.parametrize(
    ("command", "fact"),
    [
        ("tuple", "returned a tuple"),
        ("code", "exit code None"),
        ("bool", "exit code True"),
        ("negative", "exit code -15"),
        ("wide", "exit code 256"),
        ("bytes", "a bytes as stdout"),
    ],
)
def test_rubbish_is_a_violation(command: str, fact: str) -> None:
    with target(subjects.Rubbish).open() as box, pytest.raises(Violation, match=fact):
        box.execute(command)


@pytest.mark.parametrize(
    ("cls", "fact"), [(subjects.Quits, "SystemExit: 3"), (subjects.Cancels, "CancelledError")]
)
def test_what_would_end_the_run_is_a_violation(cls: type[Sandbox], fact: str) -> None:
    with target(cls).open() as box, pytest.raises(Violation, match=fact):
        box.execute("x")


def test_an_exception_comes_out_unchanged_and_is_blamed_on_the_subject() -> None:
    with target(subjects.Raises).open() as box, pytest.raises(RuntimeError) as caught:
        box.execute("x")
    found = blame.blamed(caught.value)
    assert found is not None
    assert str(found.violation()).startswith("execute('x') raised RuntimeError: boom in two lines;")


def test_an_exception_of_the_check_is_not_blamed_on_the_subject() -> None:
    with pytest.raises(KeyError) as caught, target(subjects.Right).open():
        raise KeyError("ours")
    assert blame.blamed(caught.value) is None


def test_an_error_at_the_close_is_the_subjects() -> None:
    with pytest.raises(RuntimeError, match="cannot delete") as caught, _open(subjects.FailsToClose):
        pass
    assert blame.blamed(caught.value) is not None


def test_an_error_of_the_check_outranks_one_at_the_close() -> None:
    with pytest.raises(KeyError) as caught, _open(subjects.FailsToClose):
        raise KeyError("first")
    assert caught.value.__notes__ == ["and then cannot delete"]


def test_a_constructor_is_blamed_and_its_refusal_is_given() -> None:
    subject = target(subjects.Right)
    refused = subject.refusal(network=Network.all())
    assert isinstance(refused, ValueError)
    assert blame.blamed(refused) is not None
    assert subject.refusal() is None


def test_a_sandbox_that_opens_nothing_is_not_opened() -> None:
    with pytest.raises(NotApplicable, match="NoSandbox opens nothing"):
        target(NoSandbox).open()


def test_options_of_the_user_reach_every_instance() -> None:
    subject = target(subjects.Right, label="mine")
    assert subject.build().label == "mine"  # type: ignore[attr-defined]  # Right has it
    assert subject.build(label="other").label == "other"  # type: ignore[attr-defined]


def test_a_session_runs_to_its_end() -> None:
    with target(subjects.Right).session() as box:
        assert box.execute("x").stdout == "x"


class TakesPrivate(subjects.Right):
    def __init__(self, *, block_private_ips: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.blocks = block_private_ips


class Forwards(TakesPrivate):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


@pytest.mark.parametrize("cls", [TakesPrivate, Forwards])
def test_a_loopback_lab_opens_private_addresses_unless_told_otherwise(
    cls: type[TakesPrivate], tmp_path: Path
) -> None:
    subject = target(cls)
    assert subject.build().blocks  # type: ignore[attr-defined]
    subject.surroundings = lambda: Surroundings(tmp_path / "ca.pem", loopback=True)
    assert not subject.build().blocks  # type: ignore[attr-defined]
    assert subject.build(block_private_ips=True).blocks  # type: ignore[attr-defined]
    assert target(cls, block_private_ips=True).build().blocks  # type: ignore[attr-defined]


def test_the_labs_certificates_reach_the_subject(tmp_path: Path) -> None:
    seen = []

    class Asks(subjects.Right):
        def open(self, request: Any) -> Any:
            seen.append((request.ca_bundle, request.session_id))
            return super().open(request)

    subject = target(Asks)
    subject.surroundings = lambda: Surroundings(tmp_path / "ca.pem")
    for _ in range(2):
        with subject.open():
            pass
    assert [bundle for bundle, _ in seen] == [tmp_path / "ca.pem"] * 2
    assert len({name for _, name in seen}) == 2


def test_a_stopped_loop_ends_its_thread() -> None:
    loop = LoopThread()
    loop.stop()
    assert not loop._thread.is_alive()
