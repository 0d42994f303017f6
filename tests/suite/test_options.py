"""Every option that cannot be used is refused in one line, with exit code 4."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.run.arguments import scopes as scopes_of
from tests.suite.conftest import environment, subject

if TYPE_CHECKING:
    from tests.suite.conftest import Runner

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--sandbox="], ["--sandbox is empty"]),
        (["--sandbox=none", "--sandbox-option=colour"], ["not of the form KEY=JSON"]),
        (["--sandbox=none", "--sandbox-option=a-b=1"], ["not of the form KEY=JSON"]),
        (["--sandbox=none", "--sandbox-option=colour=red"], ["'red' is no JSON"]),
        (["--sandbox=none", '--sandbox-option=network="all"'], ["set network themselves"]),
        (["--sandbox=none", "--sandbox-option=access=null"], ["set access themselves"]),
        (["--sandbox=none", "--sandbox-option=hooks=[]"], ["set hooks themselves"]),
        (["--sandbox=none", "--sandbox-option=header_bindings=[]"], ["header_bindings"]),
        (["--sandbox=none", "--requirement=EGR-99"], ["no requirement EGR-99", "areas: CFG"]),
        (["--sandbox=none", "--requirement=,"], ["names no requirement"]),
        (["--sandbox=none", "--requirement=nun=NET"], ["nun is no sandbox of this run"]),
        (["--sandbox=none", "--certificate=no/such/place.json"], ["there is no folder"]),
        (["--sandbox=none", "--certificate=."], ["is no file name"]),
        (["--sandbox=none", "--hypothesis-seed=x"], ["is no whole number"]),
        (["--sandbox=none", "tests"], ["the path 'tests' cannot be added"]),
        (["--requirement=EGR"], ["--requirement means nothing without --sandbox"]),
        (["--certificate=x.json"], ["--certificate means nothing without --sandbox"]),
        (["--sandbox-option=a=1"], ["--sandbox-option means nothing without --sandbox"]),
        (["--require-certified"], ["--require-certified means nothing without --sandbox"]),
    ],
)
def test_a_useless_option_is_refused_before_anything_runs(
    pytester: pytest.Pytester, arguments: list[str], facts: list[str]
) -> None:
    pytester.mkdir("tests")
    result = pytester.runpytest_inprocess("--lab=off", *arguments)
    assert result.ret == 4
    errors = [line for line in result.errlines if line.strip()]
    assert len(errors) == 1
    assert errors[0].startswith("ERROR: ")
    assert [fact for fact in facts if fact not in errors[0]] == []


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--sandbox=bashkitt"], "no sandbox has this name"),
        (
            [f"--sandbox={subject('Right')}", "--sandbox-option=colour=1"],
            "takes no 'colour'; it takes ",
        ),
        (["--sandbox=none", "--requirement=ACC-04"], "no check proves ACC-04 yet"),
        (["--sandbox=none", "-k", "nothing_of_the_sort"], "no check was selected"),
    ],
)
def test_what_shows_only_inside_ends_with_4_as_well(
    runner: Runner, arguments: list[str], fact: str
) -> None:
    finished = runner.pytest("--lab=off", *arguments)
    assert finished.code == 4
    assert fact in finished.output
    assert "Traceback" not in finished.output
    assert finished.content is None


def test_without_the_option_a_project_runs_its_own_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(): pass")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)


def test_without_the_option_nothing_of_the_suite_is_imported() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import conformance.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert done.stdout.split() == ["conformance", "conformance.plugin"]


def test_collecting_alone_certifies_nothing(runner: Runner) -> None:
    finished = runner.pytest("--lab=off", "--sandbox=none", "--collect-only", "-q")
    assert finished.code == 0
    assert finished.content is None
    assert "test_network_values.py::" in finished.output


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ([], {}),
        (["EGR-11,net"], {"a": ["NET", "EGR-11"], "b:C": ["NET", "EGR-11"]}),
        (["b:C=EGR-11"], {"b:C": ["EGR-11"]}),
        (["NET", "b:C=EGR-11", "b:C=CFG"], {"a": ["NET"], "b:C": ["CFG", "EGR-11"]}),
    ],
)
def test_each_sandbox_has_its_own_scope_or_that_of_all(
    given: list[str], scopes: dict[str, list[str]]
) -> None:
    assert scopes_of(given, ["a", "b:C"]) == scopes
