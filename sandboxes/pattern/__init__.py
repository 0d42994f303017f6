"""Ready-made pieces of agents."""

from sandboxes.pattern import sandbox_hook

__all__ = ["sandbox_hook"]
