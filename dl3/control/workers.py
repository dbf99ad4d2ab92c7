"""What dl3d's workers do while no frame arrives."""

from dl3.control.client import Client
from dl3.control.replies import Workers


def idle_of(workers: Workers) -> dict[str, str]:
    """'idle': 'poll' or 'sleep'; 'woken_by': 'frames' or 'time' for sleeping workers. Values that differ are all
    listed.
    """
    modes = dict.fromkeys(worker.idle for worker in workers.workers)
    wakers = dict.fromkeys(worker.woken_by for worker in workers.workers if worker.woken_by)
    said = {"idle": ", ".join(modes), "woken_by": ", ".join(wakers)}
    return {key: words for key, words in said.items() if words}


def ask_idle(dut: Client) -> dict[str, str]:
    """The same, for a running dl3d."""
    return idle_of(dut.ask(Workers, "workers"))
