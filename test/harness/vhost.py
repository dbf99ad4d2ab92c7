"""dl3d with two vhost-user ports, and dl3gen as the guests: its ports are virtio-user."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from dl3.control.generator import StreamResult
from dl3.control.replies import Port, Ports
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from harness.answers import CORES, DL3GEN
from harness.wire import wait_until
from harness.wired import DL3D, Account

NAMES = ("vm1", "vm2")
SLOTS = 1024
Workers = Sequence[Sequence[str]]


def guest_mac(index: int) -> str:
    """MAC address of the guest at port number `index`."""
    return f"02:00:00:00:02:{index + 1:02x}"


class VhostBed:
    """Frames go from the guest at vm1 to the guest at vm2. Use it in a with statement.

    dl3d's ports are in mode `mode` and have `queues`; so have the guests' devices, but dl3gen enables only the first.
    `workers` are the queues of each worker: PORT/QUEUE; all if there are none.
    """

    def __init__(self, mode: str = "client", queues: int = 1, workers: Workers = ((),)) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vhost-")
        self.folder = Path(self._folder.name)
        self.mode, self.queues, self._workers = mode, queues, workers
        self.dl3d = Forwarder(DL3D, self.text())
        self.dl3gen: Generator | None = None
        try:
            self.dl3d.wait_ready()
            self.dl3gen = Generator(DL3GEN, self._generator())
            self.dl3gen.wait_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def socket(self, name: str) -> Path:
        """The socket of a port."""
        return self.folder / f"{name}.sock"

    def row(self, index: int) -> dict[str, Any]:
        """Port number `index` of dl3d's file."""
        vhost = {"socket": str(self.socket(NAMES[index])), "mode": self.mode, "queues": self.queues}
        return {"name": NAMES[index], "addresses": [f"10.0.{index + 1}.1/24"], "vhost": vhost}

    def text(self) -> str:
        """dl3d's file."""
        whole = {
            "ports": [self.row(i) for i in range(len(NAMES))],
            "workers": [
                {"core": core} | ({"queues": list(queues)} if queues else {})
                for core, queues in zip(CORES, self._workers, strict=False)
            ],
            "routes": ["10.3.0.0/16 via 10.0.2.2 dev vm2"],
            "neighbours": [f"10.0.{i + 1}.2 lladdr {guest_mac(i)} dev {name}" for i, name in enumerate(NAMES)],
            "memory": {"hugepages": "never"},
            "control": {"socket": "@SOCKET@"},
        }
        return yaml.safe_dump(whole, sort_keys=False)

    def _generator(self) -> str:
        server = "server=1," if self.mode == "client" else ""
        ports = [
            {
                "name": name,
                "device": f"net_virtio_user{i},path={self.socket(name)},{server}queues={self.queues},"
                f"queue_size={SLOTS},mac={guest_mac(i)}",
                "addresses": [f"10.0.{i + 1}.2/24"],
            }
            for i, name in enumerate(NAMES)
        ]
        whole = {
            "ports": ports,
            "workers": [{"core": CORES[-1]}],
            "memory": {"hugepages": "never"},
            "control": {"socket": "@SOCKET@"},
        }
        return yaml.safe_dump(whole, sort_keys=False)

    @property
    def guests(self) -> Generator:
        """dl3gen."""
        assert self.dl3gen
        return self.dl3gen

    def port(self, name: str) -> Port:
        """A port as dl3d reports it."""
        (found,) = [port for port in Ports.model_validate(self.dl3d.call("ports")).ports if port.name == name]
        return found

    def account(self) -> Account:
        """The packet accounting as reported by dl3d."""
        return Account.of(self.dl3d.call("drops"))

    def wait_connected(self) -> None:
        """Wait until both guests are connected, and both ends have links."""

        def is_connected(name: str) -> bool:
            port = self.port(name)
            return bool(port.vhost and port.vhost.state == "connected" and port.link_up)

        wait_until(lambda: all(is_connected(name) for name in NAMES), "both guests were connected")
        wait_until(lambda: all(port.link_up for port in self.guests.results().ports), "the guests had links")

    def send(self, frames: int, rate: str = "2 kpps", source: str = "10.0.1.2") -> None:
        """Let the guest at vm1 send numbered frames to the one at vm2."""
        stream = {
            "from": NAMES[0],
            "to": NAMES[1],
            "dst_mac": self.port(NAMES[0]).mac,
            "src_ip": source,
            "dst_ip": {"first": "10.3.0.1", "count": 100},
            "rate": rate,
            "frames": frames,
            "catch_up": 16384,
        }
        self.guests.send(streams=[stream])

    def finish(self, frames: int) -> StreamResult:
        """Wait until all frames have arrived."""
        self.guests.finish(stragglers_s=0, timeout_s=120)

        def result() -> StreamResult:
            (stream,) = self.guests.results().streams
            return stream

        wait_until(lambda: result().received >= frames, "all frames had arrived")
        return result()

    def wait_balanced(self) -> Account:
        """Wait until the account balances."""
        wait_until(lambda: self.account().is_closed, "the account balanced")
        return self.account()

    def close(self) -> None:
        """Stop both programs."""
        for program in (self.dl3gen, self.dl3d):
            if program:
                program.close()
        self._folder.cleanup()
