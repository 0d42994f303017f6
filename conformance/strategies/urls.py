"""URLs that two parsers read differently."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

_SPLITS: dict[str, str] = {
    "user info": "https://{listed}@{other}{path}",
    "user info and port": "https://{listed}:443@{other}{path}",
    "user info with slash": "https://{listed}%2f@{other}{path}",
    "user info twice": "https://{listed}@{listed}@{other}{path}",
    "reversed user info": "https://{other}{path}@{listed}/",
    "query": "https://{other}{path}?https://{listed}/",
    "query before user info": "https://{other}?@{listed}{path}",
    "fragment": "https://{other}{path}#{listed}",
    "fragment before user info": "https://{other}#@{listed}{path}",
    "port and fragment": "https://{other}:443#@{listed}{path}",
    "backslash before at": "https://{other}\\@{listed}{path}",
    "backslash after listed": "https://{listed}\\@{other}{path}",
    "backslashes for slashes": "https:\\\\{other}\\@{listed}{path}",
    "one slash": "https:/{other}{path}",
    "no slash": "https:{other}{path}",
    "three slashes": "https:///{other}{path}",
    "encoded NUL": "https://{other}%00.{listed}{path}",
    "encoded NUL after listed": "https://{listed}%00.{other}{path}",
    "encoded dot": "https://{listed}%2e{other}{path}",
    "encoded at": "https://{listed}%40{other}{path}",
    "encoded slash": "https://{other}%2f.{listed}{path}",
    "encoded hash": "https://{other}%23.{listed}{path}",
    "encoded backslash": "https://{other}%5c.{listed}{path}",
    "double encoding": "https://{other}%252f@{listed}{path}",
    "tab": "https://{other}\t.{listed}{path}",
    "line feed": "https://{other}\n.{listed}{path}",
    "carriage return": "https://{other}\r\n@{listed}{path}",
    "space": "https://{other} .{listed}{path}",
    "space before at": "https://{listed} @{other}{path}",
    "semicolon": "https://{other};{listed}{path}",
    "comma": "https://{listed},{other}{path}",
    "upper case": "HTTPS://{OTHER}{path}",
    "trailing dot": "https://{other}.{path}",
    "full-width dot": "https://{listed}\uff0e{other}{path}",
    "full-width at": "https://{listed}\uff20{other}{path}",
    "full-width slash": "https://{other}\uff0f.{listed}{path}",
    "brackets": "https://[{other}]{path}",
    "bracket before at": "https://[{listed}]@{other}{path}",
    "dot segment": "https://{listed}/../../{other}{path}",
    "scheme twice": "https://https://{other}{path}",
    "listed scheme": "https://{other}{path}/https://{listed}/",
    "dollar": "https://{listed}$@{other}{path}",
    "colon": "https://{listed}:@{other}{path}",
    "port of words": "https://{listed}:{other}{path}",
    "bare host": "{other}{path}",
}


@dataclass(frozen=True, slots=True)
class Split:
    """A URL that holds a listed and another host so that parsers may disagree."""

    kind: str

    def url(self, *, listed: str, other: str, path: str) -> str:
        """Write it out; `path` begins with a slash."""
        text = _SPLITS[self.kind]
        return text.format(listed=listed, other=other, OTHER=other.upper(), path=path)


SPLITS = tuple(Split(kind) for kind in _SPLITS)

splits = st.sampled_from(SPLITS)
