"""Hypothesis in a run: profiles, counted examples, and a bound on making them smaller."""

from __future__ import annotations

import functools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, core, settings
from hypothesis.configuration import set_hypothesis_home_dir

from conformance.bounds import BOUNDS
from conformance.verdicts import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

    from conformance.run.laboratory import Laboratory
    from conformance.run.progress import CheckResult, Progress

FIXTURES = ("target", "lab", "inside", "tmp_path", "tmp_path_factory", "monkeypatch")
"""What generated checks take besides what is drawn."""

# Properties list one value of each kind beside what is drawn, and those are always tried.
MAX_EXAMPLES = {"quick": 3, "standard": 25, "thorough": 200}


def load_profile(name: str, seed: int, folder: Path) -> None:
    """Make Hypothesis behave the same for everyone who runs the checks.

    Args:
        name: `quick`, `standard` or `thorough`.
        seed: What its choices follow from.
        folder: Where it may keep its tables, for all test processes of the run.
    """
    set_hypothesis_home_dir(folder)
    settings.register_profile(
        f"conformance-{name}",
        max_examples=MAX_EXAMPLES[name],
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.explicit, Phase.generate, Phase.target, Phase.shrink),
        suppress_health_check=(
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
            # The examples of a check share its fixtures on purpose: sandboxes are costly.
            HealthCheck.function_scoped_fixture,
        ),
    )
    settings.load_profile(f"conformance-{name}")
    # As Hypothesis' own plugin does for --hypothesis-seed, which may be switched off.
    core.global_force_seed = seed  # type: ignore[assignment]  # declared None, meant for this


class _Examples:
    """Stands between Hypothesis and one check."""

    def __init__(
        self, check: Callable[..., Any], beat: Callable[[], None], patience: float
    ) -> None:
        self._check = check
        self._patience = patience
        self._beat = beat
        self.count = 0
        self._failed_at: float | None = None
        self._failures: dict[str, Exception] = {}
        self._broken: HarnessError | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the check's own
        if self._broken:
            raise self._broken  # what is broken need not break again, example by example
        key = repr((args, kwargs))
        if self._out_of_time() and "data(...)" not in key:  # its draws are not in the key
            if key in self._failures:
                raise self._failures[key]
            return  # taken for a success, so that the search for a smaller one ends
        self.count += 1
        self._beat()
        try:
            self._check(*args, **kwargs)
        except HarnessError as error:
            self._broken = error
            raise
        except Exception as error:
            self._failures[key] = error
            self._failed_at = self._failed_at or time.monotonic()
            raise

    def _out_of_time(self) -> bool:
        failed = self._failed_at
        return failed is not None and time.monotonic() - failed > self._patience


@contextmanager
def counted(
    item: pytest.Function,
    result: CheckResult,
    laboratory: Laboratory,
    progress: Progress,
    shrink: float | None = None,
) -> Iterator[None]:
    """Count the examples that a check tries, and the witnesses' judgments they come to.

    Args:
        item: The check.
        result: Where the counts go.
        laboratory: Whose judgments are counted.
        progress: Where each example is a sign of life.
        shrink: The seconds that are spent on making a failing example smaller, if not those
            of `BOUNDS`.
    """
    judged = laboratory.judged
    handle = getattr(item.obj, "hypothesis", None)
    examples = None
    if handle is not None:
        original = handle.inner_test
        examples = _Examples(original, lambda: progress.beat(item.nodeid), shrink or BOUNDS.shrink)

        @functools.wraps(original)
        def counting(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the check's own
            examples(*args, **kwargs)

        handle.inner_test = counting
    try:
        yield
    finally:
        if handle is not None:
            handle.inner_test = original
        result.examples = 1 if examples is None else examples.count
        result.live_examples = laboratory.judged - judged


def failing_example(error: BaseException) -> str:
    """The smallest failing example in Hypothesis' words, on one line and without fixtures."""
    for note in getattr(error, "__notes__", ()):
        lines = [line.strip() for line in str(note).splitlines()]
        if lines and lines[0].lower().startswith(("falsifying", "failing")):
            drawn = [
                line.partition("  # ")[0].rstrip(",")
                for line in lines[1:]
                if "=" in line and line.partition("=")[0] not in FIXTURES
            ]
            return ", ".join(drawn)
    return ""
