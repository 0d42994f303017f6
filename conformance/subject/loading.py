"""Finding the class that `--sandbox` names: a known name, a module or a file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.subject.blame import shown
from sandboxes.contract import ACCESS_LEVELS, BINDING_TYPES, Sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

GROUP = "sandbox_conformance.sandboxes"
_DECLARATIONS = ("supported_access", "supported_network", "supported_header_bindings")
_MODES = frozenset({"none", "all", "allow"})


class TargetError(Exception):
    """The subject of a run cannot be had; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def make_importable(first: Sequence[str], last: Sequence[str]) -> None:
    """Put the user's folders on the import path.

    Args:
        first: Folders that the user's configuration names; they win over what is installed.
        last: The root and working folders; a stray module there hides nothing installed.
    """
    sys.path[:0] = [folder for folder in first if folder not in sys.path]
    sys.path.extend(folder for folder in last if folder not in sys.path)


def load(spec: str) -> type[Sandbox]:
    """Load the sandbox class that a `--sandbox` value names.

    Raises:
        TargetError: There is none, it cannot be imported, or it is no sandbox.
    """
    place, colon, attribute = spec.rpartition(":")
    if not colon:
        found = _from_entry_points(spec)
    else:
        found = _attribute(spec, _module(spec, place), attribute)
    return _checked(spec, found)


def known_names() -> list[str]:
    """The names that installed packages announce, in alphabetical order."""
    return sorted(entry_points(group=GROUP).names)


def _from_entry_points(spec: str) -> object:
    matches = entry_points(group=GROUP, name=spec)
    if not matches:
        raise TargetError(_unknown(spec))
    if len(matches) > 1:
        values = ", ".join(sorted(entry.value for entry in matches))
        raise TargetError(
            f"--sandbox={spec}: several packages claim this name; pass one of {values}"
        )
    entry = next(iter(matches))
    try:
        return entry.load()
    except Exception as error:
        raise TargetError(_import_failed(spec, entry.value, error)) from error


def _unknown(spec: str) -> str:
    if Path(spec).is_file():
        return f"--sandbox={spec}: is a file, which may have many classes; pass {spec}:Class"
    near = get_close_matches(spec, known_names(), 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return (
        f"--sandbox={spec}: no sandbox has this name; {hint}pass one of "
        f"{', '.join(known_names()) or '(none is installed)'}, "
        "or package.module:Class, or path/to/file.py:Class"
    )


def _module(spec: str, place: str) -> ModuleType:
    as_file = place.endswith(".py") or "/" in place
    if as_file and not Path(place).is_file():
        raise TargetError(f"--sandbox={spec}: there is no file {place}; check the path")
    if not place:
        raise TargetError(f"--sandbox={spec}: names no module; pass package.module:Class")
    try:
        return _module_from_file(Path(place)) if as_file else importlib.import_module(place)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # pytest.skip and sys.exit are none of Exception's
        raise TargetError(_import_failed(spec, place, error)) from error


def _module_from_file(path: Path) -> ModuleType:
    path = path.resolve()
    if (path.parent / "__init__.py").is_file():
        module = _module_of_package(path)
        if module is not None:
            return module
    name = f"_sandbox_{path.stem}"
    make_importable((), (str(path.parent),))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look it up while it runs
    spec.loader.exec_module(module)
    return module


def _module_of_package(path: Path) -> ModuleType | None:
    """Import a file under the name that its package gives it, so that it finds its relatives.

    None if that name belongs to another file.
    """
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    make_importable((), (str(root),))
    found = importlib.util.find_spec(names[0])
    if found is None or found.origin is None or not Path(found.origin).is_file():
        return None
    if not Path(found.origin).samefile(root / names[0] / "__init__.py"):
        return None
    return importlib.import_module(".".join(names))


def _import_failed(spec: str, place: str, error: BaseException) -> str:
    return (
        f"--sandbox={spec}: importing {place} raised {shown(error)}; "
        "mend or install it, and run from the folder that holds it"
    )


def _attribute(spec: str, module: ModuleType, name: str) -> object:
    try:
        return getattr(module, name)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a module's own __getattr__ may raise anything
        found = {
            key: value
            for key, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, Sandbox) and value is not Sandbox
        }
        own = [key for key, value in found.items() if value.__module__ == module.__name__]
        classes = sorted(own or found)  # a package may only import what it offers
        hint = f"it has {', '.join(classes)}" if classes else "it has no sandbox class at all"
        raise TargetError(
            f"--sandbox={spec}: there is no {name!r} in this module; {hint}"
        ) from None


def _checked(spec: str, found: Any) -> type[Sandbox]:  # noqa: ANN401 - whatever a module holds
    if not inspect.isclass(found):
        raise TargetError(
            f"--sandbox={spec}: is a {type(found).__name__} and no class; pass the class itself"
        )
    if not issubclass(found, Sandbox):
        missing = ["the base class sandboxes.experimental.CustomSandbox"]
        missing += [] if callable(getattr(found, "open", None)) else ["open(request)"]
        missing += [name for name in _DECLARATIONS if not hasattr(found, name)]
        raise TargetError(f"--sandbox={spec}: is no sandbox; it lacks {', '.join(missing)}")
    if inspect.isabstract(found):
        left = ", ".join(sorted(found.__abstractmethods__))
        raise TargetError(f"--sandbox={spec}: {found.__name__} is abstract; write its {left}")
    _check_declarations(spec, found)
    return found


def _check_declarations(spec: str, cls: type[Sandbox]) -> None:
    if cls.supported_access not in ACCESS_LEVELS:
        raise TargetError(
            f"--sandbox={spec}: declares supported_access = {cls.supported_access!r}; "
            f"write one of {', '.join(ACCESS_LEVELS)}"
        )
    modes: Any = cls.supported_network
    if not isinstance(modes, frozenset | set) or not modes or not modes <= _MODES:
        raise TargetError(
            f"--sandbox={spec}: declares supported_network = {modes!r}; "
            "write a frozenset of 'none', 'all' and 'allow'"
        )
    kinds: Any = cls.supported_header_bindings
    if not isinstance(kinds, frozenset | set) or not kinds <= set(BINDING_TYPES):
        raise TargetError(
            f"--sandbox={spec}: declares supported_header_bindings = {kinds!r}; "
            "write a frozenset of binding types"
        )
    packages: Any = cls.optional_packages
    if not isinstance(packages, Mapping) or not all(map(_is_text, (*packages, *packages.values()))):
        raise TargetError(
            f"--sandbox={spec}: declares optional_packages = {packages!r}; "
            "write a mapping of import names to extras, such as {'bashkit': 'bashkit'}"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
