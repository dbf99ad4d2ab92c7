"""One queue and one outer 5-tuple, four workers behind it: their shares of 10,000 inner flows, and the order within
each flow, also while slots move.

Shares and order do not depend on speed, so the five workers take turns on the cores that there are.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.answers import CORES, DL3GEN, PATIENCE_S, at_rest
from harness.plugins import plugin
from harness.wire import wait_until
from harness.wired import DL3D, Account, Port, config_text, host_mac, port_mac, settled
from typer.testing import CliRunner

from dl3.cli.main import app
from dl3.control.generator import Results
from dl3.control.replies import Ports, WorkerHand, Workers
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator

N_HANDS, N_SLOTS, N_MOVES = 4, 256, 40
N_EACH, SHARE, WITHIN = 10_000, 0.25, 0.05
HERE, FAR, BEYOND = "192.0.2.1", "192.0.2.9", "198.51.100.9"  # an end of tunnels, the other one, and one behind us
PORTS = [
    Port("left", keys={"addresses": [f"{HERE}/24"], "mac": port_mac(0)}),
    Port("right", keys={"addresses": ["10.0.2.1/24"], "mac": port_mac(1)}),
]
ROUTES = [
    "10.1.0.0/16 via 10.0.2.2 dev right",
    "198.51.100.0/24 via 10.0.2.2 dev right",
    f"10.200.0.0/16 encap mpls-udp label 999 remote {FAR}",
    f"10.201.0.0/16 encap gre remote {FAR}",
    *(f"mpls {label} pop" for label in range(100, 104)),
]
NEIGHBOURS = [f"{FAR} lladdr {host_mac(0)} dev left", f"10.0.2.2 lladdr {host_mac(1)} dev right"]
# The first two end here, the third one passes.
TUNNELS: dict[str, dict[str, Any]] = {
    "mpls-udp": {"labels": [100, 101, 102, 103], "src_ip": FAR, "dst_ip": HERE, "src_port": 50000},
    "gre": {"src_ip": FAR, "dst_ip": HERE},
    "vxlan": {"vni": 5, "src_ip": FAR, "dst_ip": BEYOND, "src_port": 50000},
}


def _link(folder: Path, role: str, index: int) -> str:
    return f"net_memif{index},role={role},id={index},rsize=12,socket={folder}/link{index},socket-abstract=no"


def _forwarder(folder: Path) -> Forwarder:
    """dl3d with one worker that receives, and four behind it, on a machine that seems to have a core for each."""
    ports = [Port(port.name, device=_link(folder, "server", index), keys=port.keys) for index, port in enumerate(PORTS)]
    receives = [f"{port.name}/0" for port in ports]
    others = list(range(1, 1 + N_HANDS))
    workers = [{"core": 0, "receives": receives, "hands_to": others}, *({"core": core} for core in others)]
    text = config_text(ports, workers=workers, routes=ROUTES, neighbours=NEIGHBOURS)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", plugin("many_cores"))
        environment.setenv("DL3_CORES", str(2 + N_HANDS))
        environment.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")
        return Forwarder(DL3D, text)


def _generator(folder: Path) -> Generator:
    whole = {
        "ports": [
            {"name": port.name, "device": _link(folder, "client", index), "mac": host_mac(index)}
            for index, port in enumerate(PORTS)
        ],
        "workers": [{"core": CORES[-1]}],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return Generator(DL3GEN, yaml.safe_dump(whole, sort_keys=False))


class Bed:
    """dl3gen on both sides of dl3d."""

    def __init__(self, dl3d: Forwarder, dl3gen: Generator) -> None:
        self.dl3d, self.dl3gen = dl3d, dl3gen

    def account(self) -> Account:
        """As reported by dl3d."""
        return Account.of(self.dl3d.call("drops"))

    def hands(self) -> tuple[WorkerHand, ...]:
        """What the receive worker has handed to each of the others."""
        return Workers.model_validate(self.dl3d.call("workers")).workers[0].hands_to

    def came(self) -> list[int]:
        """Packets for the slots of each worker, those that found a ring full included."""
        return [sum(hand.slot_packets) for hand in self.hands()]

    def slots_of(self, worker: int) -> set[int]:
        """Those whose packets the worker gets."""
        return next(set(hand.slots) for hand in self.hands() if hand.worker == worker)

    def move(self, to: int, slots: Iterable[int]) -> None:
        """Move slots, and wait until it gets their packets."""
        wanted = list(slots)
        self.dl3d.call("workers.move", **{"from": 0, "to": to, "slots": wanted})
        wait_until(lambda: self.slots_of(to).issuperset(wanted), "the slots had moved", PATIENCE_S)

    def balance(self) -> dict[str, Any]:
        """'dl3 balance' during traffic."""
        done = CliRunner().invoke(app, ["balance", "--seconds", "2", "--json", "--socket", str(self.dl3d.socket)])
        assert done.exit_code == 0, (done.stdout, done.exception)
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found[0]

    def rest(self, before: Account) -> Results:
        """The results once all that was sent has come or is counted as dropped."""
        self.dl3gen.finish(0.0, PATIENCE_S)
        sent = sum(each.sent - each.refused for each in self.dl3gen.results().streams)
        account = settled(self.dl3d, before.received + sent).since(before)
        wait_until(
            lambda: sum(each.received for each in self.dl3gen.results().streams) == account.sent,
            "all that dl3d had sent was received",
            PATIENCE_S,
        )
        results = at_rest(self.dl3gen.results)
        assert account.received == sent
        assert sum(each.lost - each.refused for each in results.streams) == account.dropped, (results, account)
        assert set(account.drops) <= {"worker_ring_full", "tx_refused"}, account
        return results


def _sees_links(dl3d: Forwarder) -> bool:
    return all(port.link_up for port in Ports.model_validate(dl3d.call("ports")).ports)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("links")
    with ExitStack() as stack:
        dl3d = stack.enter_context(_forwarder(folder))
        dl3d.wait_ready()
        dl3gen = stack.enter_context(_generator(folder))
        dl3gen.wait_ready()
        wait_until(lambda: all(port.link_up for port in dl3gen.ports().ports), "the links were up", PATIENCE_S)
        wait_until(lambda: _sees_links(dl3d), "dl3d had seen that", PATIENCE_S)
        yield Bed(dl3d, dl3gen)


def _stream(name: str, **keys: Any) -> Mapping[str, Any]:
    fields = {"src_ip": {"first": "10.9.0.1", "count": 100}, "dst_ip": {"first": "10.1.0.1", "count": 100}}
    ends = {"from": "left", "to": "right", "dst_mac": port_mac(0), "size": 256, "catch_up": 16384}
    encap = {"type": name} | TUNNELS[name]
    return {"name": name, "id": list(TUNNELS).index(name), "encap": encap} | ends | fields | keys


@pytest.mark.parametrize("name", TUNNELS)
def each_worker_gets_a_quarter_of_the_inner_flows_of_one_tunnel(bed: Bed, name: str) -> None:
    before, then = bed.account(), bed.came()
    bed.dl3gen.send(streams=[_stream(name, rate="20 kpps", frames=N_EACH)])
    (result,) = bed.rest(before).streams
    assert (result.flows, result.duplicated, result.corrupted, result.reordered) == (N_EACH, 0, 0, 0)
    assert result.received > 0
    came = [now - old for now, old in zip(bed.came(), then, strict=True)]
    assert sum(came) == result.sent - result.refused
    assert all(abs(n / sum(came) - SHARE) <= WITHIN for n in came), came


def _check_order(results: Results) -> None:
    for result in results.streams:
        assert (result.flows, result.reordered_per) == (N_EACH, "flow")
        assert (result.duplicated, result.corrupted, result.reordered, result.too_old) == (0, 0, 0, 0)
        assert result.received > 0


def flows_stay_in_order_while_their_slots_move(bed: Bed) -> None:
    before, chance = bed.account(), random.Random(5)
    streams = [_stream(name, rate="10 kpps", distribution="zipf") for name in TUNNELS]
    bed.dl3gen.send(streams=streams, seconds=86400)
    for _ in range(N_MOVES):
        slots = chance.sample(range(N_SLOTS), chance.randint(1, N_SLOTS))
        bed.move(chance.randint(1, N_HANDS), slots)
    bed.dl3gen.call("halt")
    _check_order(bed.rest(before))


def shares_of_a_worker_that_has_all_are_made_even_during_traffic(bed: Bed) -> None:
    bed.move(1, range(N_SLOTS))
    before = bed.account()
    bed.dl3gen.send(streams=[_stream("gre", rate="20 kpps")], seconds=86400)
    found: dict[str, Any] = {}

    def has_moved() -> bool:
        found.update(bed.balance())
        return bool(found["moves"])

    wait_until(has_moved, "enough packets had come, and slots had moved", PATIENCE_S)
    assert all(abs(n / found["packets"] - SHARE) <= WITHIN for n in found["after"].values()), found
    for move in found["moves"]:
        assert bed.slots_of(move["to"]) == set(move["slots"])
    bed.dl3gen.call("halt")
    _check_order(bed.rest(before))
