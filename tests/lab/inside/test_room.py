"""Workers share the lab, and one can be alone in it without a deadlock."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from conformance.lab.client import Lab

if TYPE_CHECKING:
    from collections.abc import Callable


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    threads = [threading.Thread(target=action) for action in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_two_share_and_neither_is_alone_beside_the_other(any_lab: Lab) -> None:
    inside: list[str] = []
    both_share, seen = threading.Barrier(2, timeout=10), []

    def work(name: str) -> Callable[[], None]:
        def act() -> None:
            with Lab.connect(name) as lab, lab.shared():
                both_share.wait()  # passes only if both are inside
                with lab.alone():
                    inside.append(name)
                    seen.append(list(inside))
                    inside.remove(name)

        return act

    _both(work("a"), work("b"))
    assert sorted(seen) == [["a"], ["b"]]


def test_alone_may_be_asked_for_twice(any_lab: Lab) -> None:
    with any_lab.alone(), any_lab.alone(), any_lab.shared(), Lab.connect("other") as other:
        assert other.mode == any_lab.mode


def test_given_addresses_are_one_workers_at_a_time_and_keep_nobody_out(any_lab: Lab) -> None:
    having: list[str] = []
    seen: list[list[str]] = []
    both_share = threading.Barrier(2, timeout=10)

    def work(name: str) -> Callable[[], None]:
        def act() -> None:
            with Lab.connect(name) as lab, lab.shared():
                both_share.wait()
                with lab.addresses():
                    having.append(name)
                    time.sleep(0.05)  # long enough for the other to come in, were it let
                    seen.append(list(having))
                    having.remove(name)

        return act

    with any_lab.addresses(), Lab.connect("other") as other, other.shared():
        pass  # who does not need them goes on
    _both(work("a"), work("b"))
    assert sorted(seen) == [["a"], ["b"]]
