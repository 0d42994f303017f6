"""Whatever a subject does to its process, the run goes on and the check has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.suite.conftest import subject

if TYPE_CHECKING:
    from tests.suite.conftest import Runner

CHECKS = """
@verifies(EXE_01)
def test_first(target):
    pass

@verifies(EXE_02)
def test_second(target):
    with target.open() as box:
        box.execute("x")

@verifies(EXE_03)
def test_third(target):
    pass
"""


@pytest.mark.parametrize(
    ("name", "fact"), [("Segfaults", "died with signal 11"), ("Exits", "ended with exit code 0")]
)
def test_a_process_that_dies_fails_its_check_and_no_other(
    runner: Runner, name: str, fact: str
) -> None:
    finished = runner.supervise(CHECKS, name)
    assert finished.verdicts == {"EXE-01": "pass", "EXE-02": "fail", "EXE-03": "pass"}
    assert fact in finished.entry("EXE-02")["message"]
    assert finished.code == 1
    assert "EXE-02 (R) fail" in finished.output


def test_a_process_that_dies_in_the_last_check_leaves_a_whole_summary(runner: Runner) -> None:
    finished = runner.supervise(CHECKS, "Exits", scopes={subject("Exits"): ["EXE-02"]})
    assert finished.verdicts["EXE-02"] == "fail"
    assert "not certified" in finished.output


def test_a_worker_that_dies_fails_its_check_and_no_other(runner: Runner) -> None:
    finished = runner.supervise(CHECKS, "Segfaults", "Right", arguments=["-n", "2"])
    bad, good = finished.content
    verdicts = [entry["verdict"] for entry in bad["requirements"] if entry["checks"]]
    assert verdicts == ["pass", "fail", "pass"]
    assert good["outcome"] == "certified"
    assert finished.code == 1


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_check_that_never_ends_is_killed(runner: Runner, arguments: tuple[str, ...]) -> None:
    checks = """
    @verifies(EXE_01)
    def test_stuck(target):
        time.sleep(600)

    @verifies(EXE_02)
    def test_next(target):
        pass
    """
    finished = runner.supervise(checks, "Right", silence=4, arguments=arguments)
    assert finished.verdicts == {"EXE-01": "fail", "EXE-02": "pass"}
    assert "still running after 4 s" in finished.entry("EXE-01")["message"]


def test_each_example_counts_as_a_sign_of_life(runner: Runner) -> None:
    checks = """
    from hypothesis import example

    @verifies(EXE_01)
    @given(number=st.integers())
    @example(number=1)
    @example(number=2)
    def test_slow(target, number):
        time.sleep(1)
    """
    finished = runner.supervise(checks, "Right", silence=4)
    assert finished.verdicts == {"EXE-01": "pass"}
    assert finished.entry("EXE-01")["seconds"] > 4


def test_a_thread_that_never_ends_does_not_keep_the_run(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = """
    import threading

    @verifies(EXE_01)
    def test_leaves_a_thread(target):
        threading.Thread(target=time.sleep, args=(600,)).start()
    """
    finished = runner.supervise(checks, "Right")
    assert finished.verdicts == {"EXE-01": "pass"}
    assert finished.code == 0


def test_a_subject_that_dies_on_import_is_a_usage_error(runner: Runner) -> None:
    (runner.folder / "deadly.py").write_text("import os\nos._exit(9)\n")
    finished = runner.supervise(CHECKS, "Right", sandboxes=[f"{runner.folder / 'deadly.py'}:Any"])
    assert finished.code == 4
    assert "ended with exit code 9" in finished.output
    assert finished.content is None


def test_a_subject_that_hangs_again_and_again_is_given_up(runner: Runner) -> None:
    checks = """
    from conformance.verdicts import Hang

    @verifies(EXE_01)
    @pytest.mark.parametrize("number", range(5))
    def test_hangs(target, number):
        raise Hang("open() did not return")

    @verifies(EXE_02)
    def test_after(target):
        pass
    """
    finished = runner.supervise(checks, "Right")
    assert finished.verdicts == {"EXE-01": "fail", "EXE-02": "not run"}
    assert "hung in 5 checks in a row" in finished.entry("EXE-02")["message"]


def test_a_subject_that_hangs_now_and_then_is_not_given_up(runner: Runner) -> None:
    checks = """
    from conformance.verdicts import Hang

    @verifies(EXE_01)
    @pytest.mark.parametrize("number", range(12))
    def test_hangs(target, number):
        if number % 2:
            raise Hang("open() did not return")

    @verifies(EXE_02)
    def test_after(target):
        pass
    """
    finished = runner.supervise(checks, "Right")
    assert finished.verdicts == {"EXE-01": "fail", "EXE-02": "pass"}
