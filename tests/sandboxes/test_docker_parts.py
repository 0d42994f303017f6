from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.docker_commands import MOST_BYTES, shell_words
from sandboxes.docker_dialogues import LONGEST_LINE, line_of
from sandboxes.docker_owner import Owner
from sandboxes.docker_sandbox import asks_itself_for_names
from sandboxes.docker_streams import Frames, MarkedStream

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOKEN = "0123456789abcdef"


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(
    sent=st.lists(st.tuples(st.sampled_from((1, 2)), st.binary(max_size=40))),
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_frames_come_apart_wherever_the_connection_cuts_them(
    sent: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    wire = b"".join(struct.pack(">BxxxL", stream, len(data)) + data for stream, data in sent)
    frames = Frames()
    got = [piece for part in cut(wire, cuts) for piece in frames.pieces(part)]
    for number in (1, 2):
        assert b"".join(data for stream, data in got if stream == number) == b"".join(
            data for stream, data in sent if stream == number
        )


# What a command writes may look much like the beginning of a mark.
texts = st.lists(st.sampled_from((b"x", b"\n", TOKEN[:7].encode(), b" ", b"\xff"))).map(b"".join)


@given(first=texts, second=texts, late=texts, cuts=st.lists(st.integers(0, 400), max_size=12))
def test_what_came_between_the_marks_is_kept_to_the_byte(
    first: bytes, second: bytes, late: bytes, cuts: list[int]
) -> None:
    wire = b"%s%s 41\n%s%s 3\n%s" % (first, TOKEN.encode(), second, TOKEN.encode(), late)
    stream = MarkedStream(TOKEN, 2)
    for part in cut(wire, cuts):
        stream.feed(part)
    assert (bytes(stream.data), stream.marks, stream.ended) == (first + second, ["41", "3"], True)


@given(data=texts, cuts=st.lists(st.integers(0, 200), max_size=12), kept=st.integers(0, 60))
def test_what_ends_without_a_mark_is_kept_and_the_rest_counted(
    data: bytes, cuts: list[int], kept: int
) -> None:
    stream = MarkedStream(TOKEN, 1, kept)
    for part in cut(data, cuts):
        stream.feed(part)
    stream.finish()
    assert (bytes(stream.data), stream.ended) == (data[:kept], False)
    assert stream.dropped == max(0, len(data) - kept)


@pytest.mark.parametrize(
    "text",
    [
        'printf \'%s \' "$#" "$0"; exit 3 # ' + "é" * 100_000,
        'printf \'%s \' "$#" "$0"; exit 3',
        '# first\nprintf \'%s \' "$#" "$0"\nexit 3\n' + "\n" * 200_000,
    ],
    ids=["a long line", "a short one", "many lines"],
)
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_command_of_any_length_is_one_text_to_its_shell(text: str, shell: str) -> None:
    ended = subprocess.run(shell_words(shell, text), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, f"0 {shell} ", "")


@given(words=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_words_on_a_line_are_those_words_to_a_shell(words: list[str]) -> None:
    line = line_of(["printf", "'%s\\0'"], words, {"x": "a b"})
    assert line is not None
    assert "\n" not in line
    script = "__nl='\n'; IFS= read -r line; (eval \"$line\")"
    ended = subprocess.run(
        ["sh", "-c", script], input=f"{line}\n".encode(), capture_output=True, check=True
    )
    assert ended.stdout.decode() == "\0".join([*(words or [""]), ""])


def test_words_that_are_too_long_for_a_line_are_none() -> None:
    assert line_of(["printf"], ["x" * LONGEST_LINE], {}) is not None
    assert line_of(["printf"], ["x" * LONGEST_LINE, "y"], {}) is None
    assert line_of(["printf"], ["'" * LONGEST_LINE], {}) is None


def test_a_command_that_no_system_takes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1500001 bytes.*write it to a file"):
        shell_words("sh", "x" * (MOST_BYTES + 1))
    with pytest.raises(ValueError, match="surrogate"):
        shell_words("sh", "echo \udc80")


def other(owner: Owner, **changes: str | int) -> Owner:
    fields = {"machine": owner.machine, "pid": owner.pid, "began": owner.began, **changes}
    return Owner(**fields)  # type: ignore[arg-type] # as given


def test_an_owner_is_gone_only_where_its_number_means_something() -> None:
    here = Owner.here()
    assert not here.is_gone()
    assert Owner.of(here.labels()) == here
    assert other(here, began=here.began + 1).is_gone(), "its number is another process's"
    assert not other(here, machine="another-boot 1", began=1).is_gone()
    assert not other(here, machine="", began=1).is_gone()
    assert Owner.of({"someone.else": "1"}) is None
    assert Owner.of({**here.labels(), "sandbox-conformance.owner.process": "x"}) is None


def test_an_owner_that_ended_is_gone_before_anybody_has_waited_for_it() -> None:
    program = "from sandboxes.docker_owner import Owner; print(Owner.here().labels())"
    with subprocess.Popen(
        [sys.executable, "-c", program + "; input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        owner = Owner.of(eval(process.stdout.readline()))
        assert owner is not None
        assert not owner.is_gone()
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner.is_gone(), "a zombie runs nothing any more"


@pytest.mark.parametrize(
    ("lines", "itself"),
    [
        ("nameserver 127.0.0.53\n", True),
        ("nameserver 127.0.0.1\nnameserver ::1\n", True),
        ("# nameserver 127.0.0.1\nsearch example.test\n", False),
        ("nameserver 127.0.0.1\nnameserver 192.0.2.1\n", False),
        ("nameserver 2001:db8::1\n", False),
    ],
)
def test_a_machine_that_asks_only_itself_for_names_is_known(
    tmp_path: Path, lines: str, itself: bool
) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text(lines)
    assert asks_itself_for_names([file, tmp_path / "missing"]) is itself
