"""What a restart lost, by name, and the routes that it is made with."""

import ipaddress

from dl3.bench.restart import Plan, Restarted, batch, lost_by_name, middle, prefix, prefix6
from dl3.control.replies import Drops


def _drops(received: int, **verdicts: int) -> Drops:
    rows = [{"name": name, "packets": n, "step": "", "text": ""} for name, n in verdicts.items()]
    sums = {"received": received, "injected": 0, "copied": 0, "sent": 0, "punted": 0, "dropped": 0, "in_flight": 0}
    wire = {"rx_missed": 0, "rx_no_mbuf": 0, "rx_errors": 0, "starved_loops": 0}
    return Drops.model_validate({**sums, "verdicts": rows, "wire": wire})


def what_is_lost_has_a_name() -> None:
    drops = _drops(700, forward=600, punt_over_limit=30, no_route=0)
    assert lost_by_name(1000, 660, drops) == {"not received by dl3d": 300, "punt_over_limit": 30, "by Linux": 10}
    assert lost_by_name(1000, 950, _drops(1010, forward=950, mac_not_ours=60)) == {"not received by dl3d": 50}
    assert lost_by_name(1000, 1000, _drops(1003, forward=1000)) == {}


def a_million_routes_are_different_ones() -> None:
    for make, number in ((prefix, 8_000_000), (prefix6, 100_000)):
        some = [make(n) for n in range(0, number, 997)]
        assert len(set(some)) == len(some)
        nets = [ipaddress.ip_network(one) for one in some]  # host bits are clear
        assert not any(net.is_loopback or net.is_multicast for net in nets)


def the_batch_has_each_route_once() -> None:
    lines = list(batch(Plan(routes4=300, routes6=20)))
    assert sum(line.startswith("route add") for line in lines) == len(set(lines)) - 6 == 320


def the_middle_one_has_the_median_time() -> None:
    found = [
        Restarted(routes4=1, routes6=1, ready_s=s, dump_s=0.0, sent=1, received=1, lost={}) for s in (3.0, 1.0, 2.0)
    ]
    assert middle(found).ready_s == 2.0
    assert middle(found[:2]).ready_s == 1.0
