"""Programs of this package that run where it is not installed: all of one in one text."""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from importlib import resources

_LOADER = """\
import base64,json,sys,types,zlib
for n,t in json.loads(zlib.decompress(base64.b64decode('{packed}'))):
 m=types.ModuleType(n)
 if n!='__main__':
  h,_,k=n.rpartition('.')
  setattr(sys.modules.setdefault(h,types.ModuleType(h)),k,m)
  sys.modules[n]=m
 exec(compile(t,n,'exec'),m.__dict__)
"""


@cache
def packed(*modules: str) -> str:
    """A text of ASCII that Python runs: modules of this package, the last one as main.

    Args:
        modules: Their full names, each after those that it imports. They use the standard
            library and each other only.
    """
    texts = [[name, _text(name)] for name in modules]
    texts[-1][0] = "__main__"
    data = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return _LOADER.replace("{packed}", data)


def _text(module: str) -> str:
    root, *folders, name = module.split(".")
    return resources.files(root).joinpath(*folders, f"{name}.py").read_text("utf-8")
