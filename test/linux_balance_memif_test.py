"""Four next hops and 100,000 flows from dl3gen: each member's share follows its weight, and no flow ever moves.

Members are identified by the counters of their next hops. Each flow sends N_EACH packets in a run, so a member's count
is a multiple of that unless a flow changed on the way.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
from harness.shell import batch
from harness.taps import Site, link_address, sent, settle, tap_lab
from harness.wired import BUILD

from dl3.control.replies import NextHops
from dl3.lab.links import CATCH_UP, DUT_MACS
from dl3.lab.memif import MemifLab
from dl3.lab.namespace import Lab, Namespace
from dl3.model.stream import Stream

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

IS_SANITIZED = BUILD.name != "build"
N_FLOWS, N_EACH = 100_000, 5
PPS = 100_000 if IS_SANITIZED else 1_000_000
TOLERANCE = 0.02  # of a member's nominal share
TRIES = 8  # to find a run in which the ring has room for each frame, halving the rate each time
SLOWEST_PPS = 50_000
NUMBERS = range(10, 14)
BALANCED = {4: "198.19.0.0/17", 6: "2001:2:0:2::/65"}
FIRST = {4: "198.19.0.1", 6: "2001:2:0:2::1"}
WEIGHTS = {"even": (1, 1, 1, 1), "1-2-3-10": (1, 2, 3, 10), "5-1-7-3": (5, 1, 7, 3)}
OTHERS = {4: "203.0.{}.0/24", 6: "2001:db8:cafe:{}::/64"}


class Pair:
    """dl3d between the ends of dl3gen, and the namespace for its routes."""

    def __init__(self, lab: MemifLab, taps: Namespace) -> None:
        assert lab.dut
        self.lab, self.taps, self.dut = lab, taps, lab.dut

    def counts(self, family: int) -> list[int]:
        """The packets of each member so far."""
        reported = self.dut.ask(NextHops, "nexthops", limit=10_000).nexthops
        return [sum(each.packets for each in reported if each.via == link_address(family, 1, n)) for n in NUMBERS]

    def spread(self, stream: Stream) -> list[int]:
        """Each flow's packets sent once without loss; returns how many took each member."""
        family = 6 if stream.name == "v6" else 4
        for number in range(TRIES):
            before = self.counts(family)
            slower = stream.model_copy(update={"rate": float(max(PPS >> number, SLOWEST_PPS))})
            results, passage = sent(self.lab, [slower], 60.0)
            (reported,) = results.streams
            assert set(passage.lost) <= {"tx_refused"}, passage.lost
            counted = [now - then for now, then in zip(self.counts(family), before, strict=True)]
            assert sum(counted) == reported.sent - reported.refused
            if reported.sent == N_FLOWS * N_EACH and not reported.refused:
                return counted
        raise AssertionError(f"in {TRIES} runs the ring was full for some frames: {reported}")


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Lab() as lab:
        site = Site.made(lab)
        with tap_lab(site) as memif:
            for family in (4, 6):
                batch(
                    site.taps,
                    (
                        f"neighbour replace {link_address(family, 1, n)} lladdr 02:00:00:00:01:{n} dev right"
                        for n in NUMBERS
                    ),
                )
            yield Pair(memif, site.taps)


def _flows(family: int) -> Stream:
    whole = {"name": f"v{family}", "from": "left", "to": "right", "dst_mac": DUT_MACS[0], "catch_up": CATCH_UP}
    whole |= {"dst_ip": {"first": FIRST[family], "count": 1000}, "src_port": {"first": 1024, "count": 100}}
    whole |= {"flows": N_FLOWS, "frames": N_FLOWS * N_EACH, "rate": PPS}
    return Stream.model_validate(whole)


def _by_nexthops(pair: Pair, family: int, weights: Sequence[int]) -> None:
    ways = zip(NUMBERS, weights, strict=True)
    hops = (f"nexthop via {link_address(family, 1, n)} dev right weight {weight}" for n, weight in ways)
    pair.taps.ip(*f"route replace {BALANCED[family]} {' '.join(hops)}".split())


def _by_group(pair: Pair, family: int, weights: Sequence[int]) -> None:
    members = "/".join(f"{100 * family + n},{weight}" for n, weight in zip(NUMBERS, weights, strict=True))
    hops = [f"nexthop replace id {100 * family + n} via {link_address(family, 1, n)} dev right" for n in NUMBERS]
    group = f"nexthop replace id {family} group {members}"
    batch(pair.taps, [*hops, group, f"route replace {BALANCED[family]} nhid {family}"])


WAYS = {"nexthops": _by_nexthops, "group": _by_group}


def _disturb(pair: Pair, family: int) -> None:
    """Unrelated routes and a group with the same next hops; some are removed again."""
    hop = f"via {link_address(family, 1, NUMBERS[0])} dev right"
    pair_of = " ".join(f"nexthop via {link_address(family, 1, n)} dev right weight 9" for n in NUMBERS[:2])
    batch(pair.taps, [f"route replace {OTHERS[family].format(i)} {hop if i % 2 else pair_of}" for i in range(200)])
    batch(pair.taps, [f"route delete {OTHERS[family].format(i)}" for i in range(0, 200, 3)])
    settle(pair.dut)


# Each two values of different parameters together once; all are long.
SHORT = (("nexthops", "even", 4), ("nexthops", "1-2-3-10", 6), ("group", "even", 6), ("group", "1-2-3-10", 4))
CASES = [
    pytest.param(
        WAYS[way],
        WEIGHTS[name],
        family,
        marks=() if (way, name, family) in SHORT else pytest.mark.long,
        id=f"{way}-{name}-v{family}",
    )
    for way, name, family in itertools.product(WAYS, WEIGHTS, (4, 6))
]


@pytest.mark.parametrize(("reported", "weights", "family"), CASES)
def each_member_has_its_share_and_no_flow_changes(
    pair: Pair,
    reported: Callable[[Pair, int, Sequence[int]], None],
    weights: Sequence[int],
    family: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reported(pair, family, weights)
    settle(pair.dut)
    counted = pair.spread(_flows(family))
    assert [n % N_EACH for n in counted] == [0] * len(weights), f"a flow had two members: {counted}"
    _disturb(pair, family)
    assert pair.spread(_flows(family)) == counted
    expected = [N_FLOWS * N_EACH * weight / sum(weights) for weight in weights]
    off = [n / share - 1 for n, share in zip(counted, expected, strict=True)]
    with capsys.disabled():
        print(f"\n  IPv{family}, {weights}: off by {', '.join(f'{share:+.2%}' for share in off)}", end="")
    assert all(abs(share) < TOLERANCE for share in off), counted
