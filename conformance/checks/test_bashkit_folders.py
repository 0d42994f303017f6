"""LIF: the folders of a sandbox that is named by ids, and what may be planted there."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes import session_folders
from conformance.requirements import LIF_05, LIF_06
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.verdicts import HarnessError, NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.subject.targets import Target

_BY_ITS_IDS = "derive the folder's name from instance_id and session id, and from nothing else"


def _ids(target: Target) -> tuple[str, str, str]:
    if target.options.get("instance_id") is not None:
        raise NotApplicable("an option of this run names the instance")
    return f"i{secrets.token_hex(4)}", f"x-s{secrets.token_hex(4)}", f"kept{secrets.token_hex(4)}"


def _read(target: Target, name: str, session_id: str, **options: Any) -> bytes | None:  # noqa: ANN401
    """What a sandbox with these ids has as a file; None if it has none."""
    with target.open(session_id=session_id, **options) as box, suppress(FileNotFoundError):
        return box.read_file(name)
    return None


@verifies(LIF_05)
@needs(opens=True, option="instance_id")
def test_the_folders_of_an_instance_are_found_again_by_its_ids_alone(target: Target) -> None:
    """The folders lie in the temporary folder, stay, and are found by the same ids alone."""
    instance, session, name = _ids(target)
    with target.open(instance_id=instance, session_id=session) as box:
        box.write_file(name, b"kept")
        if not session_folders.places_of(name):
            raise Violation(
                f"a file of it is nowhere below {session_folders.temporary_folder()}",
                remedy="keep the folders of a session in the system's temporary folder",
            )
    try:
        _finds_what_it_kept(target, instance, session, name)
    finally:
        for place in session_folders.places_of(name):
            shutil.rmtree(session_folders.outermost(place))


def _finds_what_it_kept(target: Target, instance: str, session: str, name: str) -> None:
    # Ids that differ in case alone, or in where one ends and the next begins.
    joined = (f"{instance}-x", session.removeprefix("x-"))
    for others in ((instance, session.upper()), joined, (session, instance)):
        if _read(target, name, others[1], instance_id=others[0]) is not None:
            raise Violation(f"the ids {others} found the folder of another one", remedy=_BY_ITS_IDS)
    if _read(target, name, session) is not None:
        raise Violation("a session id alone found the folder of an instance", remedy=_BY_ITS_IDS)
    if (found := _read(target, name, session, instance_id=instance)) != b"kept":
        raise Violation(f"the same ids found {found!r} instead of the file", remedy=_BY_ITS_IDS)


@verifies(LIF_05)
@needs(opens=True, option="instance_id")
def test_what_another_process_left_is_found_by_the_same_ids(target: Target) -> None:
    """What a process that crashed had written is found by its ids, or by its session id alone."""
    instance, session, name = _ids(target)
    alone = f"{session}-alone"
    wrong = session_folders.written_by_a_process_that_crashed(
        target,
        [({"instance_id": instance}, session, name, "kept"), ({}, alone, name, "alone")],
    )
    if wrong:
        raise HarnessError(f"another process could not use {target.cls.__name__}: {wrong}")
    try:
        found = (
            _read(target, name, session, instance_id=instance),
            _read(target, name, alone),
        )
    finally:
        for place in session_folders.places_of(name):
            shutil.rmtree(session_folders.outermost(place))
    if found != (b"kept", b"alone"):
        raise Violation(f"of two files of another process it found {found}", remedy=_BY_ITS_IDS)


_leading_out = st.lists(st.sampled_from(["..", ".", "a", ""]), min_size=1, max_size=4).map(
    "/".join
).filter(lambda text: ".." in text.split("/") or text.startswith("/")) | st.sampled_from(
    ["..", ".", "/", "\\..\\..", "a\0b", "a\n../b"]
)
_EXPLICIT = ("..", "../x", "a/../../x", "/etc/x", ".", "", "a\0b")


@verifies(LIF_06)
@needs(opens=True, option="instance_id")
@given(text=_leading_out)
@each("text", _EXPLICIT)
def test_an_id_that_would_lead_out_is_refused(target: Target, text: str) -> None:
    """An `instance_id` or session id that would lead out of its folder is refused."""
    session = f"s{secrets.token_hex(4)}"
    ways: dict[str, tuple[dict[str, Any], str]] = {
        "instance_id": ({"instance_id": text}, session),
        "session id": ({}, text),
    }
    for what, (options, session_id) in ways.items():
        if not session_id:
            continue  # the suite's own word for any id
        if _opens(target, session_id, options):
            raise Violation(
                f"the {what} {text!r} was accepted", remedy="refuse an id that is a path"
            )


def _opens(target: Target, session_id: str, options: dict[str, Any]) -> bool:
    try:
        with target.open(session_id=session_id, **options):
            return True
    except Violation:
        raise
    except Exception:  # noqa: BLE001 - any error is a refusal
        return False


@verifies(LIF_06)
@needs(opens=True, option="instance_id")
@pytest.mark.parametrize("named", [False, True])
def test_the_folders_are_private_to_the_user(target: Target, *, named: bool) -> None:
    """No other user can look into the folders of a session, whatever the umask."""
    instance, session, name = _ids(target)
    options: dict[str, Any] = {"instance_id": instance} if named else {}
    before = os.umask(0)
    try:
        with target.open(session_id=session, **options) as box:
            box.write_file(name, b"private")
            places = session_folders.places_of(name)
            folders = [session_folders.outermost(place) for place in places]
            found = [session_folders.open_to_others(folder) for folder in folders]
    finally:
        os.umask(before)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if not places:
        raise NotRun("its files are not below the temporary folder: see LIF-05")
    if any(found):
        raise Violation(
            f"the folder of a session is open to others: {'; '.join(filter(None, found))}",
            remedy="make it with mode 0700, and check whose it is",
        )


_PLANTED = ("the folder itself", "the workspace", "a link in the workspace")


@verifies(LIF_06)
@needs(opens=True, option="instance_id")
@pytest.mark.parametrize("where", _PLANTED)
def test_a_planted_link_is_not_followed(target: Target, tmp_path: Path, where: str) -> None:
    """A link in the place of a session's folder, or in it, is neither used nor deleted through."""
    instance, session, name = _ids(target)
    with target.open(instance_id=instance, session_id=session) as box:
        box.write_file(name, b"mine")
        places = session_folders.places_of(name)
    if not places:
        raise NotRun("its files are not below the temporary folder: see LIF-05")
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "canary").write_bytes(b"canary")
    folder = session_folders.outermost(places[0])
    places[0].parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _plant(where, folder, places[0].parent, victim)
    try:
        _uses(target, where, instance, session)
    finally:
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    left = sorted(entry.name for entry in victim.rglob("*") if entry.is_file())
    if left != ["canary"]:
        raise Violation(
            f"with a link as {where} a session left {left} where it leads", remedy=_NO_LINKS
        )


_NO_LINKS = "open and delete folders by descriptors that follow no link"


def _plant(where: str, folder: Path, workspace: Path, victim: Path) -> None:
    if where == "a link in the workspace":
        (workspace / "link").symlink_to(victim)
        return
    place = folder if where == "the folder itself" else workspace
    shutil.rmtree(place)
    place.symlink_to(victim)


def _uses(target: Target, where: str, instance: str, session: str) -> None:
    """Use a session of these ids, whether it opens or not."""
    path = "link/planted" if where == "a link in the workspace" else "planted"
    try:
        with target.open(instance_id=instance, session_id=session) as box:
            with suppress(OSError):
                box.write_file(path, b"planted")
            box.execute(f"printf x > {path}; rm -f {path.replace('planted', 'canary')}")
            with suppress(OSError):
                seen = box.read_file(path.replace("planted", "canary"))
                raise Violation(f"with a link as {where} it read {seen!r}", remedy=_NO_LINKS)
    except Violation:
        raise
    except Exception as error:  # to refuse what was planted is right
        if not str(error):
            raise Violation(f"it raised {shown(error)} without a word", remedy=_NO_LINKS) from error
