"""The census names what is left, in one line each, and nothing that was there before."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.lab import census
from conformance.lab.census import Census

if TYPE_CHECKING:
    from conformance.lab.client import Lab


def test_nothing_done_leaves_nothing() -> None:
    assert Census.take().left_since(Census.take()) == []


def test_a_process_is_named_by_its_command_and_gone_when_it_is() -> None:
    before = Census.take()
    with subprocess.Popen(["sleep", "31.4"]) as process:
        assert f"process {process.pid}: sleep 31.4" in Census.take().left_since(before)
        process.kill()
    assert Census.take().left_since(before) == []


def test_an_orphan_is_still_ours(lab: Lab) -> None:
    before = Census.take()
    start = ["sh", "-c", "sleep 31.5 >/dev/null & echo $!"]
    pid = int(subprocess.run(start, stdout=subprocess.PIPE, check=True).stdout)
    try:
        left = Census.take().left_since(before)  # it may still be about to become a sleep
        assert [line for line in left if line.startswith(f"process {pid}: ")]
    finally:
        os.kill(pid, 9)


def test_a_zombie_is_named() -> None:
    before = Census.take()
    pid = os.spawnvp(os.P_NOWAIT, "true", ["true"])
    deadline = time.monotonic() + 5
    while f"process {pid}: a zombie" not in Census.take().left_since(before):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.waitpid(pid, 0)


def test_a_thread_a_socket_and_a_file_are_named() -> None:
    before, stop = Census.take(), threading.Event()
    thread = threading.Thread(target=stop.wait, name="left-behind")
    thread.start()
    with socket.socket(), tempfile.NamedTemporaryFile(prefix="left-") as file:
        left = Census.take().left_since(before)
    stop.set()
    thread.join()
    assert any(line.endswith(": left-behind") for line in left)
    assert any(line.startswith("open file") and "socket:[" in line for line in left)
    assert any(line.startswith("open file") and file.name in line for line in left)
    assert f"left in {tempfile.gettempdir()}: {Path(file.name).name}" in left
    assert Census.take().left_since(before) == []


def test_a_second_handle_on_the_same_file_counts() -> None:
    with open(os.devnull, "rb"):
        before = Census.take()
        with open(os.devnull, "rb"):
            assert len(Census.take().left_since(before)) == 1


def test_a_task_is_named() -> None:
    async def main() -> list[str]:
        before = Census.take()
        task = asyncio.create_task(asyncio.sleep(30), name="left-task")
        left = Census.take().left_since(before)
        task.cancel()
        return left

    assert any(line.startswith("asyncio task left-task") for line in asyncio.run(main()))


def test_a_mount_is_named(lab: Lab, as_root: None, tmp_path: Path) -> None:
    before = Census.take()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(tmp_path)], check=True)
    try:
        assert f"mount at {tmp_path}" in Census.take().left_since(before)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_what_was_written_anywhere_is_named(lab: Lab) -> None:
    if lab.mode != "sealed":
        pytest.skip("only a sealed lab has the whole machine for itself")
    places = [Path("/var/tmp"), Path("/dev/shm"), Path("/tmp"), Path.home() / ".cache" / "a"]
    before = Census.take()
    for place in places:
        (place / "left" / "deep").mkdir(parents=True)
        (place / "left" / "deep" / "file").write_text("")
    left = Census.take().left_since(before, {"file entry"})
    for place in places:
        shutil.rmtree(place / "left")
    assert {f"left in {place}/left/deep: file" for place in places[:3]} <= set(left)
    assert f"left in {places[3]}/left: deep" in left
    assert not Census.take().left_since(before, {"process", "mount"})


def test_levels_that_are_too_much_are_left_out_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "_MOST_ENTRIES", 3)
    (tmp_path / "folder").mkdir()
    for name in "abc":
        (tmp_path / "folder" / name).touch()
    before = Census.take(folders=[tmp_path])
    (tmp_path / "folder" / "a").unlink()
    (tmp_path / "new").touch()
    assert before.partial == {tmp_path: 1}
    assert Census.take(folders=[tmp_path]).left_since(before, {"file entry"}) == [
        f"left in {tmp_path}: new"
    ]


def test_a_census_is_quick() -> None:
    begin = time.monotonic()
    Census.take()
    assert time.monotonic() - begin < 1


if sys.platform != "linux":
    pytest.skip("these tests read /proc", allow_module_level=True)


def test_what_an_earlier_survivor_goes_on_starting_is_not_of_this_time() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do sleep 0.05; done"]) as survivor:
        before = Census.take()
        time.sleep(0.3)
        left = Census.take().left_since(before, ["process"])
        with subprocess.Popen(["sleep", "5"]) as new:
            later = Census.take().left_since(before, ["process"])
            new.kill()
        survivor.kill()
    assert left == []
    assert [line for line in later if "sleep 5" in line]
