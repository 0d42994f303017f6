"""Building a Mistral sandbox: its options, where a default comes from, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import sandboxes as agents
from sandboxes import EgressPolicy, MistralSandbox, Network, RefusedConfiguration
from sandboxes.mistral.options import OPTIONS

PREFIX = "AGENTS_SDK_KOYEB_SANDBOX_"
# By option: the text of its variable, what it gives, and another value.
DEFAULTS: dict[str, tuple[str, Any, Any]] = {
    "image": ("acme/one", "acme/one", "acme/two"),
    "instance_type": ("large", "large", "nano"),
    "region": ("was", "was", "fra"),
    "name_prefix": ("acme", "acme", "other"),
    "ttl_seconds": ("7200", 7200, 60),
    "idle_timeout_seconds": ("90", 90, 60),
    "default_exec_timeout_seconds": (" 1.5 ", 1.5, 60),
    "privileged": ("TRUE", True, False),
    "docker_daemon_enabled": ("yes", True, False),
    "enable_light_sleep": ("on", True, False),
    "setup_script": ("echo one", "echo one", "echo two"),
    "setup_script_timeout_seconds": ("5", 5, 60),
    "readiness_max_retries": ("0", 0, 7),
    "readiness_interval_seconds": ("0.25", 0.25, 3),
    "readiness_probe_timeout_seconds": ("9", 9, 60),
    "wait_ready_timeout_seconds": ("9", 9, 60),
    "pre_provisioned_sandbox_id": ("one", "one", "two"),
}


@pytest.mark.parametrize("option", DEFAULTS)
def test_a_default_comes_from_its_variable(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, value, other = DEFAULTS[option]
    assert getattr(MistralSandbox(), option) != value
    monkeypatch.setenv(PREFIX + option.upper(), text)
    assert getattr(MistralSandbox(), option) == value
    assert getattr(MistralSandbox(**{option: other}), option) == other


def test_the_two_that_need_company_have_variables_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}DOCKER_DAEMON_NETWORK_MODE", "host")
    assert MistralSandbox(docker_daemon_enabled=True).docker_daemon_network_mode == "host"
    assert MistralSandbox().docker_daemon_network_mode is None
    monkeypatch.setenv(f"{PREFIX}ENABLE_MESH", "1")
    assert MistralSandbox(network=Network.all()).enable_mesh is True
    with pytest.raises(RefusedConfiguration, match="enable_mesh"):
        MistralSandbox()
    assert {*DEFAULTS, "docker_daemon_network_mode", "enable_mesh"} == {
        name for name, option in OPTIONS.items() if option.read
    }


def test_six_options_have_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in ("supports_background_processes", "network", "egress"):
        monkeypatch.setenv(PREFIX + option.upper(), "all")
    monkeypatch.setenv(f"{PREFIX}ACCESS", "none")
    box = MistralSandbox()
    assert (box.network, box.access) == (Network.none(), "full")
    assert box.supports_background_processes is True


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("ttl_seconds", "soon"),
        ("ttl_seconds", "0"),
        ("ttl_seconds", ""),
        ("ttl_seconds", "nan"),
        ("privileged", "perhaps"),
        ("readiness_max_retries", "1.5"),
        ("readiness_interval_seconds", "-1"),
        ("region", " "),
        ("name_prefix", "Not A Name"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(
    option: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + option.upper(), text)
    with pytest.raises(RefusedConfiguration, match=f"{option} from {PREFIX}{option.upper()} "):
        MistralSandbox()


def test_the_documented_sentences_are_its_own() -> None:
    with pytest.raises(RefusedConfiguration) as caught:
        MistralSandbox(network=Network.allow(hosts=("example.org",)))
    assert str(caught.value) == (
        "MistralSandbox does not support Network.allow(); "
        "pass network=Network.none() or network=Network.all()"
    )
    with pytest.raises(RefusedConfiguration) as caught:
        MistralSandbox(header_bindings=(agents.GitHubBinding(repos=()),))
    assert str(caught.value) == (
        "MistralSandbox: agents.GitHubBinding needs network access to github.com, "
        "api.github.com, which Network.none() blocks; pass network=Network.all()"
    )


def test_the_policy_is_what_was_written() -> None:
    custom = EgressPolicy.custom(allow_cidrs=("203.0.113.10",))
    assert MistralSandbox().egress_policy == EgressPolicy.block_all()
    assert MistralSandbox(network=Network.all()).egress_policy == EgressPolicy.allow_all()
    assert MistralSandbox(egress=custom).egress_policy is custom
    for wrong in (
        {"egress": EgressPolicy.block_all()},
        {"egress": custom, "network": Network.all()},
    ):
        with pytest.raises(RefusedConfiguration, match="egress"):
            MistralSandbox(**wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"docker_daemon_enabled": True, "privileged": False}, "docker_daemon_enabled needs"),
        ({"docker_daemon_network_mode": "host"}, "there is none"),
        ({"docker_daemon_network_mode": "mine"}, "docker_daemon_network_mode is no network"),
        ({"enable_mesh": True}, "enable_mesh opens connections"),
        (
            {"pre_provisioned_sandbox_id": "s", "image": "i", "region": "fra"},
            "without image, region",
        ),
        ({"ttl_seconds": float("inf")}, "ttl_seconds is inf"),
        ({"readiness_max_retries": 1.5}, "readiness_max_retries is of type float"),
        ({"name_prefix": "a" * 25}, "name_prefix is no beginning"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedConfiguration, match=words):
        MistralSandbox(**options)


def test_of_an_image_of_somebody_else_nothing_is_known() -> None:
    assert MistralSandbox(image="acme/one").supports_background_processes is False
    known = MistralSandbox(image="acme/one", supports_background_processes=True)
    assert known.supports_background_processes is True
    assert MistralSandbox(docker_daemon_enabled=True).image == "koyeb/sandbox:dind"
    assert MistralSandbox(docker_daemon_enabled=True).privileged is True
