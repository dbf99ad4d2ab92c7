"""Generated files for measurements."""

import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from dl3.lab.prefixes import Prefix, RouteTable
from dl3.lab.tables import (
    TableFiles,
    Tuple4,
    destination_table,
    next_hop_mac,
    ones_sum,
    routes_of_dl3d,
    routes_of_l3fwd,
    table_of_flows,
)
from dl3.model.fault import UsageFault

TEN = Prefix(10 << 24, 8, 32)
HOST = Prefix(0x0A010203, 32, 32)


def frames(table: RouteTable) -> list[bytes]:
    """The frames that the plugin generates from a table."""
    data = destination_table(table)
    head, records = data[:64], data[64:]
    if table.bits == 128:
        return [head[:38] + records[i : i + 16] + head[54:] for i in range(0, len(records), 16)]
    return [
        head[:24] + records[i + 4 : i + 6] + head[26:30] + records[i : i + 4] + head[34:]
        for i in range(0, len(records), 8)
    ]


@pytest.mark.parametrize("address", ["10.0.0.0", "255.255.255.255", "48.1.2.3", "0.0.0.1"])
def makes_ipv4_frames_with_a_right_checksum(address: str) -> None:
    (made,) = frames(RouteTable([TEN], [int(IPv4Address(address))], 32))
    assert len(made) == 64
    assert ones_sum(made[14:34]) == 0xFFFF
    assert made[30:34] == IPv4Address(address).packed
    assert struct.unpack_from("!H", made, 16) == (50,)
    assert made[22] == 64


def makes_frames_of_flows_with_a_right_checksum() -> None:
    flows = [Tuple4(0x0A010203, 0x30FFFFFF, 65535, 53), Tuple4(0xFFFFFFFF, 0xFFFFFFFF, 1, 2)]
    data = table_of_flows(flows)
    head, records = data[:64], data[64:]
    assert head[26:30] == bytes(4)
    assert len(records) == 16 * len(flows)
    for flow, at in zip(flows, (0, 16), strict=True):
        record = records[at : at + 16]
        made = head[:24] + record[12:14] + record[:12] + head[38:]
        assert ones_sum(made[14:34]) == 0xFFFF
        assert struct.unpack("!2I2H", made[26:38]) == (flow.src, flow.dst, flow.src_port, flow.dst_port)
        assert record[14:] == bytes(2)


def makes_ipv6_frames() -> None:
    address = IPv6Address("2001:db8::7")
    (made,) = frames(RouteTable([Prefix(0, 0, 128)], [int(address)], 128))
    assert len(made) == 64
    assert made[12:14] == b"\x86\xdd"
    assert made[14] >> 4 == 6
    assert made[38:54] == address.packed
    assert struct.unpack_from("!H", made, 18) == (10,)


def writes_routes_for_dl3d() -> None:
    assert routes_of_dl3d([TEN], 1, "out") == "10.0.0.0/8 via 10.1.0.0 dev out\n"


def spreads_routes_over_all_next_hops() -> None:
    lines = routes_of_dl3d([TEN] * 5000, 256, "out").splitlines()
    assert len({line.split()[2] for line in lines}) == 256


def gives_each_next_hop_its_own_mac() -> None:
    assert len({next_hop_mac(i) for i in range(4096)}) == 4096


def writes_rules_for_l3fwd_shortest_first() -> None:
    assert routes_of_l3fwd([HOST, TEN]) == "R10.0.0.0/8 1\nR10.1.2.3/32 1\n"


def keeps_files_that_were_made(tmp_path: Path) -> None:
    files = TableFiles("one", tmp_path)
    path = files.destinations()
    before = path.read_bytes()
    path.write_bytes(b"kept")
    assert files.destinations().read_bytes() == b"kept"
    assert len(before) == 64 + 8 * 65_536
    assert [p for p in tmp_path.iterdir() if p != path] == []


def refuses_other_tables(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="unknown route table '2m'; expected one of one, 10k"):
        TableFiles("2m", tmp_path)
