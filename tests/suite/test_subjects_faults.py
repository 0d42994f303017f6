"""What a subject leaves out or refuses while a check prepares is the subject's, not the check's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.suite.conftest import Runner

ALLOWS = """
@verifies(EGR_10)
def test_a_port(target):
    target.Network.allow(hosts=["packages.example.org:8443"])

@verifies(EGR_11)
def test_no_port(target):
    target.Network.allow(hosts=["packages.example.org"])

@verifies(EGR_12)
def test_our_bug(target):
    int("packages.example.org:8443")
"""
BUILDS = """
@verifies(EXE_01)
def test_builds(target):
    assert target.build().network.mode == "none"

@verifies(EXE_02)
def test_refuses(target):
    assert target.refusal(network=None) is None
"""


def test_a_constructor_that_leaves_its_base_out_fails_the_requirement(runner: Runner) -> None:
    finished = runner.supervise(BUILDS, "ForgetsItsBase")
    assert finished.verdicts == {"EXE-01": "fail", "EXE-02": "fail"}
    message = str(finished.entry("EXE-01"))
    assert "has no network" in message
    assert "super().__init__()" in message


def test_a_right_entry_that_is_refused_leaves_the_requirement_open(runner: Runner) -> None:
    finished = runner.supervise(ALLOWS, "RefusesPorts")
    assert finished.verdicts == {"EGR-10": "not run", "EGR-11": "pass", "EGR-12": "error"}
    assert str(finished.entry("EGR-10")).count("see NET-02")
