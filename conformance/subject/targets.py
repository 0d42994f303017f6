"""The subject of a run: the only thing that checks see of a sandbox."""

from __future__ import annotations

import copy
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.bounds import BOUNDS
from conformance.subject import facade
from conformance.subject.blame import blame, shown
from conformance.subject.declarations import Declared, parameters
from conformance.subject.loading import TargetError
from conformance.subject.loop import LoopThread
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import OpenRequest, RefusedConfiguration, SandboxProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from conformance.subject.facade import Box
    from sandboxes.contract import (
        EgressPolicy,
        GitHubBinding,
        HeaderBinding,
        MistralApiBinding,
        Network,
        RunningSandbox,
        Sandbox,
    )
    from sandboxes.session import Session

T = TypeVar("T")

RESERVED = ("network", "access", "hooks", "header_bindings")
"""Keywords that the checks set; a user's options cannot."""

_PRIVATE = "block_private_ips"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the laboratory asks of every sandbox that is opened in it.

    Attributes:
        ca_bundle: Certificates that programs inside must trust.
        loopback: Whether the lab's servers listen on loopback addresses alone.
    """

    ca_bundle: Path | None = None
    loopback: bool = False


def asked_for(cls: type[Sandbox]) -> dict[str, Any]:
    """The network that must be asked for where a type has the option and no `none()`."""
    modes, network = cls.supported_network, cls.network_type
    if "none" in modes or "network" not in parameters(cls):
        return {}
    wide = "all" in modes
    return {"network": network.all() if wide else network.allow(hosts=["nothing.invalid"])}


class Target:
    """A sandbox class, the user's options for it, and blocking access to its instances.

    Args:
        name: What `--sandbox` was given.
        cls: The sandbox class.
        options: Constructor keywords, from `--sandbox-option`.

    Raises:
        TargetError: The class cannot be built with these options.
    """

    def __init__(self, name: str, cls: type[Sandbox], options: Mapping[str, Any]) -> None:
        self.name = name
        self.cls = cls
        self.options = dict(options)
        self.surroundings: Callable[[], Surroundings] = Surroundings
        self._loop: LoopThread | None = None
        # What a type that has no network by default is given where a check asks for none.
        self._network: dict[str, Any] = {}
        built = self._first_build()
        try:
            self.declared = Declared.of(cls, built)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise TargetError(
                f"--sandbox={name}: reading its declarations raised {shown(error)}; "
                "declare them as plain class attributes"
            ) from error

    def __repr__(self) -> str:
        return f"Target({self.name})"

    def variant(
        self, *, cls: type[Sandbox] | None = None, options: Mapping[str, Any] | None = None
    ) -> Target:
        """Give the same subject with a subclass of its class, or with further options."""
        self._live_loop()  # which both share, and this one closes
        changed = copy.copy(self)
        changed.cls = cls or self.cls
        changed.options = {**self.options, **(options or {})}
        return changed

    @property
    def Network(self) -> type[Network]:
        """The value type that the constructor takes as `network`."""
        return self.cls.network_type

    @property
    def EgressPolicy(self) -> type[EgressPolicy]:
        """The value type that the constructor takes as `egress`, if it takes one."""
        return self.cls.egress_policy_type

    @property
    def HeaderBinding(self) -> type[HeaderBinding]:
        """The value type that header bindings are written with."""
        return self.cls.header_binding_type

    @property
    def GitHubBinding(self) -> type[GitHubBinding]:
        """The value type that access to GitHub is written with."""
        return self.cls.github_binding_type

    @property
    def MistralApiBinding(self) -> type[MistralApiBinding]:
        """The value type that access to Mistral's API is written with."""
        return self.cls.mistral_api_binding_type

    @property
    def SandboxProxy(self) -> type[SandboxProxy]:
        """The value type that the constructor takes as `sandbox_proxy`, if it takes one."""
        found: type[SandboxProxy] = getattr(self.cls, "sandbox_proxy_type", SandboxProxy)
        return found

    def has_option(self, name: str) -> bool:
        """Whether the constructor has this keyword."""
        return name in self.declared.parameters

    def build(self, **overrides: Any) -> Sandbox:  # noqa: ANN401 - a subject's own options
        """Call the constructor with the user's options and these.

        Raises:
            Violation: It raised what no caller can handle, such as SystemExit, or left out
                what every sandbox has.
            Exception: What the constructor raised, unchanged.
        """
        options = self._options(overrides)
        call = self._call(overrides)
        try:
            sandbox = self.cls(**options)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            blame(error, call, "accept what the class declares, and refuse the rest")
            raise
        except BaseException as error:
            raise Violation(f"{call} raised {shown(error)}", remedy="raise an Exception") from error
        if lacking := [name for name in RESERVED if not hasattr(sandbox, name)]:
            raise Violation(
                f"{call} has no {lacking[0]}",
                remedy="call super().__init__() in the constructor, with what it is given",
            )
        return sandbox

    def refusal(self, **overrides: Any) -> Exception | None:  # noqa: ANN401
        """The exception that the constructor raises for these options, or None."""
        try:
            self.build(**overrides)
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 - any error is a refusal
            return error
        return None

    def open(
        self,
        *,
        session_id: str | None = None,
        secrets: Mapping[str, str] | None = None,
        identity: str | None = None,
        resume: Any = None,  # noqa: ANN401 - JSON
        **overrides: Any,  # noqa: ANN401
    ) -> AbstractContextManager[Box]:
        """Build a sandbox with these options and open it; leaving deletes it.

        Raises:
            NotApplicable: The sandbox is one that opens nothing.
            Violation: It did not open or close in time, or yielded no running sandbox.
            Exception: What its constructor or `open` raised, unchanged.
        """
        sandbox = self.build(**overrides)
        return self.enter(
            sandbox, session_id=session_id, secrets=secrets, identity=identity, resume=resume
        )

    def enter(
        self,
        sandbox: Sandbox,
        *,
        session_id: str | None = None,
        secrets: Mapping[str, str] | None = None,
        identity: str | None = None,
        resume: Any = None,  # noqa: ANN401 - JSON
        insist: bool = False,
    ) -> AbstractContextManager[Box]:
        """Open a sandbox that is already built; see `open`.

        Args:
            sandbox: The sandbox.
            session_id: A unique one if None.
            secrets: Values of secrets.
            identity: Credential of the session's caller.
            resume: What an earlier one gave when it was detached.
            insist: Try it also with one that says that it opens nothing.
        """
        if not insist and not self.declared.fact("opens"):
            raise NotApplicable(f"{self.cls.__name__} opens nothing")
        request = self.request(session_id, secrets, resume, identity)
        return facade.opened(self._live_loop(), sandbox, request)

    def session(
        self,
        *,
        session_id: str | None = None,
        secrets: Mapping[str, str] | None = None,
        identity: str | None = None,
        opened: list[RunningSandbox] | None = None,
        **overrides: Any,  # noqa: ANN401
    ) -> AbstractContextManager[Box]:
        """Run a whole session over a new sandbox: hooks, sandbox, hooks, deletion.

        Args:
            session_id: A unique one if None.
            secrets: Values of secrets.
            identity: Credential of its caller.
            opened: Takes the subject's own object, also of a session that does not start.
            **overrides: Constructor keywords.

        Raises:
            Violation: It did not start or close in time.
            Exception: What starting or closing it raised, unchanged.
        """
        from sandboxes.session import Session

        sandbox = self.build(**overrides)
        request = self.request(session_id, secrets, identity=identity)

        made: list[Session] = []

        class Kept(Session):
            def __init__(self, sandbox: Sandbox, request: OpenRequest) -> None:
                super().__init__(sandbox, request)
                made.append(self)

        async def start() -> Session:
            try:
                return await Kept.start(sandbox, request)
            finally:
                if opened is not None:
                    opened.extend(one.running for one in made if one.running is not None)

        return facade.session(self._live_loop(), start)

    def run(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        call: str,
        *,
        bound: float = BOUNDS.open,
        remedy: str = "make no call of a sandbox raise or hang",
    ) -> T:
        """Await what a check does with agents and sessions, where the subject is at home.

        Args:
            work: Makes the coroutine.
            call: What it does, for the message.
            bound: How long it may take, in seconds.
            remedy: What the subject's author can mend where it raises.

        Raises:
            Violation: It hung, or raised what no caller can handle.
            Exception: What it raised, unchanged, and noted as the subject's.
        """
        return facade.run(self._live_loop(), work, bound, call, remedy)

    def box(self, running: RunningSandbox) -> Box:
        """Give blocking access to a sandbox that was opened before, even a deleted one."""
        return facade.Box(self._live_loop(), running)

    def close(self) -> None:
        """Stop the event loop of the subject."""
        if self._loop is not None:
            self._loop.stop()
            self._loop = None

    def _live_loop(self) -> LoopThread:
        if self._loop is None or self._loop.given_up:
            self._loop = LoopThread()
        return self._loop

    def _options(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        options = {**self.options, **self._network, **overrides}
        # Every server of a loopback lab has a private address.
        if self.surroundings().loopback and self.has_option(_PRIVATE):
            options.setdefault(_PRIVATE, False)
        return options

    @property
    def refuses_the_lab(self) -> bool:
        """Whether it says to refuse the addresses that the lab has, and has no option for it."""
        private = self.surroundings().loopback and self.declared.fact("blocks_private_addresses")
        return bool(private) and not self.has_option(_PRIVATE)

    def request(
        self,
        session_id: str | None = None,
        secrets: Mapping[str, str] | None = None,
        resume: Any = None,  # noqa: ANN401 - JSON
        identity: str | None = None,
    ) -> OpenRequest:
        """What a session in this laboratory brings; its id is a unique one if None."""
        return OpenRequest(
            session_id=session_id or f"conformance-{os.getpid()}-{uuid.uuid4().hex[:12]}",
            secrets=secrets or {},
            identity=identity,
            ca_bundle=self.surroundings().ca_bundle,
            resume=resume,
        )

    def _call(self, overrides: Mapping[str, Any]) -> str:
        shown_options = {**self.options, **overrides}
        text = ", ".join(f"{name}={value!r}" for name, value in shown_options.items())
        return f"{self.cls.__name__}({text})"

    def _first_build(self) -> Sandbox:
        asked = asked_for(self.cls)
        if asked:
            # Its constructor is right to refuse a missing network, which is none().
            with suppress(Exception):
                return self.cls(**self.options)
            self._network = asked
        try:
            return self.cls(**self.options, **self._network)
        except TypeError as error:
            unknown = [name for name in self.options if f"'{name}'" in str(error)]
            if unknown:
                known = [name for name in parameters(self.cls) if name not in RESERVED]
                raise TargetError(
                    f"--sandbox-option: {self.cls.__name__} takes no {unknown[0]!r}; "
                    f"it takes {', '.join(known) or 'no options'}"
                ) from error
            raise TargetError(self._unbuildable(error)) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # pytest.skip and sys.exit are none of Exception's
            raise TargetError(self._unbuildable(error)) from error

    def _unbuildable(self, error: BaseException) -> str:
        remedy = "pass what its constructor needs with --sandbox-option KEY=JSON"
        if isinstance(error, ImportError):
            remedy = "install what it names, and run again"
        elif isinstance(error, RefusedConfiguration):
            # It says itself what to do.
            return f"--sandbox={self.name}: {shown(error).removeprefix('RefusedConfiguration: ')}"
        return f"--sandbox={self.name}: {self._call({})} raised {shown(error)}; {remedy}"
