"""The proof that a network policy is in force, before anything else runs under it.

The cloud calls a sandbox ready some seconds before it filters what leaves it. So our own probe
knocks from inside at addresses that answer all over the world, and of which the policy opens
none, until each of them is shut, and shut again a moment later.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxStartError
from sandboxes.mistral import errors

if TYPE_CHECKING:
    from sandboxes.contract import EgressPolicy
    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.programs import Programs

# Public resolvers, which take connections on both ports from anybody.
_KNOCKED_AT = (
    *("1.1.1.1", "8.8.8.8", "9.9.9.9", "208.67.222.222", "94.140.14.14", "185.228.168.9"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2620:fe::fe", "2a10:50c0::ad1:ff"),
)
_PORTS = (443, 53)
_OF_EACH_FAMILY = 3
_CONNECT_SECONDS = 1.0
_CALL_SECONDS = 60.0
_SHUT_IN_A_ROW = 2
_MOMENT_SECONDS = 0.1
_PAUSE_SECONDS = 0.25


def targets(policy: EgressPolicy) -> list[tuple[str, int]]:
    """Where to knock: addresses that the policy does not open, of each family."""
    found: list[str] = []
    for version in (4, 6):
        shut = [
            address
            for address in _KNOCKED_AT
            if (one := ipaddress.ip_address(address)).version == version
            and not any(one in range_ for range_ in policy.ranges)
        ]
        found += shut[:_OF_EACH_FAMILY]
    return [(address, port) for address in found for port in _PORTS]


async def begin(
    sandbox: str, programs: Programs, policy: EgressPolicy, request: Json, *, deadline: float
) -> Json:
    """Wait until a policy is in force, have the sandbox made ready, and give what was found.

    Args:
        sandbox: What errors call the sandbox.
        programs: Of the sandbox, in which nothing else runs yet.
        policy: What was written.
        request: How it is made ready.
        deadline: Until when to wait, on `time.monotonic`.

    Raises:
        SandboxStartError: It is not, or nothing could show it.
        CloudError: The probe gave no answer.
    """
    if policy.mode == "allow_all":
        return await begin_unproven(programs, request)
    knocked = targets(policy)
    if not knocked:
        raise SandboxStartError(errors.cannot_prove(sandbox))
    knock = {
        "targets": knocked,
        "seconds": _CONNECT_SECONDS,
        "looks": _SHUT_IN_A_ROW,
        "pause": _MOMENT_SECONDS,
    }
    began = time.monotonic()
    while True:
        answer = await programs.ask("start", {**request, "knock": knock}, seconds=_CALL_SECONDS)
        opened = [str(address) for address in answer.get("open", ())]
        if not opened:
            return answer
        if time.monotonic() >= deadline:
            raise SandboxStartError(
                errors.never_closed(sandbox, ", ".join(opened), time.monotonic() - began)
            )
        await asyncio.sleep(_PAUSE_SECONDS)


async def begin_unproven(programs: Programs, request: Json) -> Json:
    """Have a sandbox made ready that has no policy to be proven.

    Raises:
        CloudError: It gave no answer.
    """
    return await programs.ask("start", {**request, "knock": None}, seconds=_CALL_SECONDS)
