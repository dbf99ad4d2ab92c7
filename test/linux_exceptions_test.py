"""Floods of packets for Linux, while BGP, OSPF, OSPFv3, BFD and other traffic run over the same dl3d.

Rates are printed, not checked. Checked: no session flaps; dl3d only drops packets of the flood for which their class
has no room, and any other missing packet was never received or arrived while the sink was paused.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from harness.frames import ARP, Ether
from harness.routing import Routing
from harness.scheduling import Pulse
from harness.taps import Site, link_address, sent, tap_lab
from harness.wire import Wire, wait_until
from harness.wired import BUILD

from dl3.control.generator import StreamResult
from dl3.control.linux import PuntClass, Taps
from dl3.lab.links import CATCH_UP, DUT_MACS
from dl3.lab.memif import MemifLab
from dl3.lab.namespace import End, Lab
from dl3.model.stream import Stream
from dl3.trial.passage import TX_REFUSED, Passage

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

IS_SANITIZED = BUILD.name != "build"
FLOOD_PPS = 100_000 if IS_SANITIZED else 1_000_000
OTHER_PPS = 20_000 if IS_SANITIZED else 100_000
SESSIONS_S = 60.0
TRIES = 5
STARVED_S = 0.25  # about one BFD interval
OVERFLOW = {"punt_over_limit", "punt_ring_full"}
AT_ONCE = 48
CABLES = ("p0", "p1", "p2")


@pytest.fixture
def seconds(is_long: bool) -> float:
    """The duration of a flood."""
    return 15.0 if is_long else 1.5


@dataclass(frozen=True)
class Flood:
    """A stream that Linux has to handle, and its class."""

    punt_class: str
    keys: Mapping[str, object] = field(default_factory=dict)

    def stream(self) -> Stream:
        """In dl3gen's format."""
        return stream(f"flood-{self.punt_class}", FLOOD_PPS, dict(self.keys))


FLOODS = (
    Flood("ttl", {"ttl": 1}),
    Flood("unresolved", {"dst_ip": {"first": link_address(4, 1, 100), "count": 100}}),
)
OTHER_FLOODS = (
    Flood("host", {"dst_ip": link_address(4, 0, 1)}),
    Flood("unreachable", {"dst_ip": "203.0.113.1"}),
)
IDS = [flood.punt_class for flood in (*FLOODS, *OTHER_FLOODS)]


def stream(name: str, pps: int, keys: Mapping[str, object]) -> Stream:
    """From left to right, to the networks behind it unless `keys` override it."""
    whole = {"name": name, "from": "left", "to": "right", "dst_mac": DUT_MACS[0], "catch_up": CATCH_UP, "rate": pps}
    whole |= {"src_port": {"first": 1024, "count": 1000}}
    return Stream.model_validate(whole | dict(keys))


@dataclass(frozen=True)
class Town:
    """Everything that runs."""

    lab: MemifLab
    routing: Routing
    stranger: Wire  # on cable p2


@dataclass(frozen=True)
class Trial:
    """The outcome of a flood: dl3d's accounting, and the streams by dl3gen, the first one being the other traffic."""

    passage: Passage
    streams: Sequence[StreamResult]
    n_late_polls: int

    def __str__(self) -> str:
        other = self.streams[0]
        floods = "".join(f"{each.offered_pps:,.0f}/s; " for each in self.streams[1:])
        return f"{floods}of {other.sent:,} others {other.lost:,} lost, {other.refused:,} of them at the ring"


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with Lab() as lab:
        site = Site.made(lab)
        far = End(lab.namespace("stranger", silent=True), "eth0", "02:00:00:01:02:02")
        lab.cable(site.end(2), far)
        with Routing(lab, site) as routing, tap_lab(site, CABLES) as memif:
            assert memif.dut
            site.taps.ip("address", "add", "10.0.2.1/24", "dev", "p2")
            routing.start()
            wait_until(routing.are_up, "all sessions were up", SESSIONS_S)
            stranger = Wire(far)
            yield Town(memif, routing, stranger)
            stranger.close()


def _classes(town: Town) -> dict[str, PuntClass]:
    assert town.lab.dut
    return {each.name: each for each in town.lab.dut.ask(Taps, "taps").classes}


def _check_class(before: PuntClass, after: PuntClass) -> str:
    """Linux got some of the flood; the rest is counted as over the limit or as ring full."""
    punted = after.punted - before.punted
    left_out = after.over_limit + after.ring_full - before.over_limit - before.ring_full
    assert punted > 0
    assert left_out > 0 or before.rate_pps >= FLOOD_PPS, "that was no flood"
    return f"{punted:,} to Linux, {left_out:,} over the limit"


def _check_sessions(town: Town, before: Mapping[str, PuntClass]) -> None:
    """None of their packets was dropped."""
    after = _classes(town)["routing"]
    for way in ("over_limit", "refused", "ring_full"):
        assert getattr(after, way) == getattr(before["routing"], way), way


def _check_other(trial: Trial) -> None:
    """Losses are what the ring refused, and what arrived while the sink was paused."""
    other, lost = trial.streams[0], trial.passage.lost
    assert trial.passage.missing == 0
    assert set(lost) <= OVERFLOW | {TX_REFUSED}, lost
    if taken_and_lost := other.lost - other.refused:
        assert 0 < taken_and_lost <= lost.get(TX_REFUSED, 0), lost
        assert trial.n_late_polls, "refused, though the sink was awake"
    assert (other.duplicated, other.corrupted, other.reordered) == (0, 0, 0)


def _send(town: Town, seconds: float, *streams: Stream) -> Trial:
    results, passage = sent(town.lab, streams, seconds)
    return Trial(passage, results.streams, sum(port.late_polls for port in results.ports))


def _judge(town: Town, punt_class: str, send: Callable[[], Trial]) -> str:
    """All claims; repeated if sessions went down because nothing on the machine was scheduled."""
    for _ in range(TRIES):
        wait_until(town.routing.are_up, "all sessions were up", SESSIONS_S)
        sessions, classes = town.routing.sessions(), _classes(town)
        with Pulse() as pulse:
            trial = send()
            time.sleep(1.0)  # a session that starved is reported by then
        _check_other(trial)
        _check_sessions(town, classes)
        words = _check_class(classes[punt_class], _classes(town)[punt_class])
        if not (flapped := town.routing.flapped(sessions)):
            return f"{words}; {trial}"
        assert pulse.longest_s > STARVED_S, f"{flapped} flapped"
    raise AssertionError(f"in {TRIES} trials others took the processor for {STARVED_S} s and more")


def _print(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with capsys.disabled():
        print(f"\n  {words}", end="")


@pytest.mark.timing
@pytest.mark.parametrize(
    "flood", [*FLOODS, *(pytest.param(flood, marks=pytest.mark.long) for flood in OTHER_FLOODS)], ids=IDS
)
def no_session_flaps_and_no_other_packet_is_lost_in_a_flood(
    town: Town, flood: Flood, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = (stream("other", OTHER_PPS, {}), flood.stream())
    words = _judge(town, flood.punt_class, lambda: _send(town, seconds, *streams))
    _print(capsys, f"flood of class {flood.punt_class}: {words}")


def _shout(wire: Wire, is_over: threading.Event) -> None:
    """Some ten thousand requests per second for the router's address: daemons need this core too."""
    question = ARP(psrc="10.0.2.2", pdst="10.0.2.1", hwsrc=wire.end.mac)
    frame = bytes(Ether(src=wire.end.mac, dst="ff:ff:ff:ff:ff:ff") / question)
    while not is_over.wait(0.001):
        for _ in range(AT_ONCE):
            wire.send(frame)


def _send_beside_shouting(town: Town, seconds: float) -> Trial:
    is_over = threading.Event()
    shouting = threading.Thread(target=_shout, args=(town.stranger, is_over))
    shouting.start()
    try:
        return _send(town, seconds, stream("other", OTHER_PPS, {}))
    finally:
        is_over.set()
        shouting.join()


@pytest.mark.timing
def no_session_flaps_and_no_packet_is_lost_in_a_flood_of_arp(
    town: Town, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    words = _judge(town, "neighbour", lambda: _send_beside_shouting(town, seconds))
    _print(capsys, f"flood of ARP: {words}")
