"""The programs that generate and forward in a guest, with what each counts. They use the guest's first card on the way
in (VM2) or out (VM1), and the second one for the other.
"""

import os
import re
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dl3.control.generator import Results
from dl3.lab.command import run
from dl3.lab.dpdk_telemetry import ethdev_stats
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from dl3.model.fault import Fault

PATIENCE_S = 600.0
NAMES = ("a", "b")
FOLDER = Path(os.environ.get("RUNTIME_DIRECTORY") or tempfile.gettempdir())  # in a guest its own
PKTGEN = Path("/proc/net/pktgen")
MBUFS = 8192  # of testpmd, besides those in its rings
CATCH_UP = 16_384  # frames, after a pause of the guest
LOST_BEFORE = ("rx_missed", "rx_errors")


def ports(cards: list[str], keys: dict[str, Any], **own: dict[str, Any]) -> list[dict[str, Any]]:
    """The cards, one or two, as ports of a program of ours."""
    return [{"name": name, "device": card} | keys | own.get(name, {}) for name, card in zip(NAMES, cards, strict=False)]


@dataclass(frozen=True)
class Cards:
    """The cards of a program: PCI addresses in a guest, else virtio_user devices. `cores`: for the rest and the worker."""

    devices: list[str]
    cores: tuple[int, int] = (0, 1)
    is_guest: bool = True

    def eal(self) -> list[str]:
        """Arguments of EAL for a program that is not ours."""
        lcores = ("--lcores", f"0@{self.cores[0]},1@{self.cores[1]}", "-n", "1", "--main-lcore", "0")
        if self.is_guest:
            return [*lcores]
        vdevs = [word for device in self.devices for word in ("--vdev", device)]
        return [*lcores, "--no-pci", "--no-huge", "-m", "256", *vdevs]


def config(cards: Cards, keys: dict[str, Any], **own: dict[str, Any]) -> str:
    """A configuration with one worker."""
    memory = {} if cards.is_guest else {"memory": {"hugepages": "never"}}
    given = ports(cards.devices, keys, **own)
    whole = {"ports": given, "workers": [{"core": cards.cores[1]}], **memory, "control": {"socket": "@SOCKET@"}}
    return yaml.safe_dump(whole, sort_keys=False)


class Dl3gen:
    """Sends at the first card, receives at the last."""

    def __init__(self, cards: Cards, binary: str, keys: dict[str, Any]) -> None:
        self._to = NAMES[len(cards.devices) - 1]
        self._dl3gen = Generator(Path(binary), config(cards, keys))
        self._dl3gen.wait_ready(PATIENCE_S)

    def send(self, stream: dict[str, Any], pps: float, seconds: float, size: int) -> None:
        """Start; the counts are of this run."""
        load = {"from": "a", "to": self._to, "rate": f"{pps:.0f} pps", "size": size, "catch_up": CATCH_UP}
        self._dl3gen.send(streams=[stream | load], seconds=seconds)

    def counts(self) -> dict[str, Any]:
        """Of the latest run. `came` has frames that came twice or late, too."""
        results: Results = self._dl3gen.results()
        state = {"is_done": results.state != "sending", "is_up": all(port.link_up for port in results.ports)}
        if not results.streams:
            return state | {"sent": 0, "refused": 0, "came": 0, "missed": 0, "late": 0, "p50_ns": 0.0}
        (stream,) = results.streams
        came = stream.received + stream.duplicated + stream.corrupted + stream.too_old
        missed = sum(port.rx_missed or 0 for port in results.ports if port.name == self._to)
        counted = {"sent": stream.sent, "refused": stream.refused, "came": came, "missed": missed}
        return state | counted | {"late": stream.late, "p50_ns": stream.latency.p50}


class Pktgen:
    """The kernel's generator at the first card; the last one counts all frames."""

    def __init__(self, cards: Cards) -> None:
        found = [next(Path("/sys/bus/pci/devices", card).glob("virtio*/net/*")).name for card in cards.devices]
        self._out, self._in = found[0], found[-1]
        self._before = {"sent": 0, "refused": 0, "came": 0, "missed": 0}
        self._thread: threading.Thread | None = None
        for name in found:
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1\n", encoding="ascii")
            run(["ip", "link", "set", "dev", name, "arp", "off", "promisc", "on", "up"])
        self._tell("kpktgend_1", "rem_device_all", f"add_device {self._out}")

    def _tell(self, file: str, *lines: str) -> None:
        for line in lines:
            (PKTGEN / file).write_text(f"{line}\n", encoding="ascii")

    def _counted(self) -> dict[str, int]:
        def of(name: str, counter: str) -> int:
            return int(Path(f"/sys/class/net/{name}/statistics/{counter}").read_text(encoding="ascii"))

        refused = of(self._out, "tx_dropped")
        sent = of(self._out, "tx_packets") + refused
        missed = of(self._in, "rx_dropped")
        return {"sent": sent, "refused": refused, "came": of(self._in, "rx_packets"), "missed": missed}

    def send(self, stream: dict[str, Any], pps: float, seconds: float, size: int) -> None:
        """Start; the counts are of this run. The destination ports are those of `stream`, one after the other."""
        self._before = self._counted()
        settings = (f"count {int(pps * seconds)}", f"ratep {int(pps)}", f"pkt_size {size - 4}")
        addresses = ("src_min 198.18.0.1", "src_max 198.18.0.1", "dst 198.19.0.1", f"dst_mac {stream['dst_mac']}")
        first = stream.get("dst_port", {"first": 9, "count": 1})
        used = (f"udp_dst_min {first['first']}", f"udp_dst_max {first['first'] + first['count'] - 1}")
        self._tell(self._out, *settings, *addresses, *used)
        self._thread = threading.Thread(target=self._tell, args=("pgctrl", "start"), daemon=True)
        self._thread.start()

    def counts(self) -> dict[str, Any]:
        """Of the latest run."""
        now = self._counted()
        is_done = self._thread is None or not self._thread.is_alive()
        rises = {key: now[key] - self._before[key] for key in now}
        return rises | {"is_done": is_done, "is_up": True, "late": 0, "p50_ns": 0.0}


class Dl3d:
    """Cross-connects both cards."""

    def __init__(self, cards: Cards, binary: str, keys: dict[str, Any]) -> None:
        ways = {"a": {"mode": "xconnect", "to": "b"}, "b": {"mode": "xconnect", "to": "a"}}
        self._dl3d = Forwarder(Path(binary), config(cards, keys, **ways))
        self._dl3d.wait_ready(PATIENCE_S)

    def counts(self) -> dict[str, Any]:
        """Since the start."""
        found = {port["name"]: port for port in self._dl3d.call("ports")["ports"]}
        dropped = self._dl3d.call("drops")["dropped"]
        missed = sum(found["a"][key] or 0 for key in LOST_BEFORE)
        return {
            "came": found["a"]["rx_packets"],
            "missed": missed,
            "dropped": dropped,
            "sent": found["b"]["tx_packets"],
        }


class External:
    """A program of DPDK, whose output goes into a file."""

    def __init__(self, command: list[str], ready: str) -> None:
        self._log = FOLDER / "forwarder.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._wait_for(ready)

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _wait_for(self, words: str, begin: int = 0) -> None:
        moment = threading.Event()
        while words not in self._text()[begin:]:
            if self._process.poll() is not None:
                raise Fault(f"the forwarder ended with status {self._process.returncode}: {self._text()[-500:]}")
            moment.wait(0.02)


class L2fwd(External):
    """DPDK's example: prints its counts once a second, of a port as destination."""

    def __init__(self, cards: Cards, binary: str) -> None:
        super().__init__([binary, *cards.eal(), "--", "-p", "3", "-T", "1"], "Port stat")

    def counts(self) -> dict[str, Any]:
        """Since the start, of the latest whole table."""
        self._wait_for("Aggregate statistics")
        table = self._text().rpartition("Aggregate statistics")[0].rpartition("Port statistics")[2]
        sent, came, dropped = (
            [int(n) for n in re.findall(rf"Packets {word}: +(\d+)", table)] for word in ("sent", "received", "dropped")
        )
        return {"came": came[0], "missed": ethdev_stats(0)["missed"], "dropped": dropped[1], "sent": sent[1]}


class Testpmd(External):
    """testpmd, which rewrites the MAC addresses as l2fwd does; with one card it sends back what it receives, and in mode
    'rxonly' it only counts.
    """

    def __init__(self, cards: Cards, binary: str, keys: dict[str, int], mode: str = "") -> None:
        sizes = [
            f"--{option}={keys[key]}"
            for option, key in (("rxd", "rx_descriptors"), ("txd", "tx_descriptors"))
            if key in keys
        ]
        forward = mode or ("mac" if len(cards.devices) > 1 else "macswap")
        ways = [f"--forward-mode={forward}", f"--port-topology={'paired' if forward == 'mac' else 'loop'}"]
        buffers = f"--total-num-mbufs={MBUFS + sum(keys.values())}"
        program = ["stdbuf", "-oL", binary, *cards.eal(), "--", "-i", "--auto-start", buffers]
        super().__init__([*program, *ways, *sizes], "testpmd>")

    def counts(self) -> dict[str, Any]:
        """Since the start: what came to the first card, and what left by the last one."""
        begin = len(self._text())
        if self._process.stdin:
            self._process.stdin.write(b"show fwd stats all\n")
            self._process.stdin.flush()
        self._wait_for("Accumulated forward statistics", begin)
        self._wait_for("testpmd>", self._text().rindex("Accumulated forward statistics"))
        text = self._text()[begin:].partition("Accumulated forward statistics")[0]
        found = [(int(one), int(other)) for one, other in re.findall(r"-packets: (\d+) +.X-dropped: (\d+)", text)]
        (came, missed), (sent, dropped) = found[0], found[-1]
        return {"came": came, "missed": missed, "dropped": dropped, "sent": sent}
