"""Fixtures of the sandboxes' own tests: no network, and a temporary folder of their own."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, as sandboxes find it."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working folder that may be lost: nothing here knows the real ones."""
    folder = tmp_path / "users" / "home"
    (folder / "work").mkdir(parents=True)
    (folder / "canary").write_text("whole")
    (folder / "work" / "canary").write_text("whole")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("ALLOW_DANGEROUS_LOCAL_HOST", "1")
    monkeypatch.chdir(folder / "work")
    return folder
