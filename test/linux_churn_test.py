"""Ten thousand changes a second in Linux, and overruns: watched prefixes never change, no packet is lost or misrouted.

Checked in pairs with a control without changes. Missing packets were never received, or arrived while dl3gen's sink
was paused; the rest came out at right with the watched next hop's MAC address. Rates are printed, not checked.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness.kernel_churn import FAMILIES, MEMBERS, N_WATCHED, KernelChurn, circle, preparation
from harness.netlink_buffers import small_receive_buffer
from harness.shell import batch
from harness.stall import stalled
from harness.taps import Site, Traffic, link_address, settle, tap_lab
from harness.wire import wait_until
from harness.wired import BUILD

from dl3.control.generator import Pauses
from dl3.control.linux import Mirror
from dl3.control.replies import NextHops
from dl3.lab.links import CATCH_UP, DUT_MACS
from dl3.lab.memif import MemifLab
from dl3.lab.namespace import Lab, Namespace
from dl3.model.stream import Stream
from dl3.trial.passage import TX_REFUSED

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

IS_SANITIZED = BUILD.name != "build"
N_PAIRS = 2
PPS = 2_000 if IS_SANITIZED else 10_000  # of each stream
CHANGES_PER_SECOND = 10_000
N_OVERRUNS = 20
N_STEPS = 5  # this many cover the cycle of changes once
PATIENCE_S = 30.0
SHORT_PAUSE_US = 50


@dataclass(frozen=True)
class Pair:
    """dl3d between the ends of dl3gen, and the namespace for its routes."""

    lab: MemifLab
    taps: Namespace

    def mirror(self) -> Mirror:
        """The reply of its method `mirror`."""
        assert self.lab.dut
        return self.lab.dut.ask(Mirror, "mirror")

    def counts(self) -> tuple[int, int]:
        """The packets of the watched next hops, and of all members of the changing groups."""
        assert self.lab.dut
        reported = self.lab.dut.ask(NextHops, "nexthops", limit=10_000).nexthops
        watched = [link_address(family, 1) for family in FAMILIES]
        members = [link_address(family, 1, n) for family in FAMILIES for n in MEMBERS]
        found = [sum(each.packets for each in reported if each.via in vias) for vias in (watched, members)]
        return found[0], found[1]


def _stream(name: str, first: str, count: int) -> Stream:
    whole = {"name": name, "from": "left", "to": "right", "dst_mac": DUT_MACS[0], "catch_up": CATCH_UP}
    whole |= {"dst_ip": {"first": first, "count": count}, "src_port": {"first": 1024, "count": 16}, "rate": PPS}
    return Stream.model_validate(whole)


WATCHED = (
    *(_stream(f"watched{n}", f"198.19.{n}.64", 16) for n in range(N_WATCHED)),
    _stream("watched-v6", "2001:2:0:2::1:0", 256 * N_WATCHED),
)
MOVING = (_stream("moving", "198.19.200.1", 200), _stream("moving-v6", "2001:2:0:2::2:1", 200))


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Lab() as lab:
        site = Site.made(lab)
        with tap_lab(site) as memif:
            assert memif.dut
            batch(site.taps, preparation())
            settle(memif.dut)
            yield Pair(memif, site.taps)


def _judge(pair: Pair, traffic: Traffic, before: tuple[int, int]) -> str:
    """Each packet received left by its next hop, and arrived unless the sink was paused."""
    lost, streams = traffic.passage.lost, traffic.results.streams
    assert traffic.passage.missing == 0
    assert set(lost) <= {TX_REFUSED}, lost
    assert not any(port.misdirected for port in traffic.results.ports)
    taken = {each.name: each.sent - each.refused for each in streams}
    moving = sum(taken[each.name] for each in MOVING if each.name)
    watched, members = (now - then for now, then in zip(pair.counts(), before, strict=True))
    assert (watched, members) == (sum(taken.values()) - moving, moving)
    missing = sum(each.lost - each.refused for each in streams)
    assert 0 <= missing <= lost.get(TX_REFUSED, 0)
    # After its own pause dl3d sends the backlog at once: less than a late poll of the sink is enough.
    paused = pair.lab.generator.ask(Pauses, "gaps", min_us=SHORT_PAUSE_US).gaps
    assert not missing or paused, "refused, though the sink was awake"
    assert not any(each.corrupted or each.duplicated for each in streams)
    return (
        f"{sum(taken.values()):,} packets, {missing} of them refused, {sum(each.refused for each in streams)} not taken"
    )


def _settle(pair: Pair) -> None:
    assert pair.lab.dut
    wait_until(lambda: pair.mirror().state == "following", "the mirror followed", PATIENCE_S)
    settle(pair.lab.dut)


def churn_costs_no_packet(pair: Pair, is_long: bool, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = 30.0 if is_long else 1.5
    for _ in range(N_PAIRS):
        before = pair.counts()
        with Traffic(pair.lab, (*WATCHED, *MOVING)) as quiet:
            time.sleep(seconds)
        quiet_words = _judge(pair, quiet, before)
        before = pair.counts()
        with Traffic(pair.lab, (*WATCHED, *MOVING)) as busy, KernelChurn(pair.taps, CHANGES_PER_SECOND) as churn:
            time.sleep(seconds)
        busy_words = _judge(pair, busy, before)
        _settle(pair)
        with capsys.disabled():
            print(f"\n  quiet: {quiet_words}\n  {churn.per_second:,.0f} changes/s: {busy_words}", end="")
    assert pair.mirror().drifted == 0


def _overrun(pair: Pair, number: int) -> None:
    """The control thread is stopped while more changes arrive than the socket holds; then it resynchronises."""
    lines, step = circle(), number % N_STEPS
    some = lines[step * len(lines) // N_STEPS : (step + 1) * len(lines) // N_STEPS]
    pid, before = pair.lab.dut_process.process.pid, pair.mirror().overruns
    with small_receive_buffer(pid), stalled(pid):
        batch(pair.taps, some)
    wait_until(lambda: pair.mirror().overruns > before, "it was overrun", PATIENCE_S)
    _settle(pair)


def overruns_cost_no_packet(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    before, first = pair.counts(), pair.mirror()
    with Traffic(pair.lab, (*WATCHED, *MOVING)) as traffic:
        for number in range(N_OVERRUNS):
            _overrun(pair, number)
    words = _judge(pair, traffic, before)
    last = pair.mirror()
    with capsys.disabled():
        print(f"\n  {last.overruns - first.overruns} overruns, {last.dumps - first.dumps} dumps: {words}", end="")
    assert last.overruns - first.overruns >= N_OVERRUNS
