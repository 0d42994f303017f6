"""What the inside of a Bubblewrap sandbox sees: the command line of bwrap, and its files.

Nothing is inherited: a folder, a file, a variable or a name is inside because it is listed
here. Of `/etc` only what programs need to start, since root could read the rest.
"""

from __future__ import annotations

import marshal
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

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
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
"""Where clients inside find the certificates that they trust."""

_OWN = "/run/sandbox"
_USER = "1000"
_ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_OF_THE_SYSTEM = (
    "alternatives",
    "bash.bashrc",
    "debian_version",
    "fonts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "magic.mime",
    "mime.types",
    "os-release",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "profile",
    "protocols",
    "redhat-release",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
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
    "process_tree",
    "supervisor",
    "host_files",
    "inside.bubblewrap_filter",
    "inside.bubblewrap_server",
)
_HIDDEN = ("keys", "key-users")  # they list the keys of the host's user
_SYSTEM_BUNDLES = (BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
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


class Space:
    """The folder of one session on the host, and how bwrap shows it inside.

    Args:
        folder: Empty, and nobody else's.
        port: Where the inside is to listen on its loopback for a proxy; 0 for nowhere.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port

    def prepare(self, certificates: bytes) -> None:
        """Make what the inside sees of the folder; it trusts these certificates too."""
        for name in ("workspace", "home", "tmp", "etc"):
            (self._folder / name).mkdir()
        (self._folder / "tmp").chmod(0o1777)
        for name, text in _OWN_FILES.items():
            (self._folder / "etc" / name).write_text(text, encoding="utf-8")
        (self._folder / "program").write_bytes(_program())
        self.trust(certificates)

    def trust(self, certificates: bytes) -> None:
        """Have clients inside trust these certificates beside those of the system."""
        found = (Path(path).read_bytes() for path in _SYSTEM_BUNDLES if os.path.exists(path))
        # Into the same file: it is mounted already.
        (self._folder / "etc" / "bundle").write_bytes(next(found, b"") + b"\n" + certificates)

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
        for folder in ("/etc", "/etc/pki", "/etc/pki/tls", "/etc/ssl", "/home", "/run", "/var"):
            yield from ("--dir", folder)
        yield from ("--dir", _OWN, "--ro-bind", "/usr", "/usr")
        for name in _ROOT_FOLDERS:
            place = f"/{name}"
            if os.path.islink(place):
                yield from ("--symlink", os.readlink(place), place)
            else:
                yield from ("--ro-bind-try", place, place)
        pythons = sorted(path.name for path in Path("/etc").glob("python3*"))
        for name in (*_OF_THE_SYSTEM, *pythons):
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        yield from ("--proc", "/proc", "--dev", "/dev")
        for name in _HIDDEN:
            yield from ("--ro-bind-try", "/dev/null", f"/proc/{name}")

    def _own(self) -> Iterator[str]:
        for name in _OWN_FILES:
            yield from ("--ro-bind", f"{self._folder}/etc/{name}", f"/etc/{name}")
        for place in (BUNDLE, *_SYSTEM_BUNDLES[1:]):
            if place == BUNDLE or os.path.exists(place):
                yield from ("--ro-bind", f"{self._folder}/etc/bundle", os.path.realpath(place))
        for name, place in (("workspace", WORKSPACE), ("home", HOME), ("tmp", "/tmp")):  # noqa: S108 - inside
            yield from ("--bind", f"{self._folder}/{name}", place)
        yield from ("--symlink", "/tmp", "/var/tmp")  # noqa: S108 - inside
        yield from ("--ro-bind", f"{self._folder}/program", f"{_OWN}/program")

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
