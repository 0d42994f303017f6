from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes import SandboxStartError
from sandboxes.session_folder import SessionFolder, folder_name, unusable_id

if TYPE_CHECKING:
    from pathlib import Path

IDS = st.text(min_size=1, max_size=20)


def take(name: str = "f") -> SessionFolder:
    return SessionFolder(name, ("workspace",))


@given(st.none() | IDS, IDS, st.none() | IDS, IDS)
def test_different_ids_have_different_names_on_any_file_system(
    one: str | None, first: str, two: str | None, second: str
) -> None:
    names = [folder_name("p", ids).lower() for ids in ((one, first), (two, second))]
    assert (names[0] == names[1]) is ((one, first) == (two, second))
    assert all(name.isascii() and "/" not in name and len(name) < 200 for name in names)


def test_an_instance_is_not_part_of_a_session() -> None:
    assert (
        len({folder_name("p", ids) for ids in (("a", "b-c"), ("a-b", "c"), (None, "a-b-c"))}) == 3
    )


@pytest.mark.parametrize("text", ["a", "a..b", "Ä 1", "x" * 128, "...", "a.b"])
def test_ordinary_names_are_usable(text: str) -> None:
    assert unusable_id(text) == ""


def test_planted_links_and_pipes_are_removed_and_their_targets_stay(
    temp: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("there")
    take().release(delete=False)
    workspace = temp / "f/workspace"
    (workspace / "d/e").mkdir(parents=True)
    (workspace / "d/e/file").write_text("mine")
    (workspace / "d/inner").symlink_to("e/file")
    (workspace / "absolute").symlink_to(outside)
    (workspace / "d/dots").symlink_to("../../../../outside")
    (workspace / "d/e/dangling").symlink_to("/nowhere")
    os.mkfifo(workspace / "d/pipe")
    with caplog.at_level(logging.WARNING):
        folder = take()
    left = {str(path.relative_to(workspace)) for path in workspace.rglob("*")}
    assert left == {"d", "d/e", "d/e/file", "d/inner"}
    assert len(caplog.records) == 4
    (workspace / "again").symlink_to(outside)
    folder.release(delete=True)
    assert not (temp / "f").exists()
    assert (outside / "canary").read_text() == "there"


@pytest.mark.parametrize("at", ["f", "f/workspace"])
def test_a_link_in_the_folders_own_place_is_refused(temp: Path, tmp_path: Path, at: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (temp / at).parent.mkdir(exist_ok=True, mode=0o700)
    (temp / at).symlink_to(outside)
    with pytest.raises(SandboxStartError, match="no folder of ours"):
        take()
    assert list(outside.iterdir()) == []


def test_a_folder_that_others_can_open_is_refused(temp: Path) -> None:
    (temp / "f").mkdir()
    (temp / "f").chmod(0o755)
    with pytest.raises(SandboxStartError, match="open to others"):
        take()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
@pytest.mark.parametrize("at", ["f", "f/workspace"])
def test_a_folder_of_somebody_else_is_refused(temp: Path, at: str) -> None:
    (temp / at).mkdir(mode=0o700, parents=True)
    (temp / "f").chmod(0o700)
    os.chown(temp / at, 12345, 12345)
    with pytest.raises(SandboxStartError, match=r"belongs to somebody else|Permission denied"):
        take()


def test_a_folder_is_one_sessions_at_a_time(temp: Path) -> None:
    first = take()
    with pytest.raises(SandboxStartError, match="in use"):
        take()
    first.release(delete=True)
    take().release(delete=True)
    assert list(temp.iterdir()) == []


@pytest.mark.usefixtures("temp")
def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/dev/fd"))
    first = take("fd-test")
    with pytest.raises(SandboxStartError):
        take("fd-test")
    first.release(delete=True)
    assert len(os.listdir("/dev/fd")) == before
