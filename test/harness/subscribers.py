"""Jobs of dl3d that load or export subscribers."""

from typing import Any

from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault
from harness.wire import wait_until

PATIENCE_S = 120.0


def run_job(dl3d: Forwarder, method: str, **params: Any) -> dict[str, Any]:
    """Start a load or an export, and wait for its end; a Fault says why it failed."""
    dl3d.call(method, **params)
    wait_until(lambda: dl3d.call("subscribers.job")["state"] != "running", "the job had ended", PATIENCE_S)
    job: dict[str, Any] = dl3d.call("subscribers.job")
    if job["state"] != "done":
        raise Fault(job["reason"])
    return job
