from __future__ import annotations

from pathlib import Path

from tests.egress.attack_page import CONTROLS, MODULES, SECTIONS, page

PAGE = Path(__file__).parents[2] / "docs" / "egress-attacks.md"


def test_every_test_is_an_attack_of_the_page_or_a_control() -> None:
    listed = {attack.test for attacks in SECTIONS.values() for attack in attacks}
    tests = {
        value
        for module in MODULES
        for name, value in vars(module).items()
        if name.startswith("test_") and value.__module__ == module.__name__
    }
    assert listed | CONTROLS == tests
    assert not listed & CONTROLS


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
