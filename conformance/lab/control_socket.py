"""One question to a service of the lab's own, over its control socket: a line of JSON each way."""

from __future__ import annotations

import json
import socket
from typing import Any

from conformance.lab.errors import LabError

_ANSWER_SECONDS = 60.0


def ask(path: str, service: str, what: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Ask it.

    Args:
        path: the socket.
        service: what messages call it.
        what: the question.
        fields: what goes with it.

    Raises:
        LabError: the service has ended, or says why it cannot.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.settimeout(_ANSWER_SECONDS)
        try:
            control.connect(path)
            control.sendall(json.dumps({"do": what, **fields}).encode() + b"\n")
            with control.makefile("rb") as answers:
                line = answers.readline()
        except OSError as cause:
            raise LabError(f"the lab's {service} cannot be reached: {cause}; run again") from cause
    if not line:
        raise LabError(f"the lab's {service} has ended; see its message on stderr")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise LabError(answer["error"])
    return answer
