"""What dl3d's lanes do while no frame comes."""

from dl3.control.client import Client
from dl3.control.replies import Lanes


def idle_of(lanes: Lanes) -> dict[str, str]:
    """'idle': 'poll' or 'sleep'; 'woken_by': 'frames' or 'time', of those that sleep; both where lanes differ."""
    modes = dict.fromkeys(lane.idle for lane in lanes.lanes)
    wakers = dict.fromkeys(lane.woken_by for lane in lanes.lanes if lane.woken_by)
    said = {"idle": ", ".join(modes), "woken_by": ", ".join(wakers)}
    return {key: words for key, words in said.items() if words}


def ask_idle(dut: Client) -> dict[str, str]:
    """The same, of a dl3d that runs."""
    return idle_of(dut.ask(Lanes, "lanes"))
