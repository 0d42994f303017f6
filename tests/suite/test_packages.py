from __future__ import annotations

import pytest

from conformance.run import packages

LINES = [
    "pytest>=9",
    "no-such-base>=1",
    'pluggy>=1; extra == "suite"',
    'no-such-thing>=1; extra == "suite"',
    'no-such-thing-elsewhere>=1; sys_platform == "none" and extra == "suite"',
    'no-such-document>=1; extra == "docs"',
]


def test_what_the_extra_asks_for_here_and_is_not_installed_is_named() -> None:
    assert packages.missing(LINES) == ["no-such-thing"]


def test_a_run_without_it_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _: LINES)

    with pytest.raises(pytest.UsageError, match=r"^no-such-thing must be there for --sandbox; .*$"):
        packages.refuse_incomplete()
