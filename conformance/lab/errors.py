"""What goes wrong with the laboratory itself; none of it says anything about a sandbox."""

from conformance.verdicts import HarnessError


class LabError(HarnessError):
    """The laboratory did not do its part: no verdict can rest on what it reported."""


class LabUnavailable(LabError):
    """A sealed laboratory cannot be had on this machine; the message ends with the remedy."""


class SealBroken(LabError):
    """A process is not where it should be, or the namespace has a way out."""
