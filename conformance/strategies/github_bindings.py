"""What access to GitHub may be made of, and what it must refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

RIGHT: tuple[Mapping[str, Any], ...] = (
    {"repos": ()},
    {"repos": "all"},
    {"repos": ("acme/api",)},
    {"repos": ("Acme/API", "a-1/b.c_d-e", "x/.github")},
    {"repos": ("acme/api",), "ttl_seconds": 60, "host": "github.com"},
)

WRONG: tuple[Mapping[str, Any], ...] = (
    *(
        {"repos": (name,)}
        for name in ("", "acme", "acme/", "/api", "acme/api/x", "acme//api", "acme/*", "*/api")
    ),
    *({"repos": (name,)} for name in ("acme/..", "acme/.", "../api", "ac me/api", "acme/a pi")),
    *({"repos": (name,)} for name in ("https://github.com/acme/api", "acme/api?x", "acme/a%2fb")),
    *({"repos": (name,)} for name in ("acme/api\n", "acme/\xe4pi", "acme/api\0", 7, None)),
    *({"repos": repos} for repos in ("acme/api", "ALL", "", "*", None, 7)),
    *({"host": host} for host in ("", "github.example", "gitlab.com", "api.github.com")),
    *({"host": host} for host in ("github.com.evil.test", "https://github.com", None)),
)
"""One of each way to be wrong."""

_LETTERS = "abyzABYZ019"
_owners = st.text(_LETTERS + "-", min_size=1, max_size=20).filter(lambda name: name[0] != "-")
_names = st.text(_LETTERS + "._-", min_size=1, max_size=30).filter(
    lambda name: name[0] not in ".-" and not name.lower().endswith(".git")
)
names = _names.filter(lambda name: len(name) > 1 and name.lower() != "hidden")
"""Names of repositories, other than that of the one beside."""

_repositories = st.builds("{}/{}".format, _owners, _names)

right = st.fixed_dictionaries(
    {"repos": st.one_of(st.just("all"), st.lists(_repositories, max_size=4).map(tuple))}
)
"""Bindings that are right."""

wrong = st.builds(
    lambda owner, name, mark, place: {"repos": ((f"{owner}/{name}"[:place] + mark + name),)},
    _owners,
    _names,
    st.sampled_from("\0\t\n\r \"'()*,:;<=>?@[\\]{}%#\xe4"),
    st.integers(0, 20),
)
"""Names with a character that no repository has."""

OLDER: tuple[Mapping[str, Any], ...] = (
    {"repo_whitelist": ()},
    {"repo_whitelist": ("acme/api",)},
    {"repo_whitelist": ("Acme/API", "a-1/b.c_d-e"), "ttl_seconds": 60},
)

older = st.fixed_dictionaries(
    {"repo_whitelist": st.lists(_repositories, max_size=3).map(tuple)},
    optional={"ttl_seconds": st.integers(1, 10**6)},
)
"""The same in the older spelling."""
