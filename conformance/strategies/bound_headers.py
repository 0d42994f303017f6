"""Header bindings with their secrets: names, values and what stands around them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from sandboxes.contract import HeaderBinding

SECRET_NAME = "key"  # noqa: S105 - the name of one


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding to be, for whatever host, and the secret that it names.

    Attributes:
        header: The header's name.
        secret: The value of the secret.
        prefix: What stands before it.
        suffix: What stands behind it.
    """

    header: str = "Authorization"
    secret: str = "s3cr3t-0123456789"  # noqa: S105 - stands for one
    prefix: str = "Bearer "
    suffix: str = ""

    @property
    def value(self) -> str:
        """What an origin is to get."""
        return f"{self.prefix}{self.secret}{self.suffix}"

    def at(self, host: str, path_prefix: str = "/", name: str = SECRET_NAME) -> HeaderBinding:
        """The binding, for a host."""
        return HeaderBinding(
            host=host,
            header=self.header,
            secret_name=name,
            path_prefix=path_prefix,
            prefix=self.prefix,
            suffix=self.suffix,
        )


_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))

CASES = (
    Bound(),
    Bound("X-Api-Key", prefix=""),
    # Every printable byte, and spaces in between.
    Bound("X-Api-Key", _PRINTABLE, prefix=""),
    Bound("PRIVATE-TOKEN", f"a  b {_PRINTABLE[::-1]}", prefix='t="', suffix='" end'),
    Bound("x.odd!name~1", "%41%0d%0aX-Other: 1", prefix="", suffix=";q=1"),
    Bound("Cookie", "${key} $(key) {key} %s", prefix="session="),
    Bound("Authorization", "x" * 2000, prefix="token "),
)
"""Each a value or a name that a template, a shell or an encoding could change."""

_names = st.one_of(
    st.sampled_from(("Authorization", "X-Api-Key", "x-api-key", "PRIVATE-TOKEN", "Cookie")),
    st.from_regex(r"[Xx]-[A-Za-z0-9!#$%&'*+.^`|~-]{1,20}", fullmatch=True),
)
_texts = st.text(_PRINTABLE + " ", max_size=12)
cases = st.builds(
    Bound,
    header=_names.filter(lambda name: name.lower() != "x-ask"),
    secret=st.text(_PRINTABLE, min_size=12, max_size=60),
    prefix=_texts.map(str.lstrip),
    suffix=_texts.map(str.rstrip),
)
"""Any token for a name, and any printable text for a value."""


def _cased(name: str, upper: int) -> str:
    return "".join(
        letter.upper() if upper >> place & 1 else letter.lower()
        for place, letter in enumerate(name)
    )


def in_every_case(name: str) -> tuple[str, ...]:
    """A header's name as a command may write it."""
    return (name, name.lower(), name.upper(), _cased(name, 0b0101_0101), name.swapcase())


orders = st.permutations(("alpha", "beta", "ALPHA", "alpha.beta")).map(tuple)
"""Names of secrets that are alike, in any order."""
