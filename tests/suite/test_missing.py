from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.subject import missing
from conformance.subject.loading import load
from conformance.subject.targets import Target
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from pathlib import Path

# Each finds out in its own way whether a module of the standard library is there.
LOOKS = {
    "import": "import colorsys",
    "importlib": "importlib.import_module('colorsys')",
    "spec": "assert importlib.util.find_spec('colorsys')",
}
BODY = """
import importlib, importlib.metadata, importlib.util
from sandboxes.no_sandbox import NoSandbox

class Colourful(NoSandbox):
    optional_packages = {{"{package}": "colours"}}

    def __init__(self, **options):
        super().__init__(**options)
        try:
            {look}
        except Exception:
            raise ImportError("pip install 'mine[colours]'") from None
"""


def target(folder: Path, look: str, package: str = "colorsys", first: str = "") -> Target:
    path = folder / "colourful.py"
    path.write_text(first + BODY.format(look=look, package=package), encoding="utf-8")
    name = f"{path}:Colourful"
    return Target(name, load(name), {})


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_package_is_missing_however_it_is_looked_for(tmp_path: Path, look: str) -> None:
    subject = target(tmp_path, look)
    assert missing.needed(subject.cls) == {"colorsys": "colours"}
    found = missing.built_without(subject, "colorsys")
    assert found == ("", "ImportError: pip install 'mine[colours]'")
    assert missing.built_without(subject, "wave") == ("", "")


def test_a_distribution_is_missing_too(tmp_path: Path) -> None:
    subject = target(tmp_path, "importlib.metadata.version('h11')", "h11")
    assert missing.built_without(subject, "h11")[1].startswith("ImportError")
    assert missing.built_without(subject, "wave") == ("", "")


def test_an_import_that_fails_is_told_apart(tmp_path: Path) -> None:
    subject = target(tmp_path, "pass", first="import colorsys")
    found = missing.built_without(subject, "colorsys")
    assert found == ("ModuleNotFoundError: No module named 'colorsys'", "")


def test_a_constructor_that_ends_its_process_broke_the_rule(tmp_path: Path) -> None:
    look = "importlib.util.find_spec('colorsys') or exit(3)"
    subject = target(tmp_path, look)
    with pytest.raises(Violation, match="without the package colorsys ended the process: 3"):
        missing.built_without(subject, "colorsys")
