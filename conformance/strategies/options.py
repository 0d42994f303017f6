"""The options that the public sandboxes have, by their names, and values that none of them takes.

A sandbox may have options of its own, of which nothing is known: only these are judged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from sandboxes.contract import GitHubBinding, Network, SandboxHook

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMITS = (
    "default_exec_timeout_seconds",
    "setup_script_timeout_seconds",
    "ttl_seconds",
    "idle_timeout_seconds",
    "readiness_probe_timeout_seconds",
    "wait_ready_timeout_seconds",
)
"""How long something may take, in seconds."""

COUNTS = ("readiness_max_retries", "readiness_interval_seconds")
"""What may be nothing, but not less."""

NAMES = (
    "instance_id",
    "workspace",
    "image",
    "instance_type",
    "region",
    "name_prefix",
    "pre_provisioned_sandbox_id",
    "docker_daemon_network_mode",
)

SWITCHES = (
    "block_private_ips",
    "supports_background_processes",
    "delete_on_cleanup",
    "privileged",
    "docker_daemon_enabled",
    "enable_light_sleep",
    "enable_mesh",
)

ORDINARY_SECONDS = 600
"""A limit that has nothing unusual."""

_no_numbers = st.sampled_from(("soon", "", True, False, [600], {}, b"600", SandboxHook))

WRONG_LIMITS = (0, -1, -0.5, math.nan, "soon", True, [600])
wrong_limits: st.SearchStrategy[Any] = st.one_of(
    st.integers(max_value=0), st.floats(max_value=0), st.just(math.nan), _no_numbers
)
"""What is no time that anything may take."""

WRONG_COUNTS = (-1, math.nan, "often", True, [3])
wrong_counts: st.SearchStrategy[Any] = st.one_of(
    st.integers(max_value=-1), st.floats(max_value=-0.01), st.just(math.nan), _no_numbers
)
"""What is less than nothing, or no number."""

WRONG_NAMES = ("", 7, b"name", ["name"])
wrong_names: st.SearchStrategy[Any] = st.one_of(
    st.just(""), st.integers(), st.binary(), st.lists(st.just("name")), st.just(True)
)
"""What names nothing."""


class PlainHook(SandboxHook):
    """A hook that does nothing."""


class NoHook:
    """An object that has nothing of a hook."""


RIGHT_HOOKS = ((), (PlainHook(),), [PlainHook(), PlainHook()])

WRONG_HOOKS = (
    (NoHook(),),
    (PlainHook(), NoHook()),
    (NoHook(), PlainHook()),
    (PlainHook,),  # the class and not a hook
    PlainHook(),
    "hook",
    7,
)
wrong_hooks: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda before, wrong, after: [*before, wrong, *after],
        st.lists(st.builds(PlainHook), max_size=2),
        st.sampled_from((NoHook(), "hook", None, 7, PlainHook, len)),
        st.lists(st.builds(PlainHook), max_size=2),
    ),
    st.sampled_from(("hook", 7, PlainHook())),
)
"""Sequences in which something is no hook, and what is no sequence."""


class LooksLikeANetwork:
    """An object that has what networks have, and none of what their constructor refuses."""

    mode = "allow"
    hosts = ("https://*",)
    entries = ()

    def reaches(self, host: str) -> bool:
        """Whatever it is."""
        return bool(host)


WRONG_TYPES: Mapping[str, tuple[object, ...]] = {
    # Nothing false: to take that for none() opens nothing.
    "network": (
        *("all", True, {"mode": "all"}, ["packages.example.org"], Network, LooksLikeANetwork()),
    ),
    "access": ("everything", "FULL", "", 2, True, ["full"]),
    "header_bindings": (("Bearer x",), "Bearer x", GitHubBinding(repos=()), (GitHubBinding,), 7),
    "egress": ("10.0.0.0/8", ["10.0.0.0/8"], "", 7),
    "shell": ("no-shell", "", 7, ["bash"]),
    "setup_script": (7, ["true"], b"true"),
    **dict.fromkeys(SWITCHES, ("perhaps", 2, [])),
}
"""By the name of an option, what is none of the values that it can have."""
