"""What the checks of header bindings look with: it finds what is there, and nothing else."""

from __future__ import annotations

import base64
import json
import posixpath
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.probes import traces
from conformance.probes.told import told
from conformance.strategies import bound_paths
from conformance.strategies.bound_headers import in_every_case

SEARCHER = Path(__file__).parents[1] / "conformance" / "probes" / "searcher.py"
SECRET = 'cnry"se/cr\\et 0123456789'


@pytest.mark.parametrize("ahead", range(4))
@pytest.mark.parametrize(
    "write",
    [
        lambda text: text,
        lambda text: base64.b64encode(text.encode()).decode(),
        json.dumps,
        lambda text: quote(text, safe=""),
        lambda text: text.encode().hex().upper(),
    ],
)
def test_a_secret_is_found_however_it_is_written(write: object, ahead: int) -> None:
    assert callable(write)
    written = write("." * ahead + SECRET + "behind")

    assert traces.found_in(["another", SECRET], f"some {written} text")
    assert not traces.found_in([SECRET], f"some {write('.' * ahead + 'cnry another one')} text")


@given(st.binary(max_size=400))
def test_a_secret_is_not_found_where_it_is_not(data: bytes) -> None:
    assert not traces.found_in([SECRET], data)


def disguised(*texts: bytes) -> str:
    return json.dumps([bytes(255 - byte for byte in text).hex() for text in texts])


def test_the_search_finds_files_variables_and_arguments_and_not_itself(tmp_path: Path) -> None:
    names = ("in-a-file-", "in-a-variable-", "in-an-argument-", "in-no-place-")
    texts = [(name + tmp_path.name)[::-1].encode() for name in names]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"behind " + texts[0])
    environ = {"SHOWN": texts[1].decode()}
    # Everything of this machine but the folder itself would take long.
    skipped = [f"/{one.name}" for one in Path("/").iterdir() if one.name != tmp_path.parts[1]]
    command = [sys.executable, "-I", str(SEARCHER), disguised(*texts), json.dumps(skipped)]

    ran = subprocess.run(
        [*command, texts[2].decode()], env=environ, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip

    *finds, end = map(json.loads, ran.stdout.splitlines())
    assert end == "done"
    places = {number: {place for place, found in finds if found == number} for number in range(4)}
    assert str(tmp_path / "deep" / "file") in places[0]
    assert "the environment of a command" in places[1]
    assert any(place.endswith("/cmdline") for place in places[2])
    assert not places[3]


def test_what_an_exception_tells_is_all_that_stands_behind_it() -> None:
    first = LookupError("the first")
    first.add_note("a note")
    middle = ValueError("the middle")
    middle.__context__ = first
    last = RuntimeError("the last", {"in": "arguments"})
    last.__cause__ = ExceptionGroup("several", [middle])

    text = told(last)

    assert all(part in text for part in ("the first", "a note", "the middle", "the last"))
    assert "arguments" in text


def plainest(path: str) -> str:
    """What the server makes of a path that undoes all that any server undoes."""
    while (decoded := unquote(path)) != path:
        path = decoded
    folded = path.replace("\\", "/")
    while "//" in folded:
        folded = folded.replace("//", "/")
    return posixpath.normpath(folded)


@given(bound_paths.prefixes)
def test_paths_are_what_they_are_said_to_be(prefix: str) -> None:
    for path in bound_paths.inside_of(prefix):
        assert bound_paths.PLAIN.fullmatch(path), path
        assert bound_paths.is_under(path, prefix), path
    for path in bound_paths.beside(prefix):
        assert not bound_paths.is_under(path, prefix), path
    for path in bound_paths.same(prefix):
        assert not bound_paths.PLAIN.fullmatch(path), path
        assert bound_paths.is_under(plainest(path), prefix), path
    for path in bound_paths.escapes(prefix):
        assert not bound_paths.PLAIN.fullmatch(path), path
        assert path.startswith(prefix), path
        assert not bound_paths.is_under(plainest(path), prefix), path


def test_a_header_is_written_in_several_cases() -> None:
    assert {"X-Key", "x-key", "X-KEY"} < set(in_every_case("X-Key"))
    assert {name.lower() for name in in_every_case("X-Key")} == {"x-key"}
