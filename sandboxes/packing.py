"""Programs of this package that run where it is not installed: all of one in one text."""

from __future__ import annotations

import base64
import marshal
import zlib
from functools import cache
from importlib import resources
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN = 2
"""The version of `marshal` in which every Python 3 reads plain values."""

_LOADER = """\
import binascii,marshal,sys,zlib
for n,t in marshal.loads(zlib.decompress(binascii.a2b_base64('{packed}'))):
 m=type(sys)(n)
 if n!='__main__':
  h,_,k=n.rpartition('.')
  setattr(sys.modules.setdefault(h,type(sys)(h)),k,m)
  sys.modules[n]=m
 exec({code},m.__dict__)
"""


@cache
def packed(*modules: str) -> str:
    """A text of ASCII that Python runs: modules of this package, the last one as main.

    Args:
        modules: Their full names, each after those that it imports. They use the standard
            library and each other only.
    """
    # In a version of the format that every Python reads.
    return _loading("compile(t,n,'exec')", marshal.dumps([*_named(modules)], PLAIN))


@cache
def compiled(*modules: str) -> str:
    """The same for a Python with the `importlib.util.MAGIC_NUMBER` of this one; it begins sooner.

    Args:
        modules: As in `packed`.
    """
    codes = [
        (name, _bare(compile(text, name, "exec", optimize=2))) for name, text in _named(modules)
    ]
    return _loading("t", marshal.dumps(codes))


def _bare(code: CodeType) -> CodeType:
    """Without what only tracebacks show, which is nearly half of it."""
    constants = tuple(_bare(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_linetable=b"", co_filename="", co_consts=constants)


def _named(modules: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in modules:
        yield "__main__" if name == modules[-1] else name, _text(name)


def _loading(code: str, data: bytes) -> str:
    text = base64.b64encode(zlib.compress(data, 9)).decode()
    return _LOADER.format(code=code, packed=text)


def _text(module: str) -> str:
    root, *folders, name = module.split(".")
    return resources.files(root).joinpath(*folders, f"{name}.py").read_text("utf-8")
