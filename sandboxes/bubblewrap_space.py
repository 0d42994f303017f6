"""What the inside of a Bubblewrap sandbox sees: the command line of bwrap, and its files.

Nothing is inherited: a folder, a file, a variable or a name is inside because it is listed
here. Of `/etc` only what programs need to start, since root could read the rest.
"""

from __future__ import annotations

import marshal
import os
import shutil
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes.trust import SYSTEM_BUNDLES, system_certificates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WORKSPACE = "/workspace"
HOME = "/home/sandbox"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "sandbox",
    "PATH": PATH,
    "USER": "sandbox",
}
_OWN = "/run/sandbox"
BUNDLE = f"{_OWN}/ca.pem"
"""Where clients inside find the certificates that they trust."""

_USER = "1000"
_ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Copied, since bwrap reads the table of all mounts again for each that it makes.
_SYSTEM_FILES = (
    "bash.bashrc",
    "debian_version",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "profile",
    "protocols",
    "redhat-release",
    "services",
    "ssl/openssl.cnf",
    "timezone",
)
_SYSTEM_FOLDERS = ("alternatives", "pki/ca-trust/extracted", "pki/tls/certs", "ssl/certs")
_OWN_FILES = {
    "group": "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "hostname": "sandbox\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "passwd": (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"sandbox:x:1000:1000:sandbox:{HOME}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "resolv.conf": "# There is no server for names.\n",
}
_MODULES = (
    "bare",
    "process_tree",
    "supervisor",
    "host_files",
    "inside.bubblewrap_filter",
    "inside.bubblewrap_server",
)
# Compiled here, once: to look for modules and to compile them takes longer than all else.
_PROGRAM = f"""
import marshal, sys
with open("{_OWN}/program", "rb") as file:
    modules = marshal.load(file)
for name, code in {{"sandboxes": "", "sandboxes.inside": "", **modules}}.items():
    sys.modules[name] = module = type(sys)(name)
    exec(code, module.__dict__)
sys.modules["sandboxes.inside.bubblewrap_server"].main(*map(int, sys.argv[1:]))
"""


@cache
def _program() -> bytes:
    """The modules that run inside, as the interpreter reads them back."""
    package = Path(__file__).parent
    modules = {}
    for name in _MODULES:
        text = (package / f"{name.replace('.', '/')}.py").read_bytes()
        modules[f"sandboxes.{name}"] = compile(text, f"<{name}>", "exec", dont_inherit=True)
    return marshal.dumps(modules)


def _bundles() -> Sequence[str]:
    """Where clients look for certificates that are told of no other place, below /etc."""
    found = {os.path.realpath(path) for path in SYSTEM_BUNDLES if os.path.exists(path)}
    return sorted(path.removeprefix("/etc/") for path in found if path.startswith("/etc/"))


class Space:
    """The folder of one session on the host, and how bwrap shows it inside.

    Args:
        folder: Empty, and nobody else's.
        port: Where the inside is to listen on its loopback for a proxy; 0 for nowhere.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._etc = folder / "etc"
        self._port = port

    def prepare(self, certificates: bytes) -> None:
        """Make what the inside sees of the folder; it trusts these certificates too."""
        for name in ("workspace", "home", "tmp", "own/python"):
            (self._folder / name).mkdir(parents=True)
        (self._folder / "tmp").chmod(0o1777)
        (self._folder / "own" / "program").write_bytes(_program())
        for name in (*_SYSTEM_FOLDERS, *map(os.path.dirname, _bundles())):
            (self._etc / name).mkdir(parents=True, exist_ok=True)
        for name in _SYSTEM_FILES:
            with suppress(FileNotFoundError):
                shutil.copyfile(f"/etc/{name}", self._etc / name, follow_symlinks=False)
        for name, text in _OWN_FILES.items():
            (self._etc / name).write_text(text, encoding="utf-8")
        self.trust(certificates)

    def trust(self, certificates: bytes) -> None:
        """Have clients inside trust these certificates beside those of the system."""
        # Into the same file: it is mounted already.
        everything = system_certificates() + b"\n" + certificates
        (self._folder / "own" / "ca.pem").write_bytes(everything)

    def command(self, bwrap: str, descriptor: int) -> Sequence[str]:
        """The command line that starts the server of supervisors inside.

        It is the first process of its namespace: none of the signals that commands send
        reaches it, and when it ends all of them have ended.

        Args:
            bwrap: The program.
            descriptor: The server's socket.
        """
        namespaces = ["--unshare-all", "--unshare-user", "--disable-userns", "--as-pid-1"]
        identity = ["--uid", _USER, "--gid", _USER, "--cap-drop", "ALL", "--hostname", "sandbox"]
        options = [*namespaces, *identity, "--die-with-parent", "--clearenv"]
        python, environment, mounts = self._python()
        for name, value in {**environment, "LANG": "C.UTF-8"}.items():
            options += ["--setenv", name, value]
        options += [*self._system(), *self._own(), *mounts, "--remount-ro", "/"]
        flags = ["-I", "-S", "-B", "-X", "utf8"]
        own = [_PROGRAM, str(descriptor), str(self._port)]
        return [bwrap, *options, "--chdir", "/", "--", python, *flags, "-c", *own]

    def _system(self) -> Iterator[str]:
        # What is made on the way to something else would be closed to others.
        for folder in ("/home", "/run", "/var"):
            yield from ("--dir", folder)
        yield from ("--ro-bind", "/usr", "/usr")
        for name in _ROOT_FOLDERS:
            place = f"/{name}"
            if os.path.islink(place):
                yield from ("--symlink", os.readlink(place), place)
            else:
                yield from ("--ro-bind-try", place, place)
        yield from ("--ro-bind", str(self._etc), "/etc")
        for name in _SYSTEM_FOLDERS:
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        for name in _bundles():
            yield from ("--ro-bind", f"{self._folder}/own/ca.pem", f"/etc/{name}")
        # What is listed there are the keys of the host's user.
        yield from ("--proc", "/proc", "--ro-bind-try", "/dev/null", "/proc/keys", "--dev", "/dev")

    def _own(self) -> Iterator[str]:
        for name, place in (("workspace", WORKSPACE), ("home", HOME), ("tmp", "/tmp")):  # noqa: S108 - inside
            yield from ("--bind", f"{self._folder}/{name}", place)
        yield from ("--symlink", "/tmp", "/var/tmp")  # noqa: S108 - inside
        yield from ("--ro-bind", f"{self._folder}/own", _OWN)

    def _python(self) -> tuple[str, Mapping[str, str], Sequence[str]]:
        """The interpreter of this process as the inside finds it, wherever it lies here."""
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        prefix = Path(sys.base_prefix).resolve()
        if prefix.is_relative_to("/usr"):
            return f"{prefix}/bin/{name}", {}, ()
        place = f"{_OWN}/python"
        mounts = ["--ro-bind", str(prefix), place]
        if (prefix / "lib" / name / "site-packages").is_dir():  # whatever its owner installed
            mounts += ["--tmpfs", f"{place}/lib/{name}/site-packages"]
        return f"{place}/bin/{name}", {"LD_LIBRARY_PATH": f"{place}/lib"}, mounts
