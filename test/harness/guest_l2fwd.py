"""Runs in guests, with the project's Python: dl3gen or dl3d on both network cards, through DPDK's driver for virtio.

    guest_l2fwd.py generate MAC FRAMES RATE    sends on the first card, receives on the second
    guest_l2fwd.py forward                     cross-connects the cards

Each prints what it has counted, whenever that has changed, as a line of JSON after the word "counts".
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from harness.answers import DL3GEN
from harness.wire import wait_until
from harness.wired import DL3D, Account

ETHERNET = "0x020000"  # a class of PCI devices
NAMES = ("a", "b")
PAUSE_S, PATIENCE_S = 0.3, 600.0


def _text(**keys: dict[str, Any]) -> str:
    """A configuration with both cards; `keys`: further ones of a port."""
    files = sorted(Path("/sys/bus/pci/devices").glob("*/class"))
    cards = [file.parent.name for file in files if file.read_text().strip() == ETHERNET]
    ports = [{"name": name, "device": card} | keys.get(name, {}) for name, card in zip(NAMES, cards, strict=True)]
    whole = {"ports": ports, "workers": [{"core": 1}], "control": {"socket": "@SOCKET@"}}
    return yaml.safe_dump(whole, sort_keys=False)


class _Teller:
    """Prints counts whenever they have changed."""

    def __init__(self) -> None:
        self._latest = ""

    def tell(self, **counts: Any) -> None:
        """Print them, and wait until it may be worth while to look again."""
        text = json.dumps(counts)
        if text != self._latest:
            print("counts", text, flush=True)
        self._latest = text
        time.sleep(PAUSE_S)


def generate(mac: str, frames: int, rate: str) -> None:
    """Send once, then tell what has come back so far."""
    teller = _Teller()
    with Generator(DL3GEN, _text()) as dl3gen:
        dl3gen.wait_ready(PATIENCE_S)
        wait_until(lambda: all(port.link_up for port in dl3gen.ports().ports), "the cards had links", PATIENCE_S)
        dl3gen.send(
            streams=[{"from": "a", "to": "b", "dst_mac": mac, "rate": rate, "frames": frames, "catch_up": 16384}]
        )
        while True:
            results = dl3gen.results()
            (stream,) = results.streams
            came = stream.received + stream.duplicated + stream.corrupted + stream.too_old
            teller.tell(
                done=results.state == "done", sent=stream.sent - stream.refused, received=came, late=stream.late
            )


def forward() -> None:
    """Tell what was forwarded so far."""
    text = _text(a={"mode": "xconnect", "to": "b"}, b={"mode": "xconnect", "to": "a"})
    teller = _Teller()
    with Forwarder(DL3D, text) as dl3d:
        dl3d.wait_ready(PATIENCE_S)
        while True:
            ports = {port["name"]: port for port in dl3d.call("ports")["ports"]}
            account = Account.of(dl3d.call("drops"))
            received, sent = ports["a"]["rx_packets"], ports["b"]["tx_packets"]
            teller.tell(received=received, sent=sent, drops=account.drops, closed=account.is_closed)


if __name__ == "__main__":
    if sys.argv[1] == "generate":
        generate(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    forward()
