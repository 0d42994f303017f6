"""Checks that are made at once: each is judged as if it had been alone."""

from __future__ import annotations

import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from tests.suite.conftest import subject

if TYPE_CHECKING:
    from tests.suite.conftest import Runner

WORKERS = pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "workers"])

HEAD = """
from pathlib import Path
from conformance.marks import side_by_side

def note(word):
    with open("notes", "a") as file:
        file.write(f"{word} {os.getpid()}\\n")
"""


def made(checks: str) -> str:
    return HEAD + textwrap.dedent(checks)


def notes(runner: Runner) -> list[list[str]]:
    return [line.split() for line in (runner.folder / "notes").read_text().splitlines()]


@WORKERS
def test_checks_that_wait_do_so_at_once_and_in_one_process(
    runner: Runner, arguments: tuple[str, ...]
) -> None:
    checks = made("""
    @side_by_side
    @verifies(EXE_01)
    @pytest.mark.parametrize("number", range(8))
    def test_waits(target, number):
        note(f"began{number}")
        for _ in range(100):  # each goes on when all have begun
            if Path("notes").read_text().count("began") == 8:
                return
            time.sleep(0.1)
        raise Violation("it waited alone")

    @verifies(EXE_02)
    @pytest.mark.parametrize("number", range(8))
    def test_stands_alone(target, number):
        note(f"other{number}")
    """)
    finished = runner.supervise(checks, "Right", arguments=arguments)
    assert finished.verdicts == {"EXE-01": "pass", "EXE-02": "pass"}
    began = [process for word, process in notes(runner) if word.startswith("began")]
    assert len(began) == 8  # none was made again
    assert len(set(began)) == 1


def test_what_fails_in_company_is_judged_alone(runner: Runner) -> None:
    checks = made("""
    @side_by_side
    @verifies(EXE_01)
    def test_holds(target):
        note("holds")

    @side_by_side
    @verifies(EXE_02)
    def test_fails_in_company_only(target):
        note("company")
        if Path("notes").read_text().count("company") == 1:
            raise Violation("another was in its way")

    @side_by_side
    @verifies(EXE_03)
    def test_breaks(target):
        note("breaks")
        raise Violation("it breaks")

    @side_by_side
    @verifies(EXE_04)
    @needs(network="allow")
    def test_is_declined(target):
        note("declined")
    """)
    finished = runner.supervise(checks, "Right")
    assert finished.verdicts == {
        "EXE-01": "pass", "EXE-02": "pass", "EXE-03": "fail", "EXE-04": "declined",
    }  # fmt: skip
    words = [word for word, _ in notes(runner)]
    assert sorted(words) == ["breaks", "breaks", "company", "company", "holds"]


@WORKERS
def test_a_process_that_dies_in_company_fails_the_check_that_ended_it(
    runner: Runner, arguments: tuple[str, ...]
) -> None:
    checks = made("""
    @side_by_side
    @verifies(EXE_01)
    def test_first(target):
        time.sleep(0.5)

    @side_by_side
    @verifies(EXE_02)
    def test_second(target):
        with target.open() as box:
            box.execute("x")

    @side_by_side
    @verifies(EXE_03)
    def test_third(target):
        time.sleep(0.5)
    """)
    finished = runner.supervise(checks, "Segfaults", arguments=arguments)
    assert finished.verdicts == {"EXE-01": "pass", "EXE-02": "fail", "EXE-03": "pass"}
    assert "died" in finished.entry("EXE-02")["message"]


def test_a_check_that_never_ends_in_company_is_killed_alone(runner: Runner) -> None:
    checks = made("""
    @side_by_side
    @verifies(EXE_01)
    def test_stuck(target):
        time.sleep(600)

    @side_by_side
    @verifies(EXE_02)
    def test_next(target):
        pass
    """)
    begun = time.monotonic()
    finished = runner.supervise(checks, "Right", silence=4)
    assert finished.verdicts == {"EXE-01": "fail", "EXE-02": "pass"}
    assert "still running after 4 s" in finished.entry("EXE-01")["message"]
    assert time.monotonic() - begun < 60


def test_subjects_keep_to_their_own_company(runner: Runner) -> None:
    checks = made("""
    @side_by_side
    @verifies(EXE_01)
    def test_one(target):
        with target.open() as box:
            assert box.execute("x").stdout == "x"

    @side_by_side
    @verifies(EXE_02)
    def test_two(target):
        pass
    """)
    finished = runner.supervise(checks, "Segfaults", "Right")
    bad, good = finished.content
    assert good["outcome"] == "certified"
    verdicts = [entry["verdict"] for entry in bad["requirements"] if entry["checks"]]
    assert verdicts == ["fail", "pass"]
    assert subject("Segfaults") in bad["subject"]["name"]
