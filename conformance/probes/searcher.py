"""A search for texts in one file, sent into sandboxes as `python3 -I -c SOURCE TEXTS SKIPPED`.

What it looks for is told in disguise, so that its own command line is no find: each text in
hexadecimal digits, of bytes whose bits are all turned. It runs on Python 3.8 and the
standard library, and prints a line of JSON for each find: where, and which text.
"""

import contextlib
import json
import os
import stat
import sys
import time
import typing

SECONDS = 20.0
RECENT_SECONDS = 7200.0
MOST_BYTES = 4 << 20
LEFT_OUT = ("/proc", "/sys", "/dev/pts")


def read(path: str) -> bytes:
    """Read the beginning of a file, never waiting for one that is a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MOST_BYTES) or b""
    except OSError:
        return b""


def processes() -> "typing.Iterator[tuple[str, bytes]]":
    """What the process list shows of each process."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for number in filter(str.isdigit, names):
        for name in ("environ", "cmdline", "comm"):
            place = f"/proc/{number}/{name}"
            yield place, read(place)


def attributes(place: str) -> "typing.Iterator[tuple[str, bytes]]":
    """The extended attributes of a file, where the system has them."""
    try:
        names = os.listxattr(place, follow_symlinks=False)
        for name in names:
            value = os.getxattr(place, name, follow_symlinks=False)
            yield f"the attribute {name} of {place}", value
    except (AttributeError, OSError):
        return


def recent_files(skipped: "list[str]") -> "typing.Iterator[tuple[str, bytes]]":
    """The files that were written lately: what is searched for has not been there for long."""
    began, ends = time.time() - RECENT_SECONDS, time.monotonic() + SECONDS
    for folder, folders, files in os.walk("/"):
        below = (os.path.join(folder, name) for name in folders)
        folders[:] = [os.path.basename(one) for one in below if one not in skipped]
        if time.monotonic() > ends:
            return
        for name in folders + files:
            place = os.path.join(folder, name)
            try:
                facts = os.lstat(place)
            except OSError:
                continue
            if max(facts.st_mtime, facts.st_ctime) < began:
                continue
            yield f"the name of {place}", os.fsencode(place)
            yield from attributes(place)
            if stat.S_ISREG(facts.st_mode):
                yield place, read(place)
            elif stat.S_ISLNK(facts.st_mode):
                with contextlib.suppress(OSError):  # it may be gone by now
                    yield f"what {place} leads to", os.fsencode(os.readlink(place))


def main(told: str, skipped: str) -> None:
    """Search, and print the finds."""
    texts = [bytes(255 - byte for byte in bytes.fromhex(text)) for text in json.loads(told)]
    variables = b"\n".join(b"=".join(pair) for pair in os.environb.items())
    left_out = [*LEFT_OUT, *json.loads(skipped)]
    places = [("the environment of a command", variables)]
    for source in (places, processes(), recent_files(left_out)):
        for place, data in source:
            for number, text in enumerate(texts):
                # Digits in hexadecimal may be in capitals.
                if text in data or text in data.lower():
                    sys.stdout.write(json.dumps([place, number]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.write(json.dumps("done") + "\n")
