"""Bindings to try a constructor with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxes.contract import (
    GitHubBinding,
    HeaderBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
)

if TYPE_CHECKING:
    from sandboxes.contract import AnyBinding


def one_of_each(host: str) -> tuple[AnyBinding, ...]:
    """A binding of each type; the one that names its host has this one."""
    return (
        HeaderBinding(host=host, header="X-Refused", secret_name="refused"),  # noqa: S106 - a name
        GitHubBinding(repos=()),
        MistralApiBinding(),
        WorkspaceHeaderBindings(),
    )
