"""Idle states."""

from dl3.host.checks.c_states import check
from dl3.host.fixture import Machine, found


def names_states_that_take_longer_to_leave_than_a_ring_lasts() -> None:
    made = Machine()
    for n, (name, latency_us) in enumerate((("POLL", 0), ("C1", 2), ("C6", 170))):
        at = f"/sys/devices/system/cpu/cpu0/cpuidle/state{n}"
        made.texts |= {f"{at}/name": f"{name}\n", f"{at}/latency": f"{latency_us}\n", f"{at}/disable": "0\n"}
    assert found(check, made) == [("loss", "idle states with a long wakeup are enabled: C6 (170 us)")]
    made.texts["/sys/devices/system/cpu/cpu0/cpuidle/state2/disable"] = "1\n"
    assert found(check, made) == []
