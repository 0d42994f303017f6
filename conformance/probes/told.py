"""All that an exception tells, and what stands behind it."""

from __future__ import annotations

import traceback


def told(error: BaseException) -> str:
    """Give the texts of an exception, of its notes, and of all that caused or preceded it."""
    texts, seen, waiting = [], set[int](), [error]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), repr(one.args), *map(str, getattr(one, "__notes__", ()))]
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        waiting += [*one.exceptions] if isinstance(one, BaseExceptionGroup) else []
    return "\n".join([*texts, *traceback.format_exception(error)])
