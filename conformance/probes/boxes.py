"""One check's live sandboxes, under the policies that it asks for."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from conformance.oracle import Mode
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target


class Boxes:
    """The sandboxes of one check.

    Args:
        target: The sandbox under test.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._stack = ExitStack()
        self._boxes: dict[tuple[Any, ...], Box] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def under(self, **overrides: Any) -> Box:  # noqa: ANN401 - a constructor's own options
        """Give a live sandbox with these options, the same for the same ones.

        Raises:
            Violation: It did not open.
        """
        # As text: whether the subject's own types can be hashed and compared is what is tested.
        key = tuple(sorted((name, repr(value)) for name, value in overrides.items()))
        if key not in self._boxes:
            self._boxes[key] = self._stack.enter_context(self.opened(**overrides))
        return self._boxes[key]

    @contextmanager
    def opened(self, **overrides: Any) -> Iterator[Box]:  # noqa: ANN401 - see above
        """Open a sandbox with these options, for as long as the block runs.

        Raises:
            NotRun: It has one policy that cannot be chosen, and this is another one.
            Violation: It did not open or close.
        """
        with self.target.open(**self.known(overrides)) as box:
            yield box

    def known(self, overrides: dict[str, Any]) -> dict[str, Any]:
        """Give the options without a network that the constructor does not take, but has.

        Raises:
            NotRun: It has one policy that cannot be chosen, and this is another one.
        """
        if "network" not in overrides or self.target.has_option("network"):
            return overrides
        rest = {name: value for name, value in overrides.items() if name != "network"}
        wanted, fixed = overrides["network"], self.target.build(**rest).network
        if wanted is not None and (wanted.mode, wanted.hosts) != (fixed.mode, fixed.hosts):
            raise NotRun(
                f"{self.target.cls.__name__} has no option `network` and is built with "
                f"{fixed.mode}(), so another policy cannot be had; give it that option"
            )
        return rest

    def narrowest(self) -> Box:
        """Give a sandbox under the strictest policy that is declared."""
        modes: tuple[Mode, ...] = ("none", "allow", "all")
        return self.plain(next(mode for mode in modes if mode in self.target.declared.network))

    def plain(self, mode: Mode) -> Box:
        """Give a sandbox under a policy of this mode that opens nothing of the laboratory's."""
        network = self.target.Network
        if mode == "allow":
            return self.under(network=network.allow(hosts=["nothing.invalid"]))
        return self.under(network=network.all() if mode == "all" else network.none())

    def wide(self, *entries: str, private: bool = False) -> Box | None:
        """Give a sandbox under the widest policy that is declared; None if that opens nothing.

        Args:
            *entries: What an allow list names where `Network.all()` is not declared.
            private: Whether private addresses are to be open too, where there is an option.
        """
        declared, network = self.target.declared.network, self.target.Network
        options: dict[str, Any] = {}
        if private and self.target.has_option("block_private_ips"):
            options["block_private_ips"] = False
        if "all" in declared:
            return self.under(network=network.all(), **options)
        if "allow" in declared and entries:
            return self.under(network=network.allow(hosts=entries), **options)
        return None
