"""Programs of this package that run where it is not installed: all of one in one text."""

from __future__ import annotations

import base64
import json
import marshal
import zlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADER = """\
import base64,{form},sys,types,zlib
for n,t in {form}.loads(zlib.decompress(base64.b64decode('{packed}'))):
 m=types.ModuleType(n)
 if n!='__main__':
  h,_,k=n.rpartition('.')
  setattr(sys.modules.setdefault(h,types.ModuleType(h)),k,m)
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
    texts = json.dumps([*_named(modules)]).encode()
    return _loading("json", "compile(t,n,'exec')", texts)


@cache
def compiled(*modules: str) -> str:
    """The same for a Python with the `importlib.util.MAGIC_NUMBER` of this one; it begins sooner.

    Args:
        modules: As in `packed`.
    """
    codes = [(name, compile(text, name, "exec", optimize=2)) for name, text in _named(modules)]
    return _loading("marshal", "t", marshal.dumps(codes))


def _named(modules: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in modules:
        yield "__main__" if name == modules[-1] else name, _text(name)


def _loading(form: str, code: str, data: bytes) -> str:
    data = base64.b64encode(zlib.compress(data, 9))
    return _LOADER.format(form=form, code=code, packed=data.decode())


def _text(module: str) -> str:
    root, *folders, name = module.split(".")
    return resources.files(root).joinpath(*folders, f"{name}.py").read_text("utf-8")
