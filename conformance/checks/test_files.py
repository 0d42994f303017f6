"""FIL: what a sandbox reads and writes, against what its commands make and see."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from conformance.bounds import BOUNDS
from conformance.marks import needs, verifies
from conformance.probes import contents
from conformance.probes.contents import difference, placed
from conformance.requirements import FIL_01, FIL_02, FIL_03, FIL_05
from conformance.strategies import files
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from sandboxes.contract import SandboxExecutionResult

_READ = "read the file that commands see, byte by byte"
_WRITE = "write the bytes as they are, in place of all that was there"
_NAMES = "take names as they are"
_SECONDS = 20.0


def _new() -> str:
    return f"file-{secrets.token_hex(4)}"


def _is(got: bytes, wanted: bytes, what: str, remedy: str) -> None:
    if got != wanted:
        raise Violation(f"{what} gave {difference(got, wanted)}", remedy=remedy)


@verifies(FIL_01)
@needs(opens=True)
@given(data=files.contents)
@each("data", files.CONTENTS)
def test_reading_gives_the_bytes_that_a_command_wrote(inside: Inside, data: bytes) -> None:
    """`read_file` gives the bytes of a file that a command made."""
    box, name = inside.narrowest(), _new()
    contents.make(box, name, data)
    _is(box.read_file(name), data, f"read_file of {data[:40]!r}, which printf wrote,", _READ)


@verifies(FIL_01)
@needs(opens=True)
def test_reading_follows_the_changes_that_commands_make(inside: Inside) -> None:
    """`read_file` gives what a file holds now, whatever it held when it was read before."""
    box, name = inside.narrowest(), _new()
    for text in ("first", "second", "third one"):
        contents.make(box, name, text.encode())
        _is(box.read_file(name), text.encode(), "read_file of a file that a command changed", _READ)


@verifies(FIL_01)
@needs(opens=True)
def test_relative_paths_begin_in_the_workspace(inside: Inside) -> None:
    """A relative path begins in the workspace, wherever commands went, and an absolute one not."""
    box, folder = inside.narrowest(), _new()
    made = box.execute(
        f"mkdir {folder} && printf inner > {folder}/file && printf outer > file && pwd",
        timeout_seconds=_SECONDS,
    )
    box.execute(f"cd {folder}; cd /", timeout_seconds=_SECONDS)
    paths = {"file": b"outer", f"{folder}/file": b"inner", f"./{folder}/../file": b"outer"}
    where = made.stdout.strip()
    if where.startswith("/"):
        paths[f"{where}/{folder}/file"] = b"inner"
    for path, wanted in paths.items():
        _is(box.read_file(path), wanted, f"read_file({path!r})", _READ)


@verifies(FIL_01)
@needs(opens=True, processes=True)
def test_a_file_that_the_kernel_plays_is_not_empty(inside: Inside) -> None:
    """A file whose size is given as 0 is read as commands read it, or refused."""
    box, path = inside.narrowest(), "/proc/version"
    seen = box.execute(f"cat {path}", timeout_seconds=_SECONDS)
    if seen.exit_code or not seen.stdout:
        raise NotApplicable(f"commands find no {path}")
    try:
        got = box.read_file(path)
    except OSError:
        return
    _is(got, seen.stdout.encode(), f"read_file({path!r})", "read to the end, and not by the size")


@verifies(FIL_02)
@needs(opens=True)
@given(data=files.contents)
@each("data", files.CONTENTS)
def test_reading_gives_back_what_was_written(inside: Inside, data: bytes) -> None:
    """What is written is what reading gives back, and what commands see."""
    box, name = inside.narrowest(), _new()
    box.write_file(name, data)
    _is(box.read_file(name), data, f"writing {data[:40]!r} and reading it back", _WRITE)
    if contents.commands_show_bytes(box, inside.target.name):
        seen = contents.as_commands_see(box, name)
        _is(seen or b"", data, f"a command that saw what write_file had written ({name})", _WRITE)


@verifies(FIL_02)
@needs(opens=True)
@given(pair=files.overwrites)
@each("pair", ((b"a longer text\n" * 9, b"short"), (b"all of it", b""), (b"same", b"size")))
def test_a_shorter_content_takes_the_place_of_a_longer_one(
    inside: Inside, pair: tuple[bytes, bytes]
) -> None:
    """A file that is written again holds what was written last, and no more."""
    box, name = inside.narrowest(), _new()
    for data in pair:
        box.write_file(name, data)
    _is(box.read_file(name), pair[1], f"writing {len(pair[0])} bytes, then {pair[1]!r},", _WRITE)


@verifies(FIL_02)
@needs(opens=True)
@pytest.mark.parametrize("length", files.LENGTHS)
def test_long_contents_arrive_whole(inside: Inside, length: int) -> None:
    """A file of any length up to 10 MB is written and read whole."""
    data = (secrets.token_bytes(1021) * (length // 1021 + 1))[:length]
    box = inside.narrowest()
    box.write_file("long", data)
    _is(box.read_file("long"), data, f"writing {length} bytes and reading them back", _WRITE)
    counted = box.execute("wc -c < long", timeout_seconds=_SECONDS).stdout.strip()
    if counted.isdigit() and int(counted) != length:
        raise Violation(
            f"of {length} bytes that it wrote a command counts {counted}", remedy=_WRITE
        )


@verifies(FIL_02)
@needs(opens=True)
@given(name=files.names)
@each("name", files.NAMES)
def test_a_file_is_found_under_the_name_that_it_was_given(inside: Inside, name: str) -> None:
    """A file is written and read under any name, which commands find it by; parents are made."""
    _is_found(inside.narrowest(), f"{_new()}/{name}")


@verifies(FIL_02)
@needs(opens=True)
@pytest.mark.parametrize("path", files.FIRST)
def test_a_path_may_begin_with_any_sign(inside: Inside, path: str) -> None:
    """A relative path is one in the workspace, whatever sign it begins with."""
    _is_found(inside.narrowest(), path)


def _is_found(box: Box, path: str) -> None:
    data = secrets.token_hex(8).encode()
    box.write_file(path, data)
    _is(box.read_file(path), data, f"writing {path!r} and reading it back", _NAMES)
    seen = box.execute(f"cat {placed(path)}", timeout_seconds=_SECONDS)
    if seen.stdout.encode() != data:
        raise Violation(
            f"a command did not find {path!r}, which had been written: {seen.stderr[:120]!r}",
            remedy="write under the very name, whatever a shell or a URL would make of it",
        )


@verifies(FIL_02)
@needs(opens=True)
def test_names_that_look_alike_are_files_of_their_own(inside: Inside) -> None:
    """Names that differ in case, in spaces or in the form of a letter are different files."""
    box, folder = inside.narrowest(), _new()
    for name in files.ALIKE:
        box.write_file(f"{folder}/{name}", name.encode())
    for name in files.ALIKE:
        _is(
            box.read_file(f"{folder}/{name}"),
            name.encode(),
            f"reading {name!r} beside {len(files.ALIKE) - 1} names like it",
            _NAMES,
        )


def _failure(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except Violation:
        raise
    except Exception as error:  # noqa: BLE001 - which kind it is, is what is judged
        return error
    return None


def _failed_as(error: BaseException | None, call: str, path: str, *kinds: type[OSError]) -> None:
    named = path in str(error) or path in str(getattr(error, "filename", ""))
    if not isinstance(error, kinds) or not named:
        got = "no error" if error is None else shown(error)
        raise Violation(
            f"{call} gave {got}", remedy=f"raise {kinds[0].__name__} that names the path"
        )


@verifies(FIL_03)
@needs(opens=True)
def test_what_is_missing_is_said_to_be_missing(inside: Inside) -> None:
    """Reading a file that is missing raises `FileNotFoundError` with its path, and makes none."""
    box = inside.narrowest()
    for path in (_new(), f"no-folder/{_new()}", f"/{_new()}"):
        error = _failure(lambda path=path: box.read_file(path))  # type: ignore[misc]
        # Outside of the workspace it may as well be refused.
        kinds = (FileNotFoundError, *([PermissionError] if path.startswith("/") else []))
        _failed_as(error, f"read_file of {path!r}, which is missing,", path, *kinds)
        left = box.execute(f"test -e {placed(path)} && echo there=$((40 + 2))").stdout
        if "there=42" in left.split():
            raise Violation(f"reading {path!r} made it", remedy="make nothing when reading")


@verifies(FIL_03)
@needs(opens=True)
def test_a_folder_is_said_to_be_a_folder(inside: Inside) -> None:
    """Reading or writing a folder raises `IsADirectoryError` with its path, and leaves it."""
    box, folder = inside.narrowest(), _new()
    box.execute(f"mkdir {folder} && printf kept > {folder}/kept", timeout_seconds=_SECONDS)
    for call in ("read_file", "write_file"):
        arguments = (folder,) if call == "read_file" else (folder, b"x")
        error = _failure(lambda call=call, given=arguments: getattr(box, call)(*given))  # type: ignore[misc]
        _failed_as(error, f"{call} of the folder {folder!r}", folder, IsADirectoryError)
    _is(box.read_file(f"{folder}/kept"), b"kept", "a folder that was written to as a file", _WRITE)


@verifies(FIL_03)
@needs(opens=True)
def test_a_refusal_is_said_to_be_one(inside: Inside) -> None:
    """What is refused raises `PermissionError` with its path."""
    box, name = inside.narrowest(), _new()
    box.execute(f"printf x > {name}; mkdir {name}.d; chmod 000 {name}; chmod 555 {name}.d")
    refused = box.execute(f"cat {name}").exit_code, box.execute(f": > {name}.d/new").exit_code
    tried: list[tuple[str, str, Callable[[], object]]] = []
    if refused[0]:
        tried.append(("read_file", name, lambda: box.read_file(name)))
    if refused[1]:
        tried.append(("write_file", f"{name}.d/new", lambda: box.write_file(f"{name}.d/new", b"")))
    outside = f"/{_new()}"
    if inside.target.declared.fact("isolated"):
        # Nobody needs to refuse this one.
        tried.append(("write_file", outside, lambda: box.write_file(outside, b"")))
    for call, path, run in tried:
        error = _failure(run)
        if error is not None or path != outside:
            _failed_as(error, f"{call} of {path!r}, which is refused,", path, PermissionError)


@verifies(FIL_03)
@needs(opens=True, processes=True)
def test_what_is_no_file_keeps_no_reader_waiting(inside: Inside) -> None:
    """Reading a FIFO that nobody writes to ends at once, with an error or with nothing."""
    box, name = inside.narrowest(), _new()
    if box.execute(f"mkfifo {name}", timeout_seconds=_SECONDS).exit_code:
        raise NotApplicable("no command inside makes a FIFO")
    reader = threading.Thread(target=lambda: _failure(lambda: box.read_file(name)), daemon=True)
    reader.start()
    reader.join(BOUNDS.slack)
    waits = reader.is_alive()
    if waits:
        # Opened for both ways it has a writer, and then none: the reader's wait is over. Where
        # the reader blocks the event loop as well, that is no fault of this command.
        with suppress(Violation):
            box.execute(f"exec 3<>{name}; sleep 0.3", timeout_seconds=1)
        reader.join(BOUNDS.slack)
        raise Violation(
            f"read_file of a FIFO that nobody writes to was not over after {BOUNDS.slack:g} s",
            remedy="open without waiting, and refuse what is no regular file",
        )


_LENGTH = 2_000_000
_READS = 8
_MOST_WRITES = 60


@verifies(FIL_05)
@needs(opens=True)
def test_no_reader_sees_a_part_of_a_write(inside: Inside) -> None:
    """Whoever reads a file while it is written sees the old content or the new one."""
    box, name = inside.narrowest(), _new()
    wholes = [letter * _LENGTH for letter in (b"a", b"b")]
    box.write_file(name, wholes[0])
    seen: list[bytes] = []
    over = threading.Event()
    reader = threading.Thread(target=_read_on, args=(box, name, seen, over), daemon=True)
    reader.start()
    for turn in range(_MOST_WRITES):
        box.write_file(name, wholes[(turn + 1) % 2])
        if len(seen) >= _READS:
            break
    over.set()
    reader.join(BOUNDS.files)
    if torn := [data for data in seen if data not in wholes]:
        raise Violation(
            f"a reader saw {len(torn[0])} bytes of a write of {_LENGTH}",
            remedy="write beside the file, and put the whole in its place",
        )
    if len(seen) < 2:
        raise NotRun("nothing was read while a file was written, so nothing can be told")


def _read_on(box: Box, name: str, seen: list[bytes], over: threading.Event) -> None:
    while not over.is_set():
        try:
            seen.append(box.read_file(name))
        except FileNotFoundError:
            seen.append(b"")


@verifies(FIL_05)
@needs(opens=True, processes=True)
def test_who_has_a_file_open_reads_on_in_what_was_opened(inside: Inside) -> None:
    """A command that began to read a file before it was written goes on in the same content."""
    box, name = inside.narrowest(), _new()
    box.write_file(name, b"old\n" * 3)
    waiting = f"i=0; until test -e {name}.new || test $i = 150; do sleep 0.1; i=$((i+1)); done"
    command = f"{{ read line; : > {name}.open; {waiting}; cat; }} < {name}"
    ended: list[SandboxExecutionResult] = []
    reader = threading.Thread(
        target=lambda: ended.append(box.execute(command, timeout_seconds=_SECONDS)), daemon=True
    )
    reader.start()
    deadline = time.monotonic() + _SECONDS
    while box.execute(f"test -e {name}.open").exit_code and time.monotonic() < deadline:
        time.sleep(0.05)
    box.write_file(name, b"new\n" * 3)
    box.write_file(f"{name}.new", b"")
    reader.join(_SECONDS)
    if not ended or ended[0].exit_code:
        raise NotRun(f"the command that was to read a file did not: {ended}; see EXE-01")
    if (read := ended[0].stdout).split() != ["old"] * 2:
        raise Violation(
            f"a command that had opened a file before it was written read {read!r} at its end",
            remedy="write beside the file, and put the whole in its place",
        )
