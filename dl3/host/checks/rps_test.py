"""Receive packet steering."""

from dl3.host.checks.rps import check
from dl3.host.fixture import Machine, found

MASK = "/sys/class/net/eth0/queues/rx-0/rps_cpus"


def names_masks_with_isolated_cpus() -> None:
    made = Machine()
    made.texts[MASK] = "00000000,0000000f\n"
    assert found(check, made) == [], "no CPU is isolated"
    made.isolate("2-3")
    assert found(check, made) == [("loss", "receive packet steering (RPS) of eth0 includes isolated CPUs 2-3")]
    made.texts[MASK] = "3\n"
    assert found(check, made) == []
    made.texts["/proc/sys/net/core/rps_sock_flow_entries"] = "32768\n"
    assert found(check, made) == [("speed", "net.core.rps_sock_flow_entries is 32768")]
