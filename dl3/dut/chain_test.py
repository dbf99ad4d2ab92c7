"""Two dl3d in a row as one device."""

import pytest

from dl3.control.generator import Pauses
from dl3.control.replies import Drops, Ports, Workers
from dl3.dut.chain import drops_of, pauses_of, summed, workers_of

BETWEEN = "underlay"


def _drops(received: int, sent: int, **dropped: int) -> Drops:
    verdicts = [{"name": name, "packets": n, "step": "check", "text": ""} for name, n in dropped.items()]
    sums = {"received": received, "injected": 0, "sent": sent, "punted": 0, "dropped": sum(dropped.values())}
    wire = {"rx_missed": None, "rx_no_mbuf": 1, "rx_errors": 0, "starved_loops": 2}
    return Drops.model_validate({**sums, "in_flight": 0, "verdicts": verdicts, "wire": wire})


def _ports(rx: int, tx: int) -> Ports:
    """Of the port between them; the other one's do not matter."""
    common = {"device": "", "mac": "", "mtu": 1500, "link_up": True, "rx_queues": 1, "rx_bytes": 0, "tx_bytes": 0}
    none = {"rx_missed": None, "rx_no_mbuf": None, "rx_errors": None, "tx_errors": None}
    vm = {**common, **none, "port": 0, "name": "vm", "rx_packets": 1000, "tx_packets": 1000}
    inside = {**common, **none, "port": 1, "name": BETWEEN, "rx_packets": rx, "tx_packets": tx}
    return Ports.model_validate({"ports": [vm, inside]})


def packets_between_them_are_neither_received_nor_sent() -> None:
    """100 from the first VM, of which 10 are dropped on the way; 50 from the second one."""
    first = _drops(100 + 50, 96 + 50, tx_refused=4)
    second = _drops(50 + 94, 50 + 90, mpls_unknown=4)
    whole = drops_of([first, second], [_ports(50, 96), _ports(94, 50)], BETWEEN)
    assert (whole.received, whole.sent, whole.dropped) == (150, 140, 10)
    named = {one.name: one.packets for one in whole.verdicts}
    assert named == {"tx_refused": 4, "mpls_unknown": 4, BETWEEN: 2}
    assert whole.received + whole.injected + whole.copied == whole.sent + whole.punted + sum(named.values())
    assert (whole.wire.rx_missed, whole.wire.rx_no_mbuf, whole.wire.starved_loops) == (None, 2, 4)


def what_is_on_its_way_between_them_is_in_flight() -> None:
    whole = drops_of([_drops(9, 9), _drops(7, 7)], [_ports(0, 9), _ports(7, 0)], BETWEEN)
    assert whole.in_flight == 2


def their_workers_and_pauses_are_numbered_on() -> None:
    worker = {"worker": 0, "core": 1, "numa": 0, "queues": [], "counters": {}, "empty_share": 0, "verdicts": {}}
    one = Workers.model_validate({"workers": [{**worker, "poll_gap": None, "cycles_per_packet": None}], "tsc_hz": 1e9})
    assert [each.worker for each in workers_of([one, one]).workers] == [0, 1]
    pauses = [
        Pauses.model_validate({"gaps": [{"worker": 0, "core": 1, "at_ns": at, "us": 3}], "forgotten": 1, "now_ns": 90})
        for at in (20, 10)
    ]
    whole = pauses_of(pauses, (1, 1))
    assert [(gap.worker, gap.at_ns) for gap in whole.gaps] == [(1, 10), (0, 20)]
    assert (whole.forgotten, whole.now_ns) == (2, 90)


@pytest.mark.parametrize(("values", "wanted"), [([1, 2], 3), ([1, None], None), ([], 0)])
def a_sum_of_what_is_not_known_is_not_known(values: list[int | None], wanted: int | None) -> None:
    assert summed(values) == wanted
