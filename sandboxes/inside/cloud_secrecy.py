"""Keep commands from looking into the executor, whose environment has the secret of its callers.

Both run as the same user, root in most images. The kernel lets a process look into another one
of its user's only if it has all capabilities of that one: so commands go without two that they
hardly miss, of which the executor has at least one. They still trace what they started.
"""

from __future__ import annotations

import struct

from sandboxes.bare import suppress

_PR_CAPBSET_DROP = 24
_VERSION_3 = 0x20080522
_SYS_PTRACE, _AUDIT_WRITE = 19, 29
_SETS = struct.Struct("6I")
_HEAD = struct.Struct("Ii")


def lose_sight() -> None:
    """Give both up, for good; a user who has neither stays as he is."""
    with suppress(ImportError, OSError, AttributeError):  # no ctypes, or no libc
        import ctypes

        libc = ctypes.CDLL(None)
        for number in (_SYS_PTRACE, _AUDIT_WRITE):
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        head = ctypes.create_string_buffer(_HEAD.pack(_VERSION_3, 0), _HEAD.size)
        sets = ctypes.create_string_buffer(_SETS.size)
        if libc.capget(head, sets) == 0:
            words = list(_SETS.unpack(sets.raw))
            kept = ~(1 << _SYS_PTRACE | 1 << _AUDIT_WRITE) & 0xFFFFFFFF
            words[:3] = [word & kept for word in words[:3]]
            libc.capset(head, ctypes.create_string_buffer(_SETS.pack(*words), _SETS.size))
