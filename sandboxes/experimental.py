"""The public spelling `agents.experimental.CustomSandbox`."""

from sandboxes.custom_sandbox import CustomSandbox
from sandboxes.process_running import ProcessRunning
from sandboxes.sync_sandbox import SyncRunningSandbox, SyncSandbox

__all__ = ["CustomSandbox", "ProcessRunning", "SyncRunningSandbox", "SyncSandbox"]
