"""HOK: the identity that commits in a sandbox bear."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.requirements import HOK_12, HOK_17
from conformance.strategies.costly import few_examples
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, Violation
from sandboxes.pattern.sandbox_hook import GitIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_PLAIN = ("Ada Lovelace", "ada@example.org")
# Each is a way of its own for a text to be changed on its way into the configuration.
_IDENTITIES = (
    _PLAIN,
    (" Ada  'the' \"first\"\t", "a$(id)`id`\\n;#%h@example.org"),
    ("-Ada\n=Räuber ", "--unset"),
    ("Ångström e\N{COMBINING ACUTE ACCENT}", "'; exit 7; '"),
)
# Characters that a shell, a configuration file or an editor of texts minds. Without the carriage
# return: what git itself does to it depends on its version.
_AWKWARD = "aZ0 .,'\"$`\\#;=%-_@<>()[]{}|&*~!?\n\tä漢\N{COMBINING ACUTE ACCENT}\N{GRINNING FACE}"
_texts = st.text(_AWKWARD, min_size=1, max_size=12)
identities = st.tuples(*(_texts.filter(str.strip),) * 2)
_REMEDY = "run the hook's commands as they are, with a home that belongs to the sandbox"


def _accepted(target: Target) -> None:
    """Go on only where the constructor takes the hook."""
    error = target.refusal(hooks=(GitIdentity(name=_PLAIN[0], email=_PLAIN[1]),))
    if error is not None:
        raise NotApplicable(f"{target.cls.__name__} refuses GitIdentity: {shown(error)}")


def _has_git(box: Box) -> bool:
    return box.execute("git --version").exit_code == 0


def _configurations() -> dict[Path, bytes]:
    """The git configuration of this account and machine, file by file."""
    home = Path.home()
    places = [
        home / ".gitconfig",
        Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config",
        Path("/etc/gitconfig"),
    ]
    return {place: place.read_bytes() for place in places if place.is_file()}


@contextmanager
def _home_of_a_committer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process have a home with an identity in it, for the time of a check."""
    (folder / ".gitconfig").write_text("[user]\n\tname = canary\n\temail = canary@example.org\n")
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
        yield


@verifies(HOK_12)
@needs(opens=True)
@few_examples()
@given(identity=identities)
@each("identity", _IDENTITIES)
def test_the_git_identity_is_set_exactly_and_the_hosts_stays(
    target: Target,
    inside: Inside,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    identity: tuple[str, str],
) -> None:
    """`GitIdentity` sets the sandbox's global name and address exactly, and none of the host's."""
    _accepted(target)
    if not _has_git(inside.narrowest()):
        raise NotApplicable("there is no git inside: see HOK-17")
    with _home_of_a_committer(tmp_path_factory.mktemp("home"), monkeypatch):
        before = _configurations()
        with target.session(hooks=(GitIdentity(name=identity[0], email=identity[1]),)) as box:
            found = box.execute(
                "for key in name email; do git config --global --null --get user.$key; done"
            ).stdout
        after = _configurations()
    if found != "".join(f"{value}\0" for value in identity):
        raise Violation(f"the identity {identity!r} became {found!r}", remedy=_REMEDY)
    if changed := {path for path in {*before, *after} if before.get(path) != after.get(path)}:
        names = ", ".join(sorted(path.name for path in changed))
        raise Violation(f"the identity of a session changed the host's {names}", remedy=_REMEDY)


@verifies(HOK_17)
@needs(opens=True)
def test_a_git_identity_without_git_keeps_the_session_from_starting(
    target: Target, inside: Inside
) -> None:
    """`GitIdentity` where there is no git keeps the session from starting, and says why."""
    _accepted(target)
    if _has_git(inside.narrowest()):
        raise NotApplicable("there is git inside: see HOK-12")
    remedy = "let an error of on_create end the start, and pass it on as it is"
    try:
        with target.session(hooks=(GitIdentity(name=_PLAIN[0], email=_PLAIN[1]),)):
            pass
    except Violation:
        raise
    except Exception as error:
        if "git" in str(error).lower():
            return
        raise Violation(
            f"a session with GitIdentity and without git did not start, and said {shown(error)}",
            remedy=remedy,
        ) from error
    raise Violation("a session with GitIdentity started without git", remedy=remedy)
