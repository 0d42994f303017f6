"""The cloud as checks see it: what it is told to do wrong, and what it holds."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.definitions import made_before
from conformance.lab.cloud.faults import Fault
from conformance.lab.control_socket import ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.cloud.faults import Kind


class CloudClient:
    """One running cloud.

    Args:
        path: its control socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def token(self) -> str:
        """Give the API token of its only organization."""
        return str(self._ask("token")["token"])

    def inventory(self) -> list[dict[str, str]]:
        """Give a row for each app, service and instance: `kind`, `id` and `name`."""
        rows: list[dict[str, str]] = self._ask("inventory")["rows"]
        return rows

    def last_request(self) -> int:
        """Give the number of the latest request; their record is long, and has every body."""
        return int(self._ask("last_request")["number"])

    def requests(self, since: int = 0) -> list[dict[str, Any]]:
        """Give what it was asked, in order.

        Args:
            since: the number of the last one that is left out.

        Returns:
            For each request `number`, `method`, `target`, `headers`, `body`, `status`.
        """
        rows: list[dict[str, Any]] = self._ask("requests", since=since)["rows"]
        return rows

    def provision(self, name: str, **changes: Any) -> str:  # noqa: ANN401 - of a definition
        """Make a sandbox as somebody did long ago, and give the id of its service once it runs.

        Args:
            name: its own; the secret of its executor is made from it.
            **changes: fields of its definition, which else opens nothing.

        Raises:
            LabError: the definition is wrong.
        """
        definition = {**made_before(name), **changes}
        return str(self._ask("provision", name=name, definition=definition)["service"])

    def remove(self, service: str) -> None:
        """Delete one that was provisioned; one that is gone is deleted."""
        self._ask("remove", service=service)

    def inject(
        self,
        kind: Kind,
        where: str = "",
        *,
        status: int = 503,
        seconds: float = 0.0,
        times: int | None = None,
        every: int = 1,
    ) -> None:
        """Have something go wrong from now on; see `Fault`."""
        fault = Fault(kind, where, status, seconds, times, every)
        self._ask("inject", **fault.to_wire())

    @contextmanager
    def broken(self, kind: Kind, where: str = "", **how: Any) -> Iterator[None]:  # noqa: ANN401
        """Have something go wrong within a block; see `Fault`."""
        self.inject(kind, where, **how)
        try:
            yield
        finally:
            self.mend()

    def mend(self) -> None:
        """Have nothing go wrong any more."""
        self._ask("mend")

    def kill(self) -> None:
        """End every instance, as machines do that fail."""
        self._ask("kill")

    def reset(self) -> None:
        """Delete everything, forget all requests, and have nothing go wrong."""
        self._ask("reset")

    def _ask(self, what: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return ask(self._path, "cloud", what, **fields)
