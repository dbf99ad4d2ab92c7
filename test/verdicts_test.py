"""Each verdict has a row that causes it: input frame, verdict, output frame."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest
from harness.frames import ICMP, IP, ICMPv6EchoRequest, IPv6, Raw, forwarded, ip4, ip6, on
from harness.wired import TOP, Port, WiredForwarder, host_mac, port_mac

PORTS = [
    Port("a", keys={"addresses": ["10.0.1.1/24", "2001:db8:1::1/64"]}),
    Port("b", keys={"addresses": ["10.0.2.1/24", "2001:db8:2::1/64", "fe80::2/64"]}),
    Port("c", mtu=1280, keys={"addresses": ["10.0.3.1/24"]}),
    Port(
        "d",
        device="net_memif{index},role=server,socket=@FOLDER@/d,socket-abstract=no",
        keys={"addresses": ["10.0.4.1/24"]},
    ),
    Port("e", device="net_pcap{index},iface={name}", keys={"addresses": ["10.0.5.1/24"], "mac": port_mac(4)}),
]
ROUTES = [
    "10.2.0.0/16 via 10.0.2.2 dev b",
    "10.2.99.0/24 via 10.0.2.99 dev b",
    "10.3.0.0/16 via 10.0.3.2 dev c",
    "10.4.0.0/16 via 10.0.4.2 dev d",
    "10.5.0.0/16 via 10.0.5.2 dev e",
    "blackhole 10.6.0.0/16",
    "unreachable 10.7.0.0/16",
    "prohibit 10.8.0.0/16",
    "2001:db8:22::/48 via 2001:db8:2::2 dev b",
    "2001:db8:33::/48 via fe80::3 dev c",
    "10.23.0.0/16 via 2001:db8:2::2 dev b",
]
NEIGHBOURS = [
    *(f"10.0.{i + 1}.2 lladdr {host_mac(i)} dev {port.name}" for i, port in enumerate(PORTS)),
    *(f"{address} lladdr {host_mac(1)} dev b" for address in ("2001:db8:2::2", "fe80::1")),
    f"fe80::3 lladdr {host_mac(2)} dev c",
]


@dataclass(frozen=True)
class Row:
    """A frame sent to port a, its verdict, its output port, and how many trailing bytes are dropped."""

    name: str
    frame: bytes
    verdict: str
    out: int | None = None
    trailer: int = 0

    def leaves(self, index: int) -> bytes:
        """The frame that comes out there."""
        return forwarded(self.frame, index)[: len(self.frame) - self.trailer]


def _cut(frame: bytes, n: int) -> bytes:
    return frame[:n]


def _with_options(dst: str) -> bytes:
    return on(0, IP(src="10.0.1.2", dst=dst, options=[b"\x94\x04\x00\x00"]) / ICMP())


def _hop_by_hop(dst: str) -> bytes:
    return on(
        0, IPv6(src="2001:db8:1::2", dst=dst, nh=0) / Raw(bytes.fromhex("3a00050200000000")) / ICMPv6EchoRequest()
    )


def _tagged(kind: int) -> bytes:
    frame = on(0, ip4("10.2.0.1"))
    return frame[:12] + kind.to_bytes(2, "big") + b"\x00\x05" + frame[12:]


TO_B = on(0, ip4("10.2.0.1"))
GOOD = [
    Row("forwards_ip4", TO_B, "forward", 1),
    Row("forwards_ip4_with_ttl_2", on(0, ip4("10.2.0.1", ttl=2)), "forward", 1),
    Row("forwards_ip4_with_ttl_255", on(0, ip4("10.2.0.1", ttl=255)), "forward", 1),
    Row("forwards_ip4_to_the_last_address", on(0, ip4("10.2.255.255")), "forward", 1),
    Row("forwards_ip4_of_an_unknown_protocol", on(0, IP(src="10.0.1.2", dst="10.2.0.1", proto=253)), "forward", 1),
    Row("forwards_a_padded_frame", on(0, IP(src="10.0.1.2", dst="10.2.0.1")) + bytes(26), "forward", 1),
    Row("forwards_no_more_padding", on(0, IP(src="10.0.1.2", dst="10.2.0.1")) + bytes(46), "forward", 1, 20),
    Row("forwards_no_ip4_trailer", on(0, ip4("10.2.0.1", payload=100)) + b"trailer", "forward", 1, 7),
    Row("forwards_no_ip6_trailer", on(0, ip6("2001:db8:22::1", payload=100)) + b"trailer", "forward", 1, 7),
    Row("forwards_a_full_frame", on(0, ip4("10.2.0.1", payload=1472)), "forward", 1),
    Row("forwards_as_long_as_the_mtu", on(0, ip4("10.3.0.1", payload=1252)), "forward", 2),
    Row("forwards_ip6_as_long_as_the_mtu", on(0, ip6("2001:db8:33::1", payload=1232)), "forward", 2),
    Row("forwards_no_trailer_beyond_the_mtu", on(0, ip4("10.3.0.1", payload=1252)) + bytes(6), "forward", 2, 6),
    Row("forwards_ip6", on(0, ip6("2001:db8:22::1")), "forward", 1),
    Row("forwards_ip6_with_hop_limit_2", on(0, ip6("2001:db8:22::1", hlim=2)), "forward", 1),
    Row("forwards_ip6_with_traffic_class", on(0, ip6("2001:db8:22::1", tc=0xB8, fl=0xFFFFF)), "forward", 1),
    Row("forwards_ip6_to_a_neighbour_on_link", on(0, ip6("2001:db8:2::2")), "forward", 1),
    Row("forwards_ip4_via_an_ip6_neighbour", on(0, ip4("10.23.0.1")), "forward", 1),
    Row("forwards_ip6_from_our_own_address", on(0, ip6("2001:db8:22::1", src="2001:db8:2::1")), "forward", 1),
    Row("forwards_ip4_to_a_neighbour_on_link", on(0, ip4("10.0.2.2")), "forward", 1),
]
# Checksums that are 0 or become 0, the corner case of RFC 1624.
GOOD += [Row(f"forwards_ip4_with_id_{i:#x}", on(0, ip4("10.2.0.1", id=i)), "forward", 1) for i in range(0, 65536, 4369)]
PARSE = [
    Row("drops_a_frame_that_ends_in_its_ip4_header", _cut(TO_B, 30), "runt"),
    Row("drops_a_frame_that_ends_in_its_ip6_header", _cut(on(0, ip6("2001:db8:22::1")), 50), "runt"),
    Row("drops_arp", on(0, Raw(bytes(46)), type=0x0806), "arp"),
    Row("drops_arp_for_all", on(0, Raw(bytes(46)), type=0x0806, dst="ff:ff:ff:ff:ff:ff"), "arp"),
    Row("drops_a_vlan_tag", _tagged(0x8100), "vlan_unknown"),
    Row("drops_a_provider_tag", _tagged(0x88A8), "vlan_unknown"),
    Row("drops_an_unknown_ethertype", on(0, Raw(bytes(46)), type=0x88CC), "ethertype_unknown"),
    Row("drops_another_ones_frame", on(0, ip4("10.2.0.1"), dst="02:00:00:00:00:77"), "mac_not_ours"),
    Row("drops_a_broadcast_frame", on(0, ip4("10.2.0.1"), dst="ff:ff:ff:ff:ff:ff"), "mac_group"),
    Row("drops_a_multicast_frame", on(0, ip4("224.0.0.5"), dst="01:00:5e:00:00:05"), "mac_group"),
    Row("drops_ip4_that_says_version_5", on(0, ip4("10.2.0.1", version=5)), "ip4_version"),
    Row("drops_ip4_with_a_header_of_16_bytes", on(0, ip4("10.2.0.1", ihl=4)), "ip4_header_length"),
    Row("drops_ip4_longer_than_its_frame", on(0, ip4("10.2.0.1", len=47)), "ip4_length"),
    Row("drops_ip4_shorter_than_its_header", on(0, ip4("10.2.0.1", len=19)), "ip4_length"),
    Row("drops_a_wrong_checksum", on(0, ip4("10.2.0.1", chksum=0x1234)), "ip4_checksum"),
    Row("drops_ip4_options", _with_options("10.2.0.1"), "ip4_options"),
    Row("drops_ip6_that_says_version_4", on(0, ip6("2001:db8:22::1", version=4)), "ip6_version"),
    Row("drops_ip6_longer_than_its_frame", on(0, ip6("2001:db8:22::1", plen=27)), "ip6_length"),
    Row("drops_hop_by_hop_options", _hop_by_hop("2001:db8:22::1"), "ip6_hop_by_hop"),
    Row("drops_a_loopback_source", on(0, ip4("10.2.0.1", src="127.0.0.1")), "martian_source"),
    Row("drops_a_multicast_source", on(0, ip4("10.2.0.1", src="224.1.1.1")), "martian_source"),
    Row("drops_source_0", on(0, ip4("10.2.0.1", src=str(IPv4Address(0)))), "martian_source"),
    Row("drops_an_ip6_multicast_source", on(0, ip6("2001:db8:22::1", src="ff02::1")), "martian_source"),
    Row("drops_an_ip6_loopback_source", on(0, ip6("2001:db8:22::1", src="::1")), "martian_source"),
    Row("drops_a_mapped_ip4_source", on(0, ip6("2001:db8:22::1", src="::ffff:10.0.1.2")), "martian_source"),
    Row("drops_an_unspecified_source", on(0, ip6("2001:db8:22::1", src="::")), "martian_source"),
    Row("drops_a_link_local_ip4_source", on(0, ip4("10.2.0.1", src="169.254.1.1")), "link_local_source"),
    Row("drops_a_link_local_ip6_source", on(0, ip6("2001:db8:22::1", src="fe80::1")), "link_local_source"),
]
LOOKUP = [
    Row("drops_without_a_route", on(0, ip4("192.0.2.1")), "no_route"),
    Row("drops_ip6_without_a_route", on(0, ip6("2001:db8:ffff::1")), "no_route"),
    Row("drops_what_says_it_comes_from_us", on(0, ip4("10.2.0.1", src="10.0.2.1")), "martian_source"),
    Row("drops_what_says_it_comes_from_us_for_us", on(0, ip4("10.0.1.1", src="10.0.2.1")), "local"),
    Row("drops_for_our_own_address", on(0, ip4("10.0.1.1")), "local"),
    Row("drops_for_our_address_on_another_port", on(0, ip6("2001:db8:2::1")), "local"),
    Row("drops_for_all_routers_of_a_link", on(0, ip6("2001:db8:2::")), "local"),
    Row("drops_for_a_broadcast_address", on(0, ip4("10.0.2.255")), "local"),
    Row("drops_into_a_blackhole", on(0, ip4("10.6.1.1")), "blackhole"),
    Row("drops_unreachable", on(0, ip4("10.7.1.1")), "unreachable"),
    Row("drops_prohibited", on(0, ip4("10.8.1.1")), "prohibit"),
    Row("drops_for_loopback", on(0, ip4("127.0.0.1")), "martian_destination"),
    Row("drops_for_class_e", on(0, ip4("240.0.0.1")), "martian_destination"),
    Row("drops_for_ip6_loopback", on(0, ip6("::1")), "martian_destination"),
    Row("drops_for_link_local_ip4", on(0, ip4("169.254.1.1")), "link_local_destination"),
    Row("drops_for_link_local_ip6", on(0, ip6("fe80::1")), "link_local_destination"),
    Row("drops_ip4_multicast", on(0, ip4("224.1.2.3"), dst=port_mac(0)), "multicast"),
    Row("drops_ip6_multicast", on(0, ip6("ff05::1"), dst=port_mac(0)), "multicast"),
]
CHECK = [
    Row("drops_for_an_unknown_neighbour", on(0, ip4("10.2.99.1")), "neighbour_unresolved"),
    Row("drops_for_an_unknown_host_on_link", on(0, ip4("10.0.2.77")), "neighbour_unresolved"),
    Row("drops_a_packet_whose_ttl_expires", on(0, ip4("10.2.0.1", ttl=1)), "ttl_expired"),
    Row("drops_a_packet_whose_ttl_is_0", on(0, ip4("10.2.0.1", ttl=0)), "ttl_expired"),
    Row("drops_a_packet_whose_hop_limit_expires", on(0, ip6("2001:db8:22::1", hlim=1)), "ttl_expired"),
    Row("drops_ip6_that_is_longer_than_the_mtu", on(0, ip6("2001:db8:33::1", payload=1233)), "mtu_exceeded"),
    Row("drops_what_is_longer_than_the_mtu", on(0, ip4("10.3.0.1", payload=1253, flags="DF")), "mtu_exceeded"),
]
SEND = [
    Row("drops_for_a_port_without_link", on(0, ip4("10.4.0.1")), "port_down"),
    Row("drops_what_the_device_refuses", on(0, ip4("10.5.0.1", payload=1200)), "tx_refused"),
]
ROWS = [*GOOD, *PARSE, *LOOKUP, *CHECK, *SEND]
MPLS = "src/datapath/mpls_test.c"
TUNNEL = "src/datapath/tunnel_test.c"
BRIDGE = "src/datapath/bridge_test.c"
# Verdicts that need a device of their own, each with the test that causes it.
ELSEWHERE = {
    "multi_segment": "test/devices_test.py",
    "frame_cut": "test/linux_mtu_test.py",
    "port_disabled": "src/datapath/punt_test.c",
    "linux": "src/datapath/punt_test.c",
    "not_synced": "test/linux_ready_test.py",
    **dict.fromkeys(("mpls_unknown", "mpls_reserved", "mpls_ttl", "mpls_deep", "mpls_payload"), MPLS),
    **dict.fromkeys(("tunnel_no_way", "tunnel_refused", "tunnel_nested", "tunnel_short"), TUNNEL),
    **dict.fromkeys(("tunnel_flags", "tunnel_unknown", "tunnel_checksum", "tunnel_ecn"), TUNNEL),
    "own_source": "src/datapath/source_test.c",
    "rpf_failed": "src/datapath/rpf_test.c",
    **dict.fromkeys(("acl_denied", "acl_rejected", "acl_punted", "acl_unparsable"), "src/datapath/acl_test.c"),
    "tc_dropped": "src/datapath/acl_tc_test.c",
    "police_red": "src/datapath/acl_police_test.c",
    **dict.fromkeys(("flow_dropped", "flow_punted", "flow_missing", "flow_unresolved"), "src/datapath/flow_test.c"),
    "mirror_failed": "src/datapath/mirror_test.c",
    **dict.fromkeys(("offload_bad", "segment_failed"), "src/datapath/offload_test.c"),
    "fragment_failed": "src/datapath/fragment_test.c",
    **dict.fromkeys(("bridge_source", "bridge_reserved", "bridge_no_port", "bridge_same_port"), BRIDGE),
    **dict.fromkeys(("bridge_isolated", "bridge_mtu", "bridge_copy_failed"), BRIDGE),
    "bridge_unknown": "src/datapath/bridge_out_test.c",
    **dict.fromkeys(("storm_broadcast", "storm_multicast", "storm_unknown"), BRIDGE),
    "redirect": "src/datapath/punt_test.c",
    **dict.fromkeys(("shape_codel", "shape_limit", "shape_pool", "shape_flushed"), "src/datapath/shape_test.c"),
    "worker_ring_full": "src/datapath/handover_test.c",
    "no_headroom": "src/datapath/encap_test.c",
    "punt_ring_full": "src/datapath/punt_test.c",
    "punt_over_limit": "src/tap/move_test.c",
    "tap_refused": "src/tap/move_test.c",
}


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    """Five ports: a receives, b and c have neighbours, d has no peer, e's device only takes short frames."""
    with WiredForwarder(PORTS, routes=ROUTES, neighbours=NEIGHBOURS) as made:
        made.namespace.ip("link", "set", "dev", "e", "mtu", "1000")
        yield made


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def frame_in_verdict_frame_out(wired: WiredForwarder, row: Row) -> None:
    before = wired.account()
    wired.wires["a"].send(row.frame)
    after = wired.settle(before.received + 1).since(before)
    assert after.drops == ({} if row.verdict == "forward" else {row.verdict: 1})
    assert after.received == 1
    assert after.sent == (1 if row.verdict == "forward" else 0)
    for index, port in enumerate(PORTS):
        wanted = row.leaves(index) if index == row.out else None
        assert wired.wires[port.name].receive(60.0 if wanted else 0.0) == wanted, f"what leaves on port {port.name}"


def every_verdict_has_a_row() -> None:
    names = {row["name"] for row in tomllib.loads((TOP / "schema" / "verdicts.toml").read_text())["verdict"]}
    covered = {row.verdict for row in ROWS} | set(ELSEWHERE)
    assert covered == names, (
        f"add a row to PARSE, LOOKUP, ... or ELSEWHERE: {names - covered}; remove: {covered - names}"
    )
    for test in ELSEWHERE.values():
        assert (TOP / test).exists()
