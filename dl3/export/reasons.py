"""What collectors are told of a drop reason: columns of schema/verdicts.toml."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

# Names of sFlow's drop reasons (sFlow Dropped Packet Notification Structures), as far as schema/verdicts.toml uses them.
SFLOW = {
    "frag_needed": 4,
    "dst_net_unknown": 6,
    "dst_net_prohibited": 9,
    "dst_host_unknown": 7,
    "comm_admin_prohibited": 13,
    "unknown": 256,
    "ttl_exceeded": 257,
    "acl": 258,
    "no_buffer_space": 259,
    "traffic_shaping": 261,
    "pkt_too_big": 262,
    "src_mac_is_multicast": 263,
    "vlan_tag_mismatch": 264,
    "ingress_vlan_filter": 265,
    "port_list_is_empty": 267,
    "port_loopback_filter": 268,
    "blackhole_route": 269,
    "non_ip": 270,
    "ip_header_corrupted": 275,
    "unresolved_neigh": 279,
    "non_routable_packet": 281,
    "decap_error": 282,
    "unknown_l2": 284,
    "dmac_is_reserved": 294,
    "uc_reverse_path_forwarding": 302,
    "split_horizon": 303,
}
# Forwarding status (RFC 7270, 4.12).
FORWARDED, DROPPED = 64, 128


class Reason(NamedTuple):
    """Of a dropped packet."""

    sflow: int  # drop reason
    ipfix: int  # forwarding status


UNKNOWN = Reason(SFLOW["unknown"], DROPPED)


@cache
def reasons() -> dict[str, Reason]:
    """By the name of the verdict. Those without the columns are dropped for an unknown reason."""
    rows = tomllib.loads(files("dl3").joinpath("schema", "verdicts.toml").read_text())["verdict"]
    return {
        row["name"]: Reason(SFLOW[row.get("sflow", "unknown")], row.get("ipfix", DROPPED))
        for row in rows
        if row["name"] != "forward"
    }


def reason_of(verdict: str) -> Reason:
    """Of a verdict, also of one that this version does not know."""
    return reasons().get(verdict, UNKNOWN)
