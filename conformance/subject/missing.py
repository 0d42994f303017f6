"""A sandbox without an optional package: built in a process that cannot find it."""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

from conformance.requirements import reference
from conformance.subject import fresh
from conformance.subject.blame import shown
from conformance.subject.loading import load
from conformance.subject.targets import asked_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.subject.targets import Target
    from sandboxes.contract import Sandbox

_LIBRARY = ("sandboxes", "sandboxes.experimental", "sandboxes.pattern.sandbox_hook")


def needed(cls: type[Sandbox]) -> Mapping[str, str]:
    """The optional packages of a sandbox by import name, each with the extra that brings it."""
    public = reference.public_class(cls)
    return {**reference.EXTRAS.get(public.__name__, {}), **cls.optional_packages}


def built_without(target: Target, package: str) -> tuple[str, str]:
    """Import the library and build the subject where a package is not installed.

    Returns:
        What importing raised, and what building raised; empty where nothing was.

    Raises:
        Violation: That ended the process, or did not come back.
    """
    doing = f"building it without the package {package}"
    importing, building = fresh.ask(__name__, target, doing, package)
    return importing, building


class _Without:
    """A finder of modules that does not find some, and otherwise is the one it stands for."""

    def __init__(self, finder: object, package: str) -> None:
        self._finder: Any = finder
        self._package = package

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the finder has
        return getattr(self._finder, name)

    def find_spec(self, name: str, *places: Any) -> Any:  # noqa: ANN401 - as the finder has it
        return None if _is_of(name, self._package) else self._finder.find_spec(name, *places)

    def find_distributions(self, *context: Any) -> Iterable[Any]:  # noqa: ANN401 - as above
        find: Any = getattr(self._finder, "find_distributions", lambda *_: ())
        return (one for one in find(*context) if _plain(str(one.name)) != _plain(self._package))


def _is_of(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def _plain(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _build(spec: str, options: dict[str, Any]) -> tuple[str, str]:
    package = sys.argv[5]
    finders: list[Any] = [_Without(finder, package) for finder in sys.meta_path]
    sys.meta_path[:] = finders
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if _is_of(name, package)]:
        del sys.modules[name]
    try:
        for library in _LIBRARY:
            importlib.import_module(library)
        cls = load(spec)
    except Exception as error:  # noqa: BLE001 - what it raised is the answer
        return shown(error.__cause__ or error), ""
    raised = ""
    asked = asked_for(cls)
    for more in [{}, asked] if asked else [{}]:
        try:
            cls(**options, **more)
        except Exception as error:  # noqa: BLE001 - what it raised is the answer
            raised = shown(error)
        else:
            return "", ""
    return "", raised


if __name__ == "__main__":
    fresh.answer(_build)
