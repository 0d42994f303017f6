"""The errors that a sandbox raises.

`SandboxError` is the root. A refused configuration is also a `ValueError`, a
missing package also an `ImportError`, so that callers who know only Python's
own errors catch the right thing.
"""


class SandboxError(Exception):
    """Anything that a sandbox, its session or its configuration reports."""


class RefusedConfiguration(SandboxError, ValueError):
    """The constructor cannot enforce, or does not understand, what it was given."""


class InvalidHostEntry(SandboxError, ValueError):
    """A text is no `host[:port]` entry of an allow list."""


class SandboxStartError(SandboxError):
    """The sandbox could not be created, or did not become ready."""


class SandboxClosed(SandboxError):
    """A call came after the sandbox or its session had been closed."""


class MissingExtra(SandboxError, ImportError):
    """An optional package is not installed; the message names the extra to install."""


class InvalidSessionInput(SandboxError, ValueError):
    """A session input is missing, of a wrong type, or one that nothing declares."""


class SessionFailed(SandboxError):
    """A deployed session ended as failed; the log holds the whole error."""


class SessionLimitReached(SandboxError):
    """The session was closed at one of its limits."""


class BackgroundProcessError(SandboxError):
    """A background process cannot be had, found, read or written to."""
