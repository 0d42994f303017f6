"""What goes into the log during a block, however the subject treats logging."""

from __future__ import annotations

import io
import logging
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sandboxes.deployed import DEBUG_VARIABLE, ServerLog

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = "sandboxes"


class _Texts(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect what is logged, tracebacks included, by a log that nobody has changed before."""
    handler = _Texts()
    with _added(handler):
        yield handler.texts


@contextmanager
def everything_logged() -> Iterator[list[str]]:
    """Collect what is logged at any level whatever; see `logged`."""
    root = logging.getLogger()
    before = root.level
    with logged() as texts:
        root.setLevel(logging.DEBUG)
        try:
            yield texts
        finally:
            root.setLevel(before)


@contextmanager
def shown_by_a_server() -> Iterator[io.StringIO]:
    """Collect what a server shows of the log, and undo what is done to its environment."""
    stream = io.StringIO()
    debugging = os.environ.get(DEBUG_VARIABLE)
    try:
        with _added(ServerLog(stream)):
            yield stream
    finally:
        os.environ.pop(DEBUG_VARIABLE, None)
        if debugging is not None:
            os.environ[DEBUG_VARIABLE] = debugging


@contextmanager
def _added(handler: logging.Handler) -> Iterator[None]:
    root = logging.getLogger()
    _as_it_was_made(root.manager)  # what the subject did to it before is another check's
    root.addHandler(handler)
    try:
        yield
    finally:
        with suppress(ValueError):
            root.removeHandler(handler)
        _as_it_was_made(root.manager)


def _as_it_was_made(manager: logging.Manager) -> None:
    logging.disable(logging.NOTSET)
    for name in filter(_is_ours, list(manager.loggerDict)):
        logger = logging.getLogger(name)
        logger.disabled, logger.propagate = False, True
        logger.setLevel(logging.NOTSET)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == _PACKAGE
