"""Real collectors of flow export, each in a folder of its own, and 'dl3 export' as a process."""

import json
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from harness.captures import started, status_of
from harness.wire import wait_until

END_S = 120
WARNING = 6 << 20  # of tshark; a note, as of a TTL of 1, is none


def free_port() -> int:
    """A UDP port of the loopback interface that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        return int(peer.getsockname()[1])


class Collector:
    """A program that takes datagrams until it is asked for its flows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        words = self.command()
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def command(self) -> list[str]:
        """How to start it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        wait_until(self._listens, "the collector listened")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        ports = {line.split()[1].rpartition(":")[2] for line in Path("/proc/net/udp").read_text().splitlines()[1:]}
        return f"{self.port:04X}" in ports

    def end(self, number: signal.Signals) -> None:
        """It writes what it has."""
        self.process.send_signal(number)
        self.process.communicate(timeout=60)


class Nfcapd(Collector):
    """nfcapd, for IPFIX. Version 1.7.1 does not multiply what was sampled."""

    def command(self) -> list[str]:
        """It stores what comes."""
        return ["nfcapd", "-p", str(self.port), "-b", "127.0.0.1", "-w", str(self.folder), "-t", "3600"]

    def flows(self) -> list[dict[str, Any]]:
        """A row for each flow that it has, by nfdump."""
        self.end(signal.SIGTERM)
        words = ["nfdump", "-R", str(self.folder), "-o", "json"]
        text = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
        flows: list[dict[str, Any]] = json.loads(text[text.index("[") : text.rindex("]") + 1])
        return flows


class Pmacct(Collector):
    """nfacctd for IPFIX, or sfacctd for sFlow, of pmacct: they multiply what was sampled."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        super().__init__(folder)

    def command(self) -> list[str]:
        """It adds up what comes."""
        keys = {
            "daemonize": "false",
            f"{self.program}_ip": "127.0.0.1",
            f"{self.program}_port": self.port,
            f"{self.program}_renormalize": "true",
            "plugins": "print",
            "aggregate": "dst_host, dst_port, proto, in_iface",
            "print_output": "json",
            "print_refresh_time": 3600,
            "print_output_file": self.folder / "flows.json",
        }
        path = self.folder / "pmacct.conf"
        path.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
        return [self.program, "-f", str(path)]

    def flows(self) -> list[dict[str, Any]]:
        """A row for each destination."""
        self.end(signal.SIGINT)
        return [json.loads(line) for line in (self.folder / "flows.json").read_text().splitlines()]


class Sink:
    """Takes datagrams, which tshark reads."""

    def __init__(self, folder: Path, protocol: str) -> None:
        self.folder, self.protocol, self.datagrams = folder, protocol, list[bytes]()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def take(self) -> None:
        """All that has come."""
        while True:
            try:
                self.datagrams.append(self._socket.recv(1 << 16))
            except BlockingIOError:
                return

    def fields(self, *names: str) -> list[list[list[str]]]:
        """Of each datagram the values of these fields, as tshark finds them, which finds no mistake."""
        path = self.folder / "datagrams.pcap"
        head = Ether() / IP(src="127.0.0.1", dst="127.0.0.1")
        wrpcap(str(path), [head / UDP(sport=9, dport=self.port) / datagram for datagram in self.datagrams])
        words = ["tshark", "-n", "-r", str(path), "-d", f"udp.port=={self.port},{self.protocol}"]
        mistakes = [*words, "-Y", f"_ws.malformed || _ws.expert.severity >= {WARNING}"]
        wrong = subprocess.run(mistakes, capture_output=True, text=True, timeout=60, check=True)
        assert wrong.stdout == "", wrong.stdout
        asked = [word for name in names for word in ("-e", name)]
        done = subprocess.run(
            [*words, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;", *asked],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return [[cell.split(";") if cell else [] for cell in line.split("\t")] for line in done.stdout.splitlines()]


class RunningExport:
    """'dl3 export', from when all workers take samples until it has ended."""

    def __init__(self, socket_path: Path, kind: str, port: int, *words: str) -> None:
        self._socket = socket_path
        to = f"127.0.0.1:{port}"
        self.process = started("export", kind, to, "--socket", str(socket_path), "--json", *words)
        self._told: list[str] = []
        self._reads = threading.Thread(target=self._read)

    def _read(self) -> None:
        assert self.process.stderr is not None
        self._told.extend(iter(self.process.stderr.readline, ""))

    def _has_begun(self) -> bool:
        return any("exporting to" in line for line in self._told) or self.process.poll() is not None

    def __enter__(self) -> Self:
        self._reads.start()
        wait_until(self._has_begun, "the export had begun")
        assert self.process.poll() is None, self._told
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reads.join()
        wait_until(lambda: not status_of(self._socket)["exporting"], "dl3d had ended the export")

    def end(self) -> dict[str, Any]:
        """Ctrl-C; its summary."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(END_S)
        assert self.process.returncode == 0, self._told
        summary: dict[str, Any] = json.loads(self.process.stdout.read())
        return summary
