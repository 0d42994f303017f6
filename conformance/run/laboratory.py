"""The run's laboratory as a test process sees it: connected to once, when first needed."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from conformance.subject.targets import Surroundings
from conformance.verdicts import HarnessError, NotRun

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from conformance.lab.client import Lab

CLOUD_TOKEN = "KOYEB_API_KEY"  # noqa: S105 - the name of a variable


class Laboratory:
    """The connection of one test process to the lab.

    Args:
        asked: The value of `--lab`.
    """

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._lab: Lab | None = None
        self._broken: HarnessError | None = None

    @property
    def off(self) -> bool:
        """Whether the run has no laboratory at all."""
        return self._asked == "off"

    def connect(self) -> Lab:
        """Give the lab.

        Raises:
            NotRun: The run has none.
            HarnessError: It does not answer, or is not sealed as it must be.
        """
        if self.off:
            raise NotRun("there is no laboratory with --lab=off; run with --lab=auto")
        if self._broken:
            raise self._broken
        if self._lab is None:
            try:
                from conformance.lab.client import Lab

                self._lab = Lab.connect(_worker())
            except HarnessError as error:
                self._broken = error
                raise
            except (ImportError, OSError) as error:
                self._broken = HarnessError(f"the laboratory does not answer: {error}")
                raise self._broken from error
        return self._lab

    def surroundings(self) -> Surroundings:
        """What the lab asks of every sandbox that is opened in it."""
        if self.off:
            return Surroundings()
        lab = self.connect()
        return Surroundings(ca_bundle=lab.ca_bundle, loopback=lab.mode == "loopback")

    def start_engine(self) -> None:
        """Have the lab's container engine ready at `DOCKER_HOST`; without a lab it is the user's.

        Raises:
            LabUnavailable: There is none.
            HarnessError: The lab does not answer, or is not sealed as it must be.
        """
        if not self.off:
            os.environ["DOCKER_HOST"] = self.connect().start_engine()

    def start_cloud(self) -> None:
        """Have the lab's cloud ready; without a lab it is the provider's, with the user's token.

        Raises:
            LabUnavailable: There is none.
            HarnessError: The lab does not answer, or is not sealed as it must be.
        """
        if not self.off:
            os.environ[CLOUD_TOKEN] = self.connect().cloud().token()

    def use_image(self, name: str) -> None:
        """Have what containers of an image are judged by, which is to be on the engine.

        Raises:
            LabUnavailable: The image or the witnesses cannot be had.
            HarnessError: The engine does not answer.
        """
        if self.off:
            return
        lab = self.connect()
        lab.require_image(name)
        if lab.mode == "loopback":
            from conformance.lab.canaries import CanaryLab, with_canaries

            if not isinstance(lab, CanaryLab):  # those of another subject will do
                self._lab = with_canaries(lab, _worker(), name)

    def shared(self) -> AbstractContextManager[Any]:
        """Hold the lab against checks that need it for themselves."""
        return nullcontext() if self.off else self.connect().shared()

    def alone(self) -> AbstractContextManager[Any]:
        """Have the lab with nobody else among the workers.

        Raises:
            HarnessError: The others did not leave it in time, or there is none.
        """
        return nullcontext() if self.off else self.connect().alone()

    @property
    def judged(self) -> int:
        """How many judgments its witnesses gave so far."""
        return 0 if self._lab is None else self._lab.judged

    def facts(self) -> dict[str, Any]:
        """What the certificate says of the lab."""
        if self.off:
            return {"mode": "off", "missing": {}}
        lab = self.connect()
        return {"mode": lab.mode, "missing": dict(lab.missing)}


def _worker() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "main")
