"""The container engine as a witness: which containers a session has, and what they are on."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.verdicts import NotApplicable, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.lab.client import Lab
    from conformance.subject.targets import Target
    from sandboxes import Network

# A kernel may put these into each network namespace that it makes; they are down.
_EVERYWHERE = {
    *("erspan0", "gre0", "gretap0", "ip6_vti0", "ip6gre0", "ip6tnl0", "ip_vti0", "sit0", "tunl0"),
}


@contextmanager
def containers_under(target: Target, lab: Lab, network: Network) -> Iterator[list[str]]:
    """Open a sandbox with nobody else in the laboratory, and give its containers' identities.

    Raises:
        Violation: It has none on the engine.
    """
    engine = lab.engine()
    with lab.alone():
        before = engine.items()
        with target.open(network=network):
            new = [name for kind, name in engine.items() if kind == "container"]
            found = [name for name in new if ("container", name) not in before]
            if not found:
                raise Violation(
                    "open() made no container on the engine",
                    remedy="create it on the engine that DOCKER_HOST names",
                )
            yield found


def devices(lab: Lab, container: str) -> set[str]:
    """The network devices of a container, as the kernel shows them to the harness."""
    pid = lab.engine().inspect(container)["State"]["Pid"]
    lines = Path(f"/proc/{pid}/net/dev").read_text(encoding="ascii").splitlines()[2:]
    return {line.partition(":")[0].strip() for line in lines} - _EVERYWHERE


def networks(lab: Lab, container: str) -> set[str]:
    """The networks that the engine has a container on."""
    found: Mapping[str, object] = lab.engine().inspect(container)["NetworkSettings"]["Networks"]
    return set(found)


def engines_sockets(lab: Lab, container: str) -> set[str]:
    """What a container has of the machine that is the engine's socket, or holds it."""
    engine = Path(lab.start_engine().removeprefix("unix://")).resolve()
    sources = {mount["Source"] for mount in lab.engine().inspect(container)["Mounts"]}
    return {source for source in sources if engine.is_relative_to(Path(source).resolve())}


_WITHOUT = 'IFS=:; for place in $PATH; do rm -f "$place/{0}"; done; ! command -v {0}'


@contextmanager
def image_without(lab: Lab, image: str, program: str) -> Iterator[str]:
    """Give the name of an image that is another one but for a program, while the block runs.

    Raises:
        NotApplicable: The program is there without a file of its name: a part of the shell.
    """
    engine, name = lab.engine(), f"sandbox-conformance/changed:{secrets.token_hex(6)}"
    if not engine.changed_image(image, _WITHOUT.format(program), name):
        raise NotApplicable(f"{program} cannot be taken out of {image}: its shell has it built in")
    try:
        yield name
    finally:
        engine.remove([("image", name)])
