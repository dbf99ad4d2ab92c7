"""dl3gen as witness of dl3d's flow table: two streams in, two ports out, each flow with a secret action."""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from dl3.control.generator import Results, StreamResult
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from dl3.model.flow_file import ACTION, FLOW, IS_IPV6, LIFE_BITS, FlowWriter, Records, read_flow_file
from dl3.model.flow_records import saved_action, set_action
from dl3.model.flow_text import FlowAction
from dl3.model.generator_flows import U64, Actions, Stream, expected, mixed, n_flows, read_counts, tuples
from harness.answers import CORES, DL3GEN
from harness.wire import wait_until
from harness.wired import DL3D, Account

# Flows come in on the first two, and leave on the others. While dl3gen's only worker is held up it sends nothing, and
# the rings of the others hold all that can be under way: no frame is lost in dl3d.
PORTS = ("a", "b", "c", "d")
INPUTS, OUTPUTS = PORTS[:2], PORTS[2:]
RING_BITS = {"a": 13, "b": 13, "c": 14, "d": 14}
DSCPS = (0, 10, 34, 46)
CATCH_UP = 4096  # frames: dl3gen's core may be taken for some milliseconds at a time
LOADED_AT_ONCE = 1 << 20
PATIENCE_S = 900.0  # of a machine whose cores are taken
LONGEST_TURN_MS = 20.0  # of dl3d's control loop
SECONDS_MOST = 86400  # of a run: it is stopped before
KEY_WORDS = 5  # of 8 bytes: addresses, ports, VRF, protocol and family
SOCKET = "socket={folder}/{port}.memif,socket-abstract=no"

IP4 = {
    "src_ip": {"first": "100.64.0.0", "count": 4096, "random": True},
    "dst_ip": {"first": "198.19.0.0", "count": 64, "random": True},
    "src_port": {"first": 1024, "count": 8, "random": True},
    "dst_port": {"first": 65528, "count": 8, "random": True},
    "size": 64,
}
IP4_TCP = IP4 | {"dst_ip": IP4["dst_ip"] | {"first": "203.0.113.0"}, "protocol": "tcp", "size": 90}  # type: ignore[operator]
SHORT_LIVED = IP4 | {"dst_ip": IP4["dst_ip"] | {"first": "192.0.2.0"}, "size": 120}  # type: ignore[operator]
IP6_TCP = IP4 | {
    "src_ip": {"first": "2001:db8:100::", "count": 4096, "random": True},
    "dst_ip": {"first": "2001:db8:200::ff00", "count": 64, "random": True},
    "protocol": "tcp",
    "size": 100,
}


def mac(port: str, end: int) -> str:
    """The MAC address of dl3d's (0) or dl3gen's (1) end of a link."""
    return f"02:00:00:00:0{end}:0{PORTS.index(port) + 1}"


def hop(port: str) -> str:
    """The address of dl3gen's end."""
    return f"10.0.{PORTS.index(port) + 1}.2"


def dl3d_text(folder: Path, streams: Sequence[Stream], **flow: Any) -> str:
    """dl3d's configuration: a neighbour behind each port, a table of just as many flows, and no routes."""
    n = {family: sum(n_flows(each) for each in streams if is_ip6(each) == (family == 6)) for family in (4, 6)}
    ports = [
        {
            "name": port,
            "device": f"net_memif{i},role=server,id=0,rsize={RING_BITS[port]},{SOCKET.format(folder=folder, port=port)}",
            "mac": mac(port, 0),
            "queues": 1,
            "addresses": [f"10.0.{i + 1}.1/24"],
        }
        for i, port in enumerate(PORTS)
    ]
    whole = {
        "ports": ports,
        "workers": [{"core": CORES[0]}],
        "neighbours": [f"{hop(port)} lladdr {mac(port, 1)} dev {port}" for port in PORTS],
        "flow": {"ipv4": n[4], "ipv6": n[6], "missing": "drop", **flow},
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    text: str = yaml.safe_dump(whole, sort_keys=False)
    return text


def dl3gen_text(folder: Path) -> str:
    """dl3gen's configuration: one worker sends and receives everything."""
    ports = [
        {
            "name": port,
            "device": f"net_memif{i},role=client,id=0,rsize={RING_BITS[port]},{SOCKET.format(folder=folder, port=port)}",
            "mac": mac(port, 1),
        }
        for i, port in enumerate(PORTS)
    ]
    whole = {
        "ports": ports,
        "workers": [{"core": CORES[-1]}],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    text: str = yaml.safe_dump(whole, sort_keys=False)
    return text


def is_ip6(stream: Stream) -> bool:
    """Whether its addresses are IPv6."""
    return ":" in stream["src_ip"]["first"]


def stream(i: int, fields: Stream, flows: int, every: int = 0) -> dict[str, Any]:
    """Stream number i with secret actions, from one of the ports; with `every`, one flow of so many has one of two actions."""
    expect: dict[str, Any] = {"secret": secrets.randbits(63), "ports": list(OUTPUTS), "dscps": list(DSCPS)}
    if every:
        expect["alternative"] = {"secret": secrets.randbits(63), "every": every}
    ends = {"name": f"s{i}", "from": INPUTS[i % 2], "to": OUTPUTS[i % 2], "dst_mac": mac(INPUTS[i % 2], 0)}
    return {**ends, **fields, "flows": flows, "catch_up": CATCH_UP, "count_flows": True, "expect": expect}


def flow_actions() -> list[FlowAction]:
    """Each action: ports first."""
    return [FlowAction("via", hop(port), port, dscp) for port in OUTPUTS for dscp in DSCPS]


def actions() -> Records:
    """Their records."""
    made = np.zeros(len(OUTPUTS) * len(DSCPS), dtype=ACTION)
    for record, action in zip(made, flow_actions(), strict=True):
        set_action(record, action)
    return made


def number_of(wanted: Actions) -> npt.NDArray[np.uint32]:
    """The numbers of these actions' records."""
    return wanted.port.astype(np.uint32) * len(DSCPS) + wanted.dscp


def records(given: Stream, flow: U64, key: str = "expect") -> Records:
    """The records of flows of a stream, whose key `life` may tell the number of an idle timeout."""
    found = tuples(given, flow)
    made: Records = np.zeros(len(flow), dtype=FLOW)
    made["src"][:, : found.src.shape[1]], made["dst"][:, : found.dst.shape[1]] = found.src, found.dst
    made["src_port"], made["dst_port"], made["proto"] = found.src_port, found.dst_port, found.protocol
    made["kind"] = (IS_IPV6 if is_ip6(given) else 0) | given.get("life", 0)
    made["action"] = number_of(expected(given, flow, key))
    return made


def pieces(given: Stream, every: int = 1) -> Iterator[U64]:
    """The numbers of all flows of a stream, or of one of so many."""
    for first in range(0, n_flows(given), LOADED_AT_ONCE * every):
        yield np.arange(first, min(n_flows(given), first + LOADED_AT_ONCE * every), every, dtype=np.uint64)


def write_file(path: Path, streams: Sequence[Stream], key: str = "expect", every: int = 1) -> int:
    """A file with the flows of all streams, or one of so many of them; returns their number."""
    with FlowWriter(path) as writer:
        for each in streams:
            for flow in pieces(each, every):
                writer.add(records(each, flow, key))
        writer.finish(actions(), 0)  # no time: what is loaded has not been idle since
        return writer.n_flows


def key_words(flows: Records) -> U64:
    """The keys as columns of words; how long a flow lives is not part of it."""
    words = np.ascontiguousarray(flows).view(np.uint64).reshape(-1, 8)[:, :KEY_WORDS].copy()
    words[:, 4] &= np.uint64(0xFFFFFFFFFFFFFFFF ^ LIFE_BITS << 56)
    return words


def fingerprints(flows: Records) -> U64:
    """A word for each key."""
    made = np.zeros(len(flows), np.uint64)
    for first in range(0, len(flows), LOADED_AT_ONCE):
        words = key_words(flows[first : first + LOADED_AT_ONCE])
        for column in words.T:
            made[first : first + LOADED_AT_ONCE] = mixed(made[first : first + LOADED_AT_ONCE] ^ column)
    return made


@dataclass(frozen=True)
class Saved:
    """What dl3d has saved, in the order of streams and flows."""

    packets: U64
    bytes: U64
    action: npt.NDArray[np.uint32]  # numbers as in flow_actions()

    def first(self, n: int) -> "Saved":
        """Only the first flows."""
        return Saved(self.packets[:n], self.bytes[:n], self.action[:n])


def read_saved(path: Path, streams: Sequence[Stream]) -> Saved:
    """Read a saved file, which must have exactly the flows of the streams."""
    file = read_flow_file(path)
    wanted = np.concatenate([fingerprints(records(each, flow)) for each in streams for flow in pieces(each)])
    assert len(file.flows) == len(wanted)
    found_at, wanted_at = np.argsort(fingerprints(file.flows)), np.argsort(wanted)
    place = np.empty(len(wanted), np.int64)
    place[wanted_at] = found_at
    numbers = [flow_actions().index(saved_action(one)) for one in file.actions]
    packets, n_bytes = np.empty(len(wanted), np.uint64), np.empty(len(wanted), np.uint64)
    action = np.empty(len(wanted), np.uint32)
    first = 0
    for each in streams:
        for flow in pieces(each):
            some = file.flows[place[first : first + len(flow)]]
            assert (key_words(some) == key_words(records(each, flow))).all()
            here = slice(first, first + len(flow))
            packets[here], n_bytes[here] = some["packets"], some["bytes"]
            action[here] = np.array(numbers, np.uint32)[some["action"]]
            first += len(flow)
    return Saved(packets, n_bytes, action)


@dataclass(frozen=True)
class Witness:
    """dl3d with a flow table, and dl3gen around it."""

    dl3d: Forwarder
    dl3gen: Generator
    folder: Path

    def job(self, method: str, **params: Any) -> dict[str, Any]:
        """Run a job to its end."""
        self.dl3d.call(method, **params)
        ended: dict[str, Any] = {"state": "running"}

        def is_over() -> bool:
            ended.update(self.dl3d.call("flows.job"))
            return bool(ended["state"] != "running")

        wait_until(is_over, f"{method} was over", PATIENCE_S)
        assert (ended["state"], ended["refused"]) == ("done", 0), ended
        return ended

    def start(self, streams: Sequence[Stream], **more: Any) -> None:
        """Start to send."""
        sent = [{key: value for key, value in each.items() if key != "life"} | more for each in streams]
        self.dl3gen.send(streams=sent, seconds=SECONDS_MOST)

    def has_sent(self, frames: int) -> bool:
        """Whether so many frames of each stream went to dl3d: a busy machine takes longer, and does not send less."""
        return all(each.sent - each.refused >= frames for each in self.dl3gen.results().streams)

    def finish(self) -> Results:
        """Stop to send, and wait until all frames have arrived that were not refused, and for which there was a flow."""
        self.dl3gen.call("halt")
        self.dl3gen.finish(0.0, PATIENCE_S)

        def has_arrived() -> bool:
            lost = sum(each.lost - each.refused for each in self.dl3gen.results().streams)
            return lost == self.missing()

        with contextlib.suppress(AssertionError):  # the test judges
            wait_until(has_arrived, "all frames had arrived")
        return self.dl3gen.results()

    def most_cpu_ms(self) -> float:
        """The longest turn of dl3d's control loop so far, without the time in which others had its core."""
        return float(self.dl3d.call("turns")["most_cpu"]["cpu_ms"])

    def missing(self) -> int:
        """Packets that dl3d has dropped because there was no flow for them."""
        return Account.of(self.dl3d.call("drops")).drops.get("flow_missing", 0)

    def received(self, reported: StreamResult) -> U64:
        """What dl3gen has received of each flow in the latest run."""
        path = self.folder / "counts"
        reply = self.dl3gen.call("flow_counts", stream=reported.name, path=str(path))
        assert reply["received"] == reported.received
        return read_counts(path.read_bytes())


@contextmanager
def witness(folder: Path, streams: Sequence[Stream], **flow: Any) -> Iterator[Witness]:
    """Both programs with all links up; with these keys of `flow`."""
    with ExitStack() as stack:
        dl3d = stack.enter_context(Forwarder(DL3D, dl3d_text(folder, streams, **flow)))
        dl3d.wait_ready(PATIENCE_S)
        dl3gen = stack.enter_context(Generator(DL3GEN, dl3gen_text(folder)))
        dl3gen.wait_ready()
        wait_until(lambda: all(port.link_up for port in dl3gen.ports().ports), "the links were up")
        yield Witness(dl3d, dl3gen, folder)
        dl3gen.stop()  # before the other end: memif may crash if its peer goes away
