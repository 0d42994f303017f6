"""How workers of pytest-xdist share the checks: what belongs together goes to one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScheduling

if TYPE_CHECKING:
    from typing import Any

    import pytest

    from conformance.run.progress import Progress


class _Scheduling(LoadScheduling):  # type: ignore[misc]  # xdist ships no annotations
    """Batches of checks to whoever is free; with the first of a company go all of it."""

    progress: Progress

    def _send_tests(self, node: Any, num: int) -> None:  # noqa: ANN401 - xdist's own
        checks = self.progress.read().checks
        groups = [checks.get(nodeid, {}).get("together", "") for nodeid in self.collection]
        batch = set(self.pending[:num])
        met = {groups[place] for place in batch} - {""}
        sent = [place for place in self.pending if place in batch or groups[place] in met]
        if sent:
            self.pending[:] = [place for place in self.pending if place not in set(sent)]
            self.node2pending[node].extend(sent)
            node.send_runtest_some(sent)


def scheduling(config: pytest.Config, log: Any, progress: Progress) -> _Scheduling:  # noqa: ANN401
    """Make what xdist asks which worker makes which check.

    Args:
        config: Of the process that reports.
        log: Where xdist logs.
        progress: Says which checks belong together, once a worker has collected them.
    """
    made = _Scheduling(config, log)
    made.progress = progress
    return made
