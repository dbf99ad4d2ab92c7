"""Five injected causes of loss: each is named, with the exact number of packets if the accounting provides it."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.answers import CORES, DL3GEN
from harness.busy import busy
from harness.plugins import plugin
from harness.wire import wait_until
from harness.wired import BUILD, DL3D

from dl3.control.generator import Results
from dl3.control.replies import Ports, Reply
from dl3.dut.dl3d import Dl3d
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.lab.process import Process
from dl3.lab.single import START_SECONDS, start_process
from dl3.model.evidence import Gap, Loss
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.report.explain import explain
from dl3.report.texts import words_in
from dl3.report.words import Language
from dl3.trial.account import RING_FULL, total
from dl3.trial.order import Order, Site
from dl3.trial.passage import NO_MBUF, TX_REFUSED
from dl3.trial.run import Act, Runner

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

RING_BITS = 11
RING = 1 << RING_BITS
SECONDS = 0.4
CALM_PPS = 20_000.0  # the ring holds 100 ms of this rate: pauses of a shared machine lose nothing
# And 4 ms of this rate, less than this many busy threads take in turn, some 3 ms each; an instrumented
# worker forwards some 350 kpps.
EAGER_PPS, N_BUSY = (500_000.0, 4) if BUILD.name == "build" else (250_000.0, 6)
ATTEMPTS = 10  # at taking the core away: the worker may keep it for a whole trial
BESIDE_NS = 1_000_000  # tolerance between a loss and a pause: frames may be sent this long after they were due
DEAF_PREFIX = "198.19.128"  # its lower half leads to the generator


@dataclass(frozen=True)
class Trapped(Dl3d):
    """dl3d with a third port, and with buffers that can be exhausted."""

    def file(self, endpoint: Endpoint) -> dict[str, Any]:
        """The usual configuration plus the routes into the traps."""
        whole = super().file(endpoint)
        keys = {"device": _silent_device(endpoint, "server"), "mac": "02:00:00:00:00:09", "addresses": ["10.0.9.1/24"]}
        whole["ports"].append({"name": "deaf", **keys})
        whole["routes"].append(f"{DEAF_PREFIX}.0/24 via 10.0.9.2 dev deaf")
        whole["neighbours"].append("10.0.9.2 lladdr 02:00:00:00:00:99 dev deaf")
        return whole | {"eal": {"plugins": [plugin("mbuf_drain")]}}


def _silent_device(endpoint: Endpoint, role: str) -> str:
    """One end of the third link."""
    number = 2 if role == "server" else 0
    return (
        f"net_memif{number},role={role},id=0,socket={endpoint.links.folder}/deaf,socket-abstract=no,rsize={RING_BITS}"
    )


def _start_silent_peer(endpoint: Endpoint) -> Process:
    """The peer of the third link; once frozen, it accepts no frames."""
    file = endpoint.links.folder / "deaf.yaml"
    whole = {
        "ports": [{"name": "deaf", "device": _silent_device(endpoint, "client"), "mac": "02:00:00:00:00:99"}],
        "workers": [{"core": CORES[0]}],
        "memory": {"hugepages": "never"},
        "control": {"socket": str(endpoint.links.folder / "deaf.sock")},
    }
    file.write_text(yaml.safe_dump(whole))
    return start_process("deaf", (str(DL3GEN), str(file)), endpoint.links.folder)


def _is_up(lab: MemifLab) -> bool:
    assert lab.dut is not None
    return all(port.link_up for port in lab.dut.ask(Ports, "ports").ports)


@pytest.fixture(scope="module")
def lab() -> Iterator[MemifLab]:
    """With a frozen peer on the third link, until dl3d has stopped."""
    assert len(CORES) > 1, "dl3gen and dl3d want a core each"
    terms = MemifSettings(
        Trapped(DL3D), build=BUILD, generator_core=CORES[0], dut_cores=(CORES[-1],), ring_bits=RING_BITS
    )
    with contextlib.ExitStack() as ends:
        peers: list[Process] = []
        ends.callback(lambda: [peer.kill() for peer in peers])
        made = ends.enter_context(memif_lab(terms))
        peers.append(_start_silent_peer(made.endpoint))
        peers[0].wait_until(lambda: _is_up(made), "had its link up", START_SECONDS)
        peers[0].freeze()
        yield made


def _trial(
    lab: MemifLab, pps: float = CALM_PPS, dst: str = "198.19.0.1", act: Act | None = None, seconds: float = SECONDS
) -> Trial:
    """After its own pause the generator sends no burst larger than the ring."""
    text = streams(Flows())[0] | {"dst_ip": dst, "catch_up": 64}
    order = Order((Stream.model_validate(text),), "64", pps, seconds, warm_up_s=0.0)
    made = Runner(Site(lab.generator, lab.dut)).run(order, act)
    assert not any(reason.startswith("accounting") for reason in made.invalid), made.invalid
    assert made.account.lost == sum(made.account.lost_by_place.values())
    if made.timeline:
        assert sum(made.timeline.sent) == made.account.sent
        assert sum(made.timeline.received) == made.account.received
    return made


def _explanation(made: Trial) -> str:
    """The explanation given by 'dl3 explain' and the report."""
    return "\n".join(explain(made, words_in(Language.EN)))


def _results(lab: MemifLab) -> Results:
    return lab.generator.ask(Results, "results")


@pytest.mark.timing  # while a program waits for its core, a ring may overflow
def a_route_that_is_missing_is_named_to_the_packet(lab: MemifLab) -> None:
    made = _trial(lab, dst="192.0.2.1")
    assert made.account.lost_by_place == {"no_route": made.account.sent}
    lost = f"{made.account.sent:,} packets, 100.0% of those lost: no route to the destination (no_route)"
    assert f"{lost}: run 'dl3 show route ADDRESS' for a destination of the streams" in _explanation(made)


@pytest.mark.timing  # while a program waits for its core, a ring may overflow
def a_ring_that_its_peer_does_not_empty_is_named_to_the_packet(lab: MemifLab) -> None:
    made = _trial(lab, pps=2 * CALM_PPS, dst=f"{DEAF_PREFIX}.1")
    account = made.account
    held = account.lost_by_place.pop("wire from the dut", 0)
    assert held <= RING
    assert account.lost_by_place == {"tx_refused": account.sent - held}
    assert f"{account.sent - held:,} packets, " in _explanation(made)
    assert "of those lost: refused by the device's transmit port" in _explanation(made)
    assert account.sent > RING


@dataclass
class MbufDrain:
    """During a trial, takes all buffers until the ring is full and the same number of frames is refused."""

    lab: MemifLab
    start_ns: int = 0
    end_ns: int = 0

    @property
    def _file(self) -> Path:
        return self.lab.endpoint.links.folder / "mbuf_drain"

    def _n_free(self) -> int:
        assert self.lab.dut is not None
        memory = self.lab.dut.ask(Reply, "status").model_dump()["memory"]
        return int(memory["mbufs_free"])

    def _has_cost(self) -> bool:
        """Or until the trial is over."""
        reported = _results(self.lab)
        return total(reported.streams, "refused") > RING or reported.state != "sending"

    def __call__(self) -> None:
        """Until workers find no buffers and frames have been lost."""
        self.start_ns = time.monotonic_ns()
        self._file.touch()
        wait_until(lambda: self._n_free() == 0, "no buffer was free")
        wait_until(self._has_cost, "frames were refused")
        self._file.unlink()
        wait_until(lambda: self._n_free() > 0, "buffers were free again")
        self.end_ns = time.monotonic_ns()


@pytest.mark.timing  # while a program waits for its core, a ring may overflow
def a_pool_that_is_exhausted_is_named_to_the_packet_and_the_time(lab: MemifLab) -> None:
    mbuf_drain = MbufDrain(lab)
    made = _trial(lab, pps=2 * CALM_PPS, act=mbuf_drain, seconds=4 * SECONDS)
    refused = total(_results(lab).streams, "refused")
    places = dict(made.account.lost_by_place)
    places.pop(TX_REFUSED, 0)  # drained at once afterwards, perhaps too fast for dl3gen
    assert places == {NO_MBUF: refused}
    assert f"{refused:,} packets, " in _explanation(made)
    assert "of those lost: device out of buffers (rx_no_mbuf): give dl3d more buffers" in _explanation(made)
    assert sum(made.account.lost_by_place.values()) == made.account.lost
    assert refused > RING / 2
    assert made.timeline is not None
    assert made.evidence is not None
    for loss in made.timeline.losses:  # or a worker paused for longer than the ring lasts
        is_timely = mbuf_drain.start_ns < loss.at_ns < mbuf_drain.end_ns + BESIDE_NS
        assert is_timely or any(_is_beside(loss, gap) for gap in made.evidence.gaps)


def _is_beside(loss: Loss, gap: Gap) -> bool:
    """Whether lost frames were due during a pause of a worker, or just before it."""
    begin_ns, paused_ns = loss.at_ns - loss.us * 1e3, gap.at_ns - gap.us * 1e3
    return begin_ns < gap.at_ns and loss.at_ns > paused_ns - BESIDE_NS


@pytest.mark.timing
def a_core_that_is_taken_away_is_named_with_the_pauses_beside_the_loss(lab: MemifLab) -> None:
    with contextlib.ExitStack() as thieves:
        for _ in range(N_BUSY):
            thieves.enter_context(busy(CORES[-1]))
        for _ in range(ATTEMPTS):
            made = _trial(lab, pps=EAGER_PPS)
            if made.account.lost > RING and not made.invalid:
                break  # otherwise another process used the generator's core as well
    refused = total(_results(lab).streams, "refused")
    assert made.account.lost_by_place[RING_FULL] == refused > RING
    assert made.timeline is not None
    assert made.evidence is not None
    assert f"{refused:,} packets, " in _explanation(made)
    assert f"dl3d's worker 0 on core {CORES[-1]} did not poll" in _explanation(made)
    assert f"a ring of {RING:,} descriptors fills in" in _explanation(made)
    pauses = [gap for gap in made.evidence.gaps if gap.program == "dl3d"]
    assert all((gap.worker, gap.core) == (0, CORES[-1]) for gap in pauses)
    assert max(gap.us for gap in pauses) > RING / EAGER_PPS * 1e6
    beside = sum(loss.frames for loss in made.timeline.losses if any(_is_beside(loss, gap) for gap in pauses))
    assert beside >= 0.99 * made.account.lost


@pytest.mark.timing
def a_generator_without_its_core_is_nobodys_loss(lab: MemifLab) -> None:
    with busy(CORES[0]):
        for _ in range(ATTEMPTS):
            made = _trial(lab, pps=EAGER_PPS)
            if made.account.late > 0.001 * made.account.sent:
                break
    assert any(reason.startswith("late: ") for reason in made.invalid), made.invalid
    assert made.is_behind
    assert made.evidence is not None
    assert "This trial is INVALID and says nothing about the device; generator late: " in _explanation(made)
    assert f"dl3gen's worker 0 on core {CORES[0]} stalled" in _explanation(made), made.evidence.missing
    assert "; the generator could not maintain its rate" in _explanation(made)
    own = [gap.us for gap in made.evidence.gaps if gap.program == "dl3gen"]
    assert max(own) > 64 / EAGER_PPS * 1e6
