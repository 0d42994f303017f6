from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from conformance.subject.loading import TargetError, known_names, load, make_importable
from conformance.subject.targets import Target
from sandboxes.no_sandbox import NoSandbox
from tests.suite import subjects
from tests.suite.conftest import SUBJECTS, subject

if TYPE_CHECKING:
    from pathlib import Path


def test_a_known_name_a_module_and_a_file_give_the_class() -> None:
    assert load("none") is NoSandbox
    assert load("sandboxes.no_sandbox:NoSandbox") is NoSandbox
    assert load(subject("Right")).__name__ == "Right"


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        ("bashkitt", ["bashkitt", "bashkit", "none", "package.module:Class"]),
        ("nowhere.at_all:Box", ["ModuleNotFoundError", "nowhere"]),
        (f"{SUBJECTS}:Wrong", ["'Wrong'", "Right", "Hangs"]),
        ("nofile.py:Box", ["no file nofile.py"]),
        (":Box", ["names no module"]),
        (subject("function"), ["is a function and no class"]),
        (subject("NoSandboxAtAll"), ["CustomSandbox", "open(request)", "supported_network"]),
        (subject("Unfinished"), ["is abstract", "open"]),
        (subject("DeclaresText"), ["supported_network = 'none'", "frozenset"]),
        (subject("DeclaresOneExtra"), ["optional_packages = 'bashkit'", "mapping"]),
    ],
)
def test_what_cannot_be_had_is_told_in_one_line(spec: str, facts: list[str]) -> None:
    with pytest.raises(TargetError) as caught:
        load(spec)
    message = str(caught.value)
    assert message.startswith(f"--sandbox={spec}: ")
    assert "\n" not in message
    assert [fact for fact in facts if fact not in message] == []


@pytest.mark.parametrize("line", ["raise ValueError('two\\nlines')", "def (", "exit(3)"])
def test_a_module_that_does_not_import_is_told_in_one_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(line)
    with pytest.raises(TargetError) as caught:
        load(f"{path}:Any")
    assert "\n" not in str(caught.value)
    assert f"importing {path} raised" in str(caught.value)


def test_a_missing_option_is_told_apart_from_a_constructor_that_fails() -> None:
    with pytest.raises(TargetError, match="Right takes no 'colour'; it takes "):
        Target("x", subjects.Right, {"colour": 1})
    with pytest.raises(TargetError, match="raised ValueError: not like this nor like that"):
        Target("x", subjects.CannotBeBuilt, {})


def test_known_names_are_those_of_the_installed_packages() -> None:
    assert {"none", "bashkit"} <= set(known_names())


def test_folders_of_the_user_come_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["installed"])
    make_importable(["configured"], ["root", "installed"])
    assert sys.path == ["configured", "installed", "root"]


def _package(root: Path, body: str) -> Path:
    (root / "sub").mkdir(parents=True)
    for folder in (root, root / "sub"):
        (folder / "__init__.py").write_text("")
    (root / "helper.py").write_text("MODES = frozenset({'all'})")
    path = root / "sub" / "box.py"
    path.write_text(
        f"{body}\nfrom sandboxes.no_sandbox import NoSandbox\nclass Box(NoSandbox): ..."
    )
    return path


def test_a_file_of_a_package_finds_its_relatives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = _package(tmp_path / "package_of_a_user", "from ..helper import MODES")
    assert load(f"{path}:Box").__module__ == "package_of_a_user.sub.box"


def test_a_file_of_a_package_whose_name_is_taken_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert load(f"{_package(tmp_path / 'json', '')}:Box").__module__ == "_sandbox_box"


@pytest.mark.parametrize("modes", [{"allow"}, {"all"}, {"allow", "all"}])
def test_a_type_without_none_is_given_a_network_that_it_declares(modes: set[str]) -> None:
    target = Target("x", type("Open", (subjects.Right,), {"supported_network": modes}), {})
    assert target.build().network.mode in modes
    assert target.refusal(network=None) is not None
