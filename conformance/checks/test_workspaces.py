"""LIF: a workspace on the machine itself: found, kept, deleted, and never too much of it.

All of it happens in the laboratory's own folders, below a home and a working folder that
the check makes, each with a canary in it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.marks import needs, verifies
from conformance.probes.inside import needs_of_lab
from conformance.requirements import LIF_07, LIF_08, LIF_09, reference
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.lab.client import Lab
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_BASE = Path(".cache") / "mistral-vibe-harness-local-host"


@dataclass(frozen=True)
class _Place:
    """A home and a working folder that may be lost, below a folder that is above both."""

    above: Path

    @property
    def home(self) -> Path:
        return self.above / "home"

    @property
    def work(self) -> Path:
        return self.above / "work"

    def canaries(self) -> list[Path]:
        return [folder / "canary" for folder in (self.above, self.home, self.work)]

    def is_whole(self, when: str) -> None:
        """Judge that no canary is gone."""
        gone = [str(one.parent.name) for one in self.canaries() if not one.is_file()]
        if gone:
            raise Violation(f"{when} what was in {', '.join(gone)} is gone", remedy=_CARE)


_CARE = "delete a workspace only if it is the folder that was opened, and holds nothing precious"


@pytest.fixture
def place(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Place:
    """A home and a working folder for the time of a check, in the laboratory alone."""
    needs_of_lab(lab, "files")
    made = _Place(tmp_path.resolve() / "above")
    for folder in (made.above, made.home, made.work):
        folder.mkdir()
    for canary in made.canaries():
        canary.write_text("canary")
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(made.work)
    return made


def _folder_of(box: Box) -> Path:
    """Where commands run, as the host sees it, proven by a file."""
    folder = Path(box.execute("printf x > made-inside; pwd -P").stdout.strip())
    if not (folder / "made-inside").is_file():
        raise NotRun("commands do not run in a folder of the host, so nothing tells where they do")
    return folder


def _options(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - a constructor's own
    return {name: value for name, value in options.items() if value is not None}


@verifies(LIF_07)
@needs(opens=True, option="delete_on_cleanup")
def test_a_workspace_of_its_own_is_new_below_the_cache_and_deleted(
    target: Target, place: _Place
) -> None:
    """Without `workspace` each session has a new folder below the cache, deleted at the close."""
    if not reference.is_a(target.cls, "DangerousLocalSandbox"):
        raise NotApplicable("the documents name a place for DangerousLocalSandbox alone")
    base = place.home / _BASE
    (base / "earlier").mkdir(parents=True)
    (base / "earlier" / "canary").write_text("canary")
    remedy = f"make a new folder below ~/{_BASE} for each session, and delete that one"
    with target.open(workspace=None) as one, target.open(workspace=None) as two:
        folders = [_folder_of(one), _folder_of(two)]
        if folders[0] == folders[1] or not all(base in folder.parents for folder in folders):
            raise Violation(f"two sessions worked in {folders[0]} and {folders[1]}", remedy=remedy)
    left = sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_file())
    if left != ["earlier/canary"]:
        raise Violation(f"after two sessions there is {left} below the cache", remedy=remedy)
    place.is_whole("after two sessions")


_KEPT = {
    # How the workspace is named, delete_on_cleanup, and whether it is there in the end.
    "existing": ("existing", None, True),
    "existing, to keep": ("existing", False, True),
    "existing, to delete": ("existing", True, False),
    "missing": ("missing", None, True),
    "missing, to delete": ("missing", True, False),
    "relative": ("relative", None, True),
    "its own": (None, None, False),
    "its own, to keep": (None, False, True),
}


@verifies(LIF_07)
@needs(opens=True, option="delete_on_cleanup")
@pytest.mark.parametrize("name", list(_KEPT))
def test_a_workspace_is_kept_or_deleted_as_the_options_say(
    target: Target, place: _Place, tmp_path: Path, name: str
) -> None:
    """A named workspace is found, made or resolved, and kept, unless `delete_on_cleanup` says."""
    how, delete, kept = _KEPT[name]
    folder = {"relative": place.work / "here"}.get(str(how), tmp_path.resolve() / "named")
    if how == "existing":
        folder.mkdir()
        (folder / "mine").write_text("mine")
    named = {None: None, "relative": "here"}.get(how, str(folder))
    with target.open(workspace=named, **_options(delete_on_cleanup=delete)) as box:
        found = _folder_of(box)
        if named is not None and found != folder:
            raise Violation(
                f"workspace={named!r} in {place.work} became {found}",
                remedy="take a relative workspace from this process's working folder",
            )
    if found.exists() is not kept:
        raise Violation(
            f"a workspace that was {name} is {'there' if found.exists() else 'gone'} in the end",
            remedy="keep what was named, delete what was not, and obey delete_on_cleanup",
        )
    if kept and not (found / "made-inside").is_file():
        raise Violation(f"a workspace that was {name} was emptied", remedy=_CARE)
    if how == "existing" and kept and not (found / "mine").is_file():
        raise Violation("what had been in the workspace is gone", remedy=_CARE)
    place.is_whole(f"after a session with a workspace that was {name}")


def _starts(target: Target, workspace: str) -> bool:
    """Whether a session starts that is to delete this workspace; closed at once."""
    started = False
    # Any error is a refusal, if it comes before the start.
    with suppress(Exception), ExitStack() as stack:
        stack.enter_context(target.open(workspace=workspace, delete_on_cleanup=True))
        started = True
    return started


_PRECIOUS: dict[str, Callable[[_Place], str]] = {
    "home": lambda place: str(place.home),
    "above the home": lambda place: str(place.above),
    "working folder": lambda place: str(place.work),
    "relative": lambda _: "relative",
    "a dot": lambda _: ".",
    "empty": lambda _: "",
    "a tilde": lambda _: "~",
}
_EVASIVE: dict[str, Callable[[_Place], str]] = {
    "a link to the home": lambda place: str(_link(place, place.home)),
    "a link to above": lambda place: str(_link(place, place.above)),
    "a folder behind a link": lambda place: str(_link(place, place.above) / "work"),
    "the home by dots": lambda place: f"{place.work}/../home",
    "above by dots": lambda place: f"{place.work}/..",
    "the home with a slash": lambda place: f"{place.home}/",
    "the home with more": lambda place: f"/{place.above}//./home/.",
}
# Not "/" itself: what deletes that would take the laboratory along. Above is the same.


def _link(place: _Place, to: Path) -> Path:
    link = place.above.parent / "link"
    link.symlink_to(to)
    return link


def _is_refused(target: Target, place: _Place, name: str, workspace: str) -> None:
    (place.work / "relative").mkdir()
    (place.work / "relative" / "canary").write_text("canary")
    started = _starts(target, workspace)
    place.is_whole(f"with workspace={name} to delete")
    if not (place.work / "relative" / "canary").is_file():
        raise Violation("a relative workspace was deleted", remedy=_CARE)
    if started:
        raise Violation(
            f"a session that is to delete its workspace started with {name}",
            remedy="refuse at the start what is relative, or holds the home or the working folder",
        )
    fine = place.above.parent / "fine"
    if not _starts(target, str(fine)):
        raise NotRun(f"no session that is to delete its workspace starts, not even with {fine}")


@verifies(LIF_08)
@needs(opens=True, option="delete_on_cleanup")
@pytest.mark.parametrize("name", list(_PRECIOUS))
def test_a_precious_folder_is_not_taken_for_one_to_delete(
    target: Target, place: _Place, name: str
) -> None:
    """A workspace to delete is absolute and holds neither home nor working folder."""
    _is_refused(target, place, name, _PRECIOUS[name](place))


@verifies(LIF_09)
@needs(opens=True, option="delete_on_cleanup")
@pytest.mark.parametrize("name", list(_EVASIVE))
def test_no_spelling_makes_a_precious_folder_one_to_delete(
    target: Target, place: _Place, name: str
) -> None:
    """No link and no dot segment makes home or working folder a workspace to delete."""
    _is_refused(target, place, name, _EVASIVE[name](place))


def _by_a_link(place: _Place, workspace: Path) -> None:
    workspace.rename(workspace.with_name("away"))
    workspace.symlink_to(place.home)


def _by_another(place: _Place, workspace: Path) -> None:
    workspace.rename(workspace.with_name("away"))
    place.home.rename(workspace)


def _by_a_link_inside(place: _Place, workspace: Path) -> None:
    (workspace / "link").symlink_to(place.home)


def _by_the_working_folder(place: _Place, workspace: Path) -> None:
    place.work.rename(workspace / "work")  # and this process is still in it


_SWAPS: dict[str, Callable[[_Place, Path], None]] = {
    "swapped for a link": _by_a_link,
    "swapped for another folder": _by_another,
    "given a link": _by_a_link_inside,
    "given the working folder": _by_the_working_folder,
}


@contextmanager
def _closed_with_or_without_an_error() -> Iterator[None]:
    try:
        yield
    except Violation:
        raise
    except Exception as error:
        if not str(error):
            raise Violation(f"the close raised {shown(error)} without a word") from error


@verifies(LIF_09)
@needs(opens=True, option="delete_on_cleanup")
@pytest.mark.parametrize("name", list(_SWAPS))
def test_a_workspace_that_was_swapped_is_not_deleted_for_the_one_that_was_opened(
    target: Target, place: _Place, tmp_path: Path, name: str
) -> None:
    """A close deletes nothing that came in the workspace's place, or that a link in it leads to."""
    workspace = tmp_path.resolve() / "workspace"
    with (
        _closed_with_or_without_an_error(),
        target.open(workspace=str(workspace), delete_on_cleanup=True),
    ):
        _SWAPS[name](place, workspace)
    # Wherever they are by now.
    found = {path.parent for path in tmp_path.rglob("canary") if path.is_file()}
    lost = 3 - len(found)
    os.chdir(tmp_path)
    with suppress(OSError):
        workspace.unlink()
    if lost:
        raise Violation(f"a workspace that was {name} took {lost} canaries with it", remedy=_CARE)
