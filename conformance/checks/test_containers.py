"""What a container engine tells: networks, mounts, and what the image of a container needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.marks import alone, needs, verifies
from conformance.probes.engines import (
    containers_under,
    devices,
    engines_sockets,
    image_without,
    networks,
)
from conformance.probes.heartbeats import Heartbeat
from conformance.probes.leftovers import counting
from conformance.requirements import EGR_04, LIF_16, TMO_13, reference
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target


def _is_documented(target: Target) -> None:
    if not reference.is_a(target.cls, "LocalDockerSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no LocalDockerSandbox")


@verifies(LIF_16)
@needs(opens=True, engine=True, network="none")
@alone
def test_a_container_under_none_has_loopback_alone(target: Target, lab: Lab) -> None:
    """Under none() a container has no network device but loopback, as the kernel lists them."""
    _is_documented(target)
    with containers_under(target, lab, target.Network.none()) as containers:
        found = set[str]().union(*(devices(lab, one) for one in containers))
    if found != {"lo"}:
        raise Violation(
            f"under Network.none() its container has {', '.join(sorted(found)) or 'no device'}",
            remedy='create the container with the network mode "none"',
        )


@verifies(LIF_16)
@needs(opens=True, engine=True, network="all")
@alone
def test_a_container_under_all_is_on_the_default_network(target: Target, lab: Lab) -> None:
    """Under all() a container is on Docker's default network, as the engine has it."""
    _is_documented(target)
    with containers_under(target, lab, target.Network.all()) as containers:
        found = set[str]().union(*(networks(lab, one) for one in containers))
    if found != {"bridge"}:
        raise Violation(
            f"under Network.all() its container is on {', '.join(sorted(found)) or 'no network'}, "
            "and Docker's default network is bridge",
            remedy="create the container without a network mode of its own",
        )


@verifies(EGR_04)
@needs(opens=True, engine=True, network="none")
@alone
def test_no_container_has_the_socket_of_its_engine(target: Target, lab: Lab) -> None:
    """Under none() no container has the engine's own socket, or a folder that it lies in."""
    with containers_under(target, lab, target.Network.none()) as containers:
        found = sorted(set[str]().union(*(engines_sockets(lab, one) for one in containers)))
    if found:
        raise Violation(
            f"under Network.none() its container has {', '.join(found)} of its host, and so the "
            "engine",
            remedy="mount nothing of the host's in a container but what the user asked for",
        )


_LIMIT = 1.0
_SAYING = "name the setsid command in the error with which open() ends"


@verifies(TMO_13)
@needs(opens=True, engine=True, option="image")
@alone
def test_an_image_without_setsid_is_refused_by_that_name(target: Target, lab: Lab) -> None:
    """On an image without setsid the sandbox does not start, says so, and leaves nothing."""
    _is_documented(target)
    image = getattr(target.build(), "image", None)
    if not isinstance(image, str):
        raise NotRun("its image is not known; pass --sandbox-option image='\"NAME\"'")
    with image_without(lab, image, "setsid") as lacking, counting(target, lab) as left:
        try:
            with target.open(image=lacking) as box:
                beat = Heartbeat.on(box)
                box.execute(beat.in_background + f"; {beat.text}", timeout_seconds=_LIMIT)
                needs_none = beat.begins(_LIMIT) and beat.stops(_LIMIT)
        except Violation:
            raise
        except Exception as error:
            if "setsid" not in str(error):
                fact = f"an image without setsid was refused with {shown(error)}"
                raise Violation(fact, remedy=_SAYING) from error
        else:
            if needs_none:
                raise NotApplicable(f"{target.cls.__name__} keeps its limits without setsid")
            raise Violation(
                "on an image without setsid a session started, and a command outlived its limit",
                remedy=_SAYING,
            )
    left.judge("after a start on an image without setsid")
