"""'dl3 export' on a running dl3d: what real collectors make of its datagrams, and what is refused."""

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.captures import RunningCapture, dl3
from harness.collectors import Nfcapd, Pmacct, RunningExport, Sink
from harness.frames import ip4, ip6, on
from harness.wired import WiredForwarder
from verdicts_test import NEIGHBOURS, PORTS, ROUTES

from dl3.export.reasons import SFLOW, reasons

PASSING, PASSING6 = on(0, ip4("10.2.0.1")), on(0, ip6("2001:db8:22::1"))
LOST, EXPIRED = on(0, ip4("192.0.2.1")), on(0, ip4("10.2.0.1", ttl=1))
SENT = [PASSING] * 30 + [PASSING6] * 20 + [LOST] * 10 + [EXPIRED] * 5


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, routes=ROUTES, neighbours=NEIGHBOURS) as made:
        made.namespace.ip("link", "set", "dev", "e", "mtu", "1000")
        yield made


def _samples(datagram: bytes, kind: int) -> Iterator[bytes]:
    """The samples of a kind in a datagram of sFlow, which tshark 4.0 does not take apart."""
    n, at = int.from_bytes(datagram[24:28]), 28
    for _ in range(n):
        found, length = struct.unpack_from("!II", datagram, at)
        if found == kind:
            yield datagram[at + 8 : at + 8 + length]
        at += 8 + length
    assert at == len(datagram)


def _discarded(sample: bytes) -> tuple[int, bytes]:
    """The reason and the frame of a discarded packet of port a."""
    _, source_class, source, drops, input_port, output_port, reason, n = struct.unpack_from("!8I", sample)
    assert (source_class, source, drops, input_port, output_port, n) == (0, 1, 0, 1, 0, 1)
    kind, _, protocol, length, stripped, n_bytes = struct.unpack_from("!6I", sample, 32)
    assert (kind, protocol, length, stripped) == (1, 1, n_bytes + 4, 4)
    return reason, sample[56 : 56 + n_bytes]


def tshark_reads_every_frame_and_drop_of_sflow(wired: WiredForwarder, tmp_path: Path) -> None:
    with Sink(tmp_path, "sflow") as sink:
        with RunningExport(wired.dl3d.socket, "sflow", sink.port, "--sample", "1") as export:
            wired.send_all(SENT)
            summary = export.end()
        sink.take()
        rows = sink.fields("sflow_245.sampletype", "sflow_245.header.frame_length", "ip.dst")
    assert (summary["samples"], summary["drops"], summary["missed"]) == (len(SENT), 15, 0)
    assert summary["datagrams"] == len(sink.datagrams) > 0
    kinds = Counter(kind for row in rows for kind in row[0])
    assert (kinds["1"], kinds["5"]) == (len(SENT), 15), kinds
    lengths = Counter(length for row in rows for length in row[1])
    assert lengths == {str(len(PASSING6) + 4): 20, str(len(LOST) + 4): 45}
    addresses = Counter(address for row in rows for address in row[2])
    assert (addresses["10.2.0.1"], addresses["192.0.2.1"]) == (35, 10)
    found = Counter(_discarded(sample) for datagram in sink.datagrams for sample in _samples(datagram, 5))
    assert found == {(SFLOW["dst_net_unknown"], LOST): 10, (SFLOW["ttl_exceeded"], EXPIRED): 5}


@pytest.mark.parametrize(("kind", "program"), [("sflow", "sfacctd"), ("ipfix", "nfacctd")])
def pmacct_multiplies_what_was_sampled(wired: WiredForwarder, tmp_path: Path, kind: str, program: str) -> None:
    with Pmacct(program, tmp_path) as collector:
        words = ("--sample", "10", "--sample-drops", "1000000")
        with RunningExport(wired.dl3d.socket, kind, collector.port, *words) as export:
            wired.send_all([PASSING] * 5000)
            summary = export.end()
        flows = collector.flows()
    assert 350 < summary["samples"] < 650  # 500, and 7 times the square root of it
    (row,) = flows
    assert (row["iface_in"], row["ip_dst"], row["port_dst"]) == (1, "10.2.0.1", 53)
    assert row["packets"] == 10 * summary["samples"]


def _destination(row: dict[str, Any]) -> str:
    return str(row.get("dst4_addr") or row["dst6_addr"])


def nfcapd_has_exact_flows_of_ipfix(wired: WiredForwarder, tmp_path: Path) -> None:
    with Nfcapd(tmp_path) as collector:
        with RunningExport(wired.dl3d.socket, "ipfix", collector.port, "--sample", "1") as export:
            wired.send_all(SENT)
            summary = export.end()
        flows = collector.flows()
    assert (summary["samples"], summary["drops"], summary["unsent"]) == (len(SENT), 15, 0)
    counted = Counter({(_destination(row), row["in_packets"], row["in_bytes"]): 1 for row in flows})
    assert counted == Counter(
        [
            ("10.2.0.1", 35, 35 * 46),
            ("10.2.0.1", 5, 5 * 46),  # dropped
            ("192.0.2.1", 10, 10 * 46),
            ("2001:db8:22::1", 20, 20 * 66),
        ]
    )
    assert len(flows) == 5  # 192.0.2.1 twice: received, and dropped
    assert {(row["input_snmp"], row["dst_port"], row["proto"]) for row in flows} == {(1, 53, 17)}


def tshark_reads_flows_with_their_status_and_the_sampling_of_ipfix(wired: WiredForwarder, tmp_path: Path) -> None:
    with Sink(tmp_path, "cflow") as sink:
        with RunningExport(wired.dl3d.socket, "ipfix", sink.port, "--sample", "1000", "--sample-drops", "1") as export:
            wired.send_all([LOST] * 10 + [EXPIRED] * 5)
            export.end()
        sink.take()
        fields = ("cflow.version", "cflow.sampling_packet_space", "cflow.packets", "cflow.forwarding_status_drop_code")
        rows = sink.fields(*fields)
    assert {row[0][0] for row in rows} == {"10"}
    assert [value for row in rows for value in row[1]] == ["999", "0"]
    dropped = {status: packets for row in rows if row[3] for packets, status in zip(row[2], row[3], strict=True)}
    assert (dropped["3"], dropped["9"]) == ("10", "5")


def a_capture_runs_beside_an_export(wired: WiredForwarder, tmp_path: Path) -> None:
    with (
        Sink(tmp_path, "sflow") as sink,
        RunningExport(wired.dl3d.socket, "sflow", sink.port, "--sample", "1") as export,
    ):
        second = dl3("export", "ipfix", "127.0.0.1:9", "--socket", wired.dl3d.socket)
        assert (second.returncode, "another export is running" in second.stderr) == (2, True), second.stderr
        with RunningCapture(wired.dl3d.socket, tmp_path / "beside.pcapng") as capture:
            wired.send_all(SENT)
            assert capture.end()["captured"] == 2 * len(SENT)
        assert export.end()["samples"] == len(SENT)


def each_reason_of_a_drop_is_one_of_sflow() -> None:
    assert {reason.sflow for reason in reasons().values()} <= set(SFLOW.values())
    assert reasons()["no_route"] == (6, 131)
