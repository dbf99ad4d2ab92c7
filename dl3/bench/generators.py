"""dl3gen and testpmd's generator and sink, each alone on one core over net_null."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dl3.bench.onecore import FIRST_MAC
from dl3.bench.sides import Contestant, Entry, PairSettings, eal, job_of, march_of_build, march_of_distribution
from dl3.bench.workplace import BUILD, Workplace, built
from dl3.control.client import Client
from dl3.control.replies import Reply
from dl3.model.fault import Fault

FLOWS = 1_000_000
MOST_FLOWS = 16_777_216
FLOWS_OF_TESTPMD = 256  # txonly varies one byte of the source address
FLOWS_OF_SINK = 65_536  # number of destinations in the table: reordering is checked per flow
FRAME_BYTES = 60  # without the FCS, 64 with it
LONGEST_S = 86_400
NO_RX = "net_null0,no-rx=1"
DOING: Mapping[str, tuple[str, ...]] = {  # options of testpmd
    "sink": ("--forward-mode=rxonly",),
    "flows": ("--forward-mode=txonly", "--txonly-multi-flow"),
    "flowgen": ("--forward-mode=flowgen", f"--flowgen-flows={FLOWS}"),
}
ROW_OF_FLOWS = (
    f"64-byte frames; dl3gen: {FLOWS:,} flows, each frame with stamp and UDP checksum; testpmd txonly: "
    f"{FLOWS_OF_TESTPMD} flows, UDP checksum 0"
)
ROW_OF_FLOWGEN = (
    f"64-byte frames, {FLOWS:,} flows each; dl3gen: each frame with stamp and UDP checksum; testpmd flowgen: IP "
    "checksum, UDP checksum 0"
)
ROW_OF_MOST_FLOWS = f"64-byte frames; dl3gen with {MOST_FLOWS:,} flows against dl3gen with one"
ROW_OF_SINK = (
    f"64-byte frames with stamps of {FLOWS_OF_SINK:,} flows; dl3gen checks sequence, order in each flow, UDP checksum "
    "and counts latency; testpmd rxonly only counts"
)


def stream(mode: str) -> dict[str, Any]:
    """A transmit stream of one, a million or 16,777,216 flows, or the stream stamped by the plugin."""
    common = {"to": "wire", "dst_mac": "02:00:00:00:00:aa", "size": 64}
    if mode == "sink":
        return common | {"id": 0, "dst_ip": {"first": "48.0.0.0", "count": FLOWS_OF_SINK}}
    common |= {"from": "wire", "rate": "max"}
    if mode == "1-flow":
        return common
    count = 4096 if mode == "16m-flows" else 1000
    spread = {"dst_ip": {"first": "198.18.0.0", "count": count}, "src_port": {"first": 1024, "count": count}}
    return common | spread | {"flows": count * count}


def generator_config(mode: str, terms: PairSettings, place: Workplace) -> dict[str, Any]:
    """dl3gen's configuration: one net_null port, one worker."""
    rings = {"rx_descriptors": terms.descriptors, "tx_descriptors": terms.descriptors}
    device = "net_null0" if mode == "sink" else NO_RX
    return {
        "ports": [{"name": "wire", "device": device, "mac": FIRST_MAC, **rings}],
        "workers": [{"core": terms.core}],
        "burst": terms.burst,
        "memory": {"hugepages": "require", "mib": terms.memory_mib},
        "eal": {"plugins": [str(place.plugin)]},
        "control": {"socket": str(place.folder / f"{place.next_number()}.sock")},
        "streams": [stream(mode)],
    }


def begin(socket: Path) -> bool:
    """Start dl3gen's streams; False while it does not reply yet."""
    client = Client(socket)
    try:
        client.ask(Reply, "status")
    except Fault:
        return False
    client.ask(Reply, "send", seconds=LONGEST_S)
    return True


def make_dl3gen(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3gen of one of our builds; mode 'flows', '1-flow', '16m-flows' or 'sink'."""
    program = built(BUILD / folder / "src" / "dl3gen", "tools/build-peers")
    file = place.folder / f"{place.next_number()}.yaml"
    config = generator_config(entry.mode, terms, place)
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    socket = Path(config["control"]["socket"])
    job = job_of(entry, terms, (str(program), str(file)))
    is_sink = entry.mode == "sink"
    job = replace(job, is_stamped=is_sink, is_sink=is_sink, begin=lambda: begin(socket))
    return Contestant(job, march_of_build(folder))


def make_testpmd_alone(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The distribution's testpmd on one port; mode 'flows', 'flowgen' or 'sink'."""
    is_sink = entry.mode == "sink"
    device = "net_null0" if is_sink else NO_RX
    doing = DOING[entry.mode] if is_sink else (*DOING[entry.mode], f"--txpkts={FRAME_BYTES}")
    command = (
        *("dpdk-testpmd", *eal(terms, place, f"0@{terms.core},1@{terms.core}", (device,))),
        *("--nb-cores=1", *doing, f"--burst={terms.burst}", "--no-lsc-interrupt", "--auto-start"),
        *(f"--rxd={terms.descriptors}", f"--txd={terms.descriptors}"),
    )
    job = replace(job_of(entry, terms, command), is_stamped=is_sink, is_sink=is_sink)
    return Contestant(job, march_of_distribution())
