"""All verdict rows in full bursts, through the vector and the scalar variant of the datapath."""

import random
from collections import Counter
from pathlib import Path

import pytest
from harness.frames import Ether
from harness.wired import Port, config_text, port_mac, walked
from scapy.utils import PcapReader, PcapWriter
from verdicts_test import NEIGHBOURS, PORTS, ROUTES, ROWS, Row

N_TIMES = 40
PCAP_MACS = [f"02:70:63:61:70:{i:02x}" for i in range(3)]
VARIANTS = {"vector": [], "scalar": ["--force-max-simd-bitwidth=64"]}


def _mixed() -> list[Row]:
    """Each row many times, in a reproducible random order; without the port of the SEND rows."""
    rows = [row for row in ROWS if row.verdict != "tx_refused"] * N_TIMES
    random.Random(5).shuffle(rows)
    return rows


def _for_pcap(frame: bytes) -> bytes:
    """The same frame with the MAC address that DPDK assigns to a capture file."""
    ours = bytes.fromhex(port_mac(0).replace(":", ""))
    return bytes.fromhex(PCAP_MACS[0].replace(":", "")) + frame[6:] if frame[:6] == ours else frame


def _ports(folder: Path, frames: list[bytes]) -> list[Port]:
    """Ports a, b and c on capture files, d unchanged."""
    for name, content in (("a", frames), ("b", []), ("c", [])):
        with PcapWriter(str(folder / f"{name}-in"), linktype=1) as file:
            file.write_header(None)
            for frame in content:
                file.write_packet(frame)
    ports = []
    for index, port in enumerate(PORTS[:3]):
        device = f"net_pcap{index},rx_pcap={folder}/{port.name}-in,tx_pcap={folder}/{port.name}-out"
        ports.append(Port(port.name, mtu=port.mtu, device=device, keys=port.keys))
    return [*ports, PORTS[3]]


def _wanted(rows: list[Row], index: int) -> Counter[bytes]:
    out = [row.leaves(index) for row in rows if row.out == index]
    source = bytes.fromhex(PCAP_MACS[index].replace(":", ""))
    return Counter(frame[:6] + source + frame[12:] for frame in out)


@pytest.mark.parametrize("variant", VARIANTS)
def all_rows_hold_in_full_bursts(tmp_path: Path, variant: str) -> None:
    rows = _mixed()
    keys = {
        "routes": [route for route in ROUTES if not route.endswith("dev e")],
        "neighbours": [text for text in NEIGHBOURS if not text.endswith("dev e")],
        "eal": {"args": VARIANTS[variant]},
        "memory": {"hugepages": "never"},
    }
    ports = _ports(tmp_path, [_for_pcap(row.frame) for row in rows])
    account = walked(config_text(ports, **keys), len(rows))
    verdicts = Counter(row.verdict for row in rows)
    assert account.sent == verdicts.pop("forward")
    assert account.drops == verdicts
    for index, name in enumerate("abc"):
        with PcapReader(str(tmp_path / f"{name}-out")) as file:
            assert Counter(bytes(packet) for packet in file) == _wanted(rows, index)


def the_frames_are_what_they_seem() -> None:
    assert len(_mixed()) == (len(ROWS) - 1) * N_TIMES
    assert all(Ether(_for_pcap(row.frame)).dst != port_mac(0) for row in ROWS)
