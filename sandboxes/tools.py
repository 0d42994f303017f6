"""The tools that a session's model gets, by the access of its sandbox.

With access `"files"` or wider: `read_file`, `write_file`, `edit_file` and `list_files`.
With `"full"` also `bash`, and where the sandbox supports background processes
`process.start`, `process.output`, `process.write`, `process.list` and `process.stop`.
The agent's own tools come on top, whatever the access.
"""

from __future__ import annotations

import functools
import inspect
import shlex
from collections import OrderedDict
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sandboxes.contract import (
    ACCESS_LEVELS,
    RunningSandbox,
    SandboxCallbackContext,
    SandboxExecutionResult,
)
from sandboxes.contract.inputs import declared_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from sandboxes.contract import AccessLevel, Sandbox
    from sandboxes.contract.inputs import SessionInputs
    from sandboxes.processes import BackgroundProcesses
    from sandboxes.truncation import Truncation

    Tool = Callable[..., Coroutine[Any, Any, Any]]

FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_files")
PROCESS_TOOLS = tuple(
    f"process.{action}" for action in ("start", "output", "write", "list", "stop")
)
CONTEXT_PARAMETER = "ctx"
"""An own tool that has a parameter of this name gets the session's sandbox by it."""

# One entry each, with a slash behind a folder, and a NUL behind all: names may hold the rest.
_LIST = """cd -- {path} && for name in * .*; do
  case "$name" in .|..) continue;; esac
  if [ -d "$name" ]; then printf '%s/\\0' "$name"
  elif [ -e "$name" ] || [ -L "$name" ]; then printf '%s\\0' "$name"; fi
done"""


def sandbox_tool_names(sandbox: Sandbox) -> tuple[str, ...]:
    """Name the sandbox tools that a configured sandbox gives the model."""
    if not sandbox.opens or not _wide_enough(sandbox, "files"):
        return ()
    if not _wide_enough(sandbox, "full"):
        return FILE_TOOLS
    return (*FILE_TOOLS, "bash", *(PROCESS_TOOLS if sandbox.supports_background_processes else ()))


def _wide_enough(sandbox: Sandbox, access: AccessLevel) -> bool:
    return ACCESS_LEVELS.index(sandbox.access) >= ACCESS_LEVELS.index(access)


def enabled(tools: Mapping[str, Tool], disabled: Sequence[str]) -> Mapping[str, Tool]:
    """Leave out what one of the patterns names, such as `"process.*"`."""
    return MappingProxyType(
        {
            name: tool
            for name, tool in tools.items()
            if not any(fnmatchcase(name, pattern) for pattern in disabled)
        }
    )


def sandbox_tools(
    sandbox: Sandbox,
    running: RunningSandbox,
    processes: BackgroundProcesses,
    truncation: Truncation,
) -> dict[str, Tool]:
    """Make the sandbox tools of a session.

    Args:
        sandbox: The configuration, which says which.
        running: The live sandbox.
        processes: Its background processes.
        truncation: Cuts what is too long.
    """
    own = _SandboxTools(running, truncation)
    found: dict[str, Tool] = {}
    for name in sandbox_tool_names(sandbox):
        kind, _, action = name.rpartition(".")
        found[name] = getattr(processes if kind else own, action)
    return found


class _SandboxTools:
    """The file tools and bash, over one live sandbox."""

    def __init__(self, running: RunningSandbox, truncation: Truncation) -> None:
        self._running = running
        self._truncation = truncation

    async def read_file(self, path: str, first_line: int = 1, lines: int | None = None) -> str:
        """Return the text of a file, or some of its lines.

        Args:
            path: Absolute, or relative to the workspace.
            first_line: Where to begin, from 1.
            lines: How many; all that follow if None.

        Raises:
            OSError: There is none, it is a folder, or the sandbox refuses it.
            ValueError: A number is below 1.
        """
        if first_line < 1 or (lines is not None and lines < 1):
            raise ValueError("first_line and lines count from 1; pass positive numbers")
        text = (await self._running.read_file(path)).decode(errors="replace")
        if first_line > 1 or lines is not None:
            # Line feeds only: what else splitlines() takes for an end may be in a line.
            found = text.split("\n")
            last = len(found) if lines is None else first_line - 1 + lines
            end = "\n" if last < len(found) else ""
            text = "\n".join(found[first_line - 1 : last]) + end
        return await self._truncation.cut(text, where="read it in parts with first_line and lines")

    async def write_file(self, path: str, content: str) -> int:
        """Write a whole file, and return how many bytes it has.

        Args:
            path: Absolute, or relative to the workspace; missing folders are made.
            content: Its text, written as UTF-8.

        Raises:
            OSError: The path is a folder, or the sandbox refuses it.
        """
        data = content.encode()
        await self._running.write_file(path, data)
        return len(data)

    async def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> int:
        """Replace a text in a file, all else left as it is, and return how often.

        Args:
            path: Absolute, or relative to the workspace.
            old: The text to replace, exactly as it is in the file.
            new: What comes in its place.
            replace_all: Replace it everywhere; otherwise it must be there only once.

        Raises:
            OSError: There is no such file, or the sandbox refuses it.
            ValueError: The text is empty, not in the file, or there more than once.
        """
        if not old:
            raise ValueError("old is empty; pass the text to replace")
        data, sought = await self._running.read_file(path), old.encode()
        count = data.count(sought)
        if count == 0:
            raise ValueError(f"old is not in {path}; pass a text that is there, exactly")
        if count > 1 and not replace_all:
            raise ValueError(
                f"old is in {path} {count} times; pass more of what is around it, or replace_all"
            )
        await self._running.write_file(path, data.replace(sought, new.encode()))
        return count

    async def list_files(self, path: str = ".") -> list[str]:
        """Return the sorted names in a folder, hidden ones too, folders with a slash.

        Args:
            path: Absolute, or relative to the workspace.

        Raises:
            FileNotFoundError: There is no such folder, or the sandbox refuses it.
            ValueError: The path holds a NUL.
        """
        # With ./ before it, no name means another folder to cd: - is the last one, CDPATH's first.
        place = shlex.quote(path if path.startswith("/") else f"./{path}")
        result = await self._running.execute(_LIST.format(path=place))
        if result.exit_code != 0:
            raise FileNotFoundError(
                f"{path!r} is no folder that can be listed ({result.stderr.strip()}); "
                "list the folder above it"
            )
        return sorted(name for name in result.stdout.split("\0") if name)

    async def bash(
        self, command: str, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a shell command in the workspace.

        Args:
            command: Text for the sandbox's shell.
            timeout_seconds: Its limit in seconds, at which it ends with exit code 124;
                the sandbox's default if None.

        Raises:
            ValueError: The limit is not a positive finite number, or the command holds
                a NUL.
        """
        done = await self._running.execute(command, timeout_seconds=timeout_seconds)
        return SandboxExecutionResult(
            done.exit_code,
            await self._truncation.cut(done.stdout, "bash-stdout"),
            await self._truncation.cut(done.stderr, "bash-stderr"),
        )


def own_tools(
    tools: Mapping[str, Callable[..., Any]], inputs: SessionInputs, context: SandboxCallbackContext
) -> dict[str, Tool]:
    """Make an agent's own tools callable without what the session gives them.

    Args:
        tools: Functions, async or not, by name.
        inputs: Fill the parameters that declare session inputs.
        context: Fills a parameter called `ctx`.
    """
    return {name: _filled(name, tool, inputs, context) for name, tool in tools.items()}


def _filled(
    name: str,
    tool: Callable[..., Any],
    inputs: SessionInputs,
    context: SandboxCallbackContext,
) -> Tool:
    declared = declared_inputs(f"tool {name}", tool)
    filled: dict[str, Any] = dict(inputs.arguments(declared))
    signature = inspect.signature(tool)
    if CONTEXT_PARAMETER in signature.parameters:
        filled[CONTEXT_PARAMETER] = context
    hidden = {CONTEXT_PARAMETER, *(one.parameter for one in declared)}

    @functools.wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the tool's own signature
        given = {**shown.bind(*args, **kwargs).arguments, **filled}
        ordered = {name: given[name] for name in signature.parameters if name in given}
        whole = inspect.BoundArguments(signature, OrderedDict(ordered))
        result = tool(*whole.args, **whole.kwargs)
        return await result if inspect.isawaitable(result) else result

    left = [entry for name, entry in signature.parameters.items() if name not in hidden]
    shown = signature.replace(parameters=left)
    call.__signature__ = shown  # type: ignore[attr-defined] # what inspect.signature reads
    return call
