"""Read or write one file of a cloud sandbox, and say what came of it."""

from __future__ import annotations

import os
import zlib

from sandboxes import host_files
from sandboxes.inside import cloud_call, cloud_secrecy


def main() -> None:
    """Do what the arguments ask."""
    asked = cloud_call.request()
    if asked["instance"] != cloud_call.instance():
        cloud_call.answer({"restarted": True})
        return
    cloud_secrecy.lose_sight()  # a path may be the executor's own in /proc
    path = os.fsdecode(asked["path"])
    data = b""
    try:
        os.makedirs(asked["folder"], exist_ok=True)
        if "data" in asked:
            content = zlib.decompress(asked["data"])
            host_files.write(asked["folder"], path, content)
        else:
            data = host_files.read(asked["folder"], path)
    except OSError as error:
        cloud_call.answer({"errno": error.errno or 1, "fact": error.strerror or str(error)})
    else:
        cloud_call.answer({"errno": 0, "data": cloud_call.packed(data)})


if __name__ == "__main__":
    main()
