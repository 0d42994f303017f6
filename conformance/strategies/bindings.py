"""Header bindings of every type, and networks that do or do not reach their hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from hypothesis import strategies as st

from conformance.oracle import Origin, named
from conformance.strategies import hosts, look_alikes
from conformance.strategies.hosts import Entry
from sandboxes.contract import (
    GitHubBinding,
    HeaderBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandboxes.contract import AnyBinding

GITHUB = (Origin("github.com"), Origin("api.github.com"))
"""What a `GitHubBinding` needs."""

NEEDED_HOSTS = ("packages.example.org", "github.com", "api.github.com", "api.mistral.ai")
"""The hosts that the bindings of `KINDS` need."""


def header(host: str, name: str = "X-Api-Key") -> HeaderBinding:
    """A header binding for one host."""
    return HeaderBinding(host=host, header=name, secret_name="key")  # noqa: S106 - the name of one


KINDS: tuple[AnyBinding, ...] = (
    header("packages.example.org"),
    GitHubBinding(repos=("acme/api",)),
    MistralApiBinding(),
    WorkspaceHeaderBindings(),
)
"""A binding of each type."""

MIXES: tuple[tuple[AnyBinding, ...], ...] = (
    *((one,) for one in KINDS),
    (GitHubBinding(repos=()),),
    # Each type once in front and once at the end: the two places where one may look alone.
    *((*KINDS[first:], *KINDS[:first]) for first in range(len(KINDS))),
)
"""Each type alone, a grant of nothing, and all of them in turn."""

_headers = st.builds(
    HeaderBinding,
    host=st.sampled_from(NEEDED_HOSTS),
    header=st.sampled_from(("Authorization", "X-Api-Key")),
    secret_name=st.just("key"),
    path_prefix=st.sampled_from(("/", "/v1/")),
    prefix=st.sampled_from(("", "Bearer ")),
)
grants = st.builds(GitHubBinding, repos=st.sampled_from(((), "all", ("acme/api", "acme/web"))))
"""Bindings that give access to GitHub."""

_seconds = st.integers(1, 86400)


def _in_order(
    order: Iterable[int], size: int, bindings: tuple[AnyBinding, ...]
) -> tuple[AnyBinding, ...]:
    return tuple(bindings[place] for place in order)[:size]


mixes = st.builds(
    _in_order,
    st.permutations(range(len(KINDS))),
    st.integers(1, len(KINDS)),
    st.tuples(
        _headers,
        grants,
        st.builds(MistralApiBinding, ttl_seconds=_seconds),
        st.just(WorkspaceHeaderBindings()),
    ),
)
"""One to four bindings, each of another type, in any order."""


Place = Literal["alone", "first", "last"]
_places: st.SearchStrategy[Place] = st.sampled_from(get_args(Place))

BESIDE_HOST = "beside.example.net"
"""The host of a binding that stands beside another one."""


@dataclass(frozen=True, slots=True)
class Case:
    """A binding, what it needs, and an allow list that reaches it or does not.

    Attributes:
        binding: The binding.
        needed: The origins that it needs.
        listed: The entries of the list.
        place: Where the binding stands when another one is beside it, whose host is listed.
    """

    binding: AnyBinding
    needed: tuple[Origin, ...]
    listed: tuple[Entry, ...]
    place: Place = "alone"


def _entries(*texts: str) -> tuple[Entry, ...]:
    return tuple(Entry(text, named(text)) for text in texts)


def _for_host(host: str, listed: Iterable[Entry], place: Place = "alone") -> Case:
    return Case(header(host), (Origin(host),), tuple(listed), place)


HEADER_CASES = (
    *(
        _for_host(host, _entries(*texts))
        for host, texts in (
            ("packages.example.org", ("packages.example.org",)),
            ("packages.example.org", ("first.example.org", "packages.example.org:443")),
            ("packages.example.org", ("packages.example.org:8443",)),
            ("packages.example.org", ("first.example.org", "example.org")),
            ("example.org", ("packages.example.org",)),
            ("packages.example.org.evil.test", ("packages.example.org",)),
            ("203.0.113.1", ("203.0.113.10",)),
            ("2001:db8::1", ("[2001:db8::1]:443",)),
        )
    ),
    _for_host("packages.example.org", _entries("first.example.org"), "first"),
    _for_host("packages.example.org", _entries("first.example.org"), "last"),
    _for_host("packages.example.org", _entries("packages.example.org"), "last"),
)
"""Each way in which a list does or does not reach the host of a binding."""

Turn = Literal["as listed", "look-alike", "stranger"]


def _turned(
    listed: list[Entry], turn: Turn, kind: look_alikes.LookAlike, stranger: str, place: Place
) -> Case:
    host = listed[-1].origin.host
    if turn != "as listed":
        host = kind.of(host) if turn == "look-alike" else stranger
    return _for_host(host, listed, place)


header_cases = st.builds(
    _turned,
    st.lists(hosts.long_name_entries, min_size=1, max_size=3),
    st.sampled_from(get_args(Turn)),
    look_alikes.look_alikes,
    hosts.names,
    _places,
)
"""Header bindings for a host that is listed, at one port or another, or only like a listed one."""

_GITHUB_LISTS: tuple[tuple[Place, tuple[str, ...]], ...] = (
    ("alone", ("api.github.com", "github.com")),
    ("last", ("github.com:443", "example.org", "api.github.com:443")),
    ("alone", ("github.com", "example.org")),
    ("alone", ("api.github.com", "example.org")),
    ("alone", ("github.com", "api.github.com:8443")),
    ("alone", ("github.com:8443", "api.github.com")),
    ("first", ("github.com", "uploads.github.com", "api.github.com.evil.test")),
    ("last", ("www.github.com", "api.github.com")),
)
GITHUB_CASES = tuple(
    Case(GitHubBinding(repos=("acme/api",)), GITHUB, _entries(*texts), place)
    for place, texts in _GITHUB_LISTS
)
"""Lists that reach both hosts of GitHub, one of them, or what is only like them."""

_GITHUB_HOSTS = ("github.com", "api.github.com", "www.github.com", "notgithub.com", "example.org")
_PORTS = ("", ":443", ":8443")

github_cases = st.builds(
    lambda binding, texts, place: Case(binding, GITHUB, _entries(*texts), place),
    grants,
    st.lists(
        st.builds(
            str.__add__, st.sampled_from(_GITHUB_HOSTS), st.sampled_from(("", ":443", ":8443"))
        ),
        min_size=1,
        max_size=4,
    ),
    _places,
)
"""Bindings for GitHub, with hosts of GitHub's among what is listed."""

_MISTRAL_LISTS: tuple[tuple[Place, tuple[str, ...]], ...] = (
    ("alone", ("api.mistral.ai",)),
    ("last", ("example.org", "api.mistral.ai:443")),
    ("alone", ("mistral.ai", "example.org")),
    ("first", ("api.mistral.ai:8443",)),
    ("last", ("api.mistral.ai.evil.test", "console.mistral.ai")),
)
MISTRAL_CASES = tuple(
    Case(MistralApiBinding(), (Origin("api.mistral.ai"),), _entries(*texts), place)
    for place, texts in _MISTRAL_LISTS
)
"""Lists that reach the host of Mistral's API, or what is only like it."""

_MISTRAL_HOSTS = ("api.mistral.ai", "mistral.ai", "console.mistral.ai", "apimistral.ai")

mistral_cases = st.builds(
    lambda binding, texts, place: Case(
        binding, (Origin("api.mistral.ai"),), _entries(*texts), place
    ),
    st.builds(MistralApiBinding, ttl_seconds=_seconds),
    st.lists(
        st.builds(str.__add__, st.sampled_from(_MISTRAL_HOSTS), st.sampled_from(_PORTS)),
        min_size=1,
        max_size=4,
    ),
    _places,
)
"""Bindings for Mistral's API, with hosts of its owner's among what is listed."""
