"""The class that a third party subclasses."""

from __future__ import annotations

from sandboxes.contract.sandbox import Sandbox


class CustomSandbox(Sandbox):
    """A sandbox of your own: declare what it enforces, and write `open`.

    The class attributes of `Sandbox` say what the constructor accepts; it refuses the
    rest, so `open` only ever sees a configuration that you said you can enforce.
    """
