"""Two dl3d with a bridge each, and VXLAN between them: hosts that talk through both."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from harness.tcp import carry
from harness.wire import wait_until
from harness.wired import DL3D, Port, config_text, host_mac, port_mac, settled

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace

BYTES = 1 << 20
MTU = 1400  # of hosts: room for the outer headers
LOCAL = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
UP_MACS = ("02:00:00:00:02:01", "02:00:00:00:02:02")


@dataclass
class Site:
    """A host, and the dl3d that it is connected to."""

    dl3d: Forwarder
    host: Namespace
    keys: dict[str, Any]
    index: int

    @property
    def address(self) -> str:
        return f"10.0.0.{self.index + 1}"

    @property
    def mac(self) -> str:
        return host_mac(self.index)

    def ping(self, other: "Site", *words: str) -> None:
        self.host.run("ping", "-c", "2", "-i", "0.2", "-W", "20", *words, other.address)

    def reload(self, **vxlan: Any) -> None:
        """Reload with other keys of the VXLAN."""
        bridge = self.keys["bridges"][0]
        keys = self.keys | {"bridges": [bridge | {"vxlan": bridge["vxlan"] | vxlan}]}
        text = _text(self.index, keys).replace("@SOCKET@", str(self.dl3d.socket))
        self.dl3d.file.write_text(text)
        self.dl3d.call("reload")


def _keys(index: int, family: int, checksum: bool) -> dict[str, Any]:
    here, there = LOCAL[family][index], LOCAL[family][1 - index]
    vxlan = {"vni": 100, "local": here, "remotes": [there], "udp_checksum": "on" if checksum else "off"}
    return {
        "neighbours": [f"{there} lladdr {UP_MACS[1 - index]} dev up"],
        "bridges": [{"name": "br0", "ports": ["in"], "vxlan": vxlan}],
    }


def _text(index: int, keys: dict[str, Any]) -> str:
    family = 6 if ":" in keys["bridges"][0]["vxlan"]["local"] else 4
    length = 64 if family == 6 else 24
    up = Port("up", keys={"addresses": [f"{LOCAL[family][index]}/{length}"]})
    return config_text([Port("in"), up], **keys)


@pytest.fixture(
    scope="module",
    params=[(4, False), pytest.param((6, True), marks=pytest.mark.long)],
    ids=["IPv4", "IPv6 with checksums"],
)
def sites(request: pytest.FixtureRequest) -> Iterator[tuple[Site, Site]]:
    family, checksum = request.param
    with Lab() as lab:
        middles = [lab.namespace(f"dl3d{index}", silent=True) for index in range(2)]
        hosts = [lab.namespace(f"host{index}") for index in range(2)]
        lab.cable(End(middles[0], "up", UP_MACS[0]), End(middles[1], "up", UP_MACS[1]))
        for index, (middle, host) in enumerate(zip(middles, hosts, strict=True)):
            lab.cable(End(middle, "in", port_mac(index)), End(host, "eth0", host_mac(index)))
            host.ip("link", "set", "dev", "eth0", "mtu", str(MTU))
            host.ip("address", "add", f"10.0.0.{index + 1}/24", "dev", "eth0")
        keys = [_keys(index, family, checksum) for index in range(2)]
        with (
            Forwarder(DL3D, _text(0, keys[0]), middles[0]) as first,
            Forwarder(DL3D, _text(1, keys[1]), middles[1]) as second,
        ):
            for dl3d in (first, second):
                dl3d.wait_ready()
                wait_until(partial(_is_up, dl3d), "both ports were up")
            yield Site(first, hosts[0], keys[0], 0), Site(second, hosts[1], keys[1], 1)


def _is_up(dl3d: Forwarder) -> bool:
    return all(port["link_up"] for port in dl3d.call("ports")["ports"])


def _ports_of(site: Site) -> dict[str, str]:
    """Which port each MAC address is behind."""
    return {row["mac"]: row["port"] for row in site.dl3d.call("macs")["macs"]}


def _wait_until_known(here: Site, there: Site) -> None:
    wanted = {here.mac: "in", there.mac: "vxlan"}
    wait_until(lambda: _ports_of(here).items() >= wanted.items(), "the bridge knew both hosts")


def hosts_ping_each_other_through_vxlan(sites: tuple[Site, Site]) -> None:
    first, second = sites
    early = [settled(site.dl3d, 0).drops.get("port_down", 0) for site in sites]  # frames of hosts before ports were up
    first.ping(second)
    second.ping(first, "-M", "do", "-s", str(MTU - 28))
    _wait_until_known(first, second)
    _wait_until_known(second, first)
    for site, before in zip(sites, early, strict=True):
        account = settled(site.dl3d, 8)
        assert account.drops.keys() <= {"bridge_reserved", "port_down"}
        assert account.drops.get("port_down", 0) == before


def tcp_carries_a_megabyte_whole_through_vxlan(sites: tuple[Site, Site]) -> None:
    first, second = sites
    carry(first.host, second.host, second.address, BYTES)
    for site in sites:
        settled(site.dl3d, BYTES // MTU)


def dl3_shows_the_vxlan_device_of_a_bridge(sites: tuple[Site, Site]) -> None:
    (vxlan,) = sites[0].dl3d.call("bridges")["bridges"][0]["vxlans"]
    assert (vxlan["vni"], vxlan["flood_remotes"], vxlan["learning_remotes"]) == (100, 1, True)
    command = [sys.executable, "-m", "dl3", "show", "bridges", "--socket", str(sites[0].dl3d.socket)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = next(line for line in shown.splitlines() if "vxlan" in line and "br0" in line)
    assert "100" in row


def another_vni_is_not_received_and_a_reload_brings_hosts_back(sites: tuple[Site, Site]) -> None:
    first, second = sites
    second.reload(vni=101)
    before = settled(second.dl3d, 0).drops.get("tunnel_unknown", 0)
    with first.host.entered():
        sender = socket.socket(type=socket.SOCK_DGRAM)

    def is_dropped() -> bool:
        sender.sendto(b"", (second.address, 9))
        return settled(second.dl3d, 0).drops.get("tunnel_unknown", 0) > before

    wait_until(is_dropped, "packets of another VNI were dropped")
    sender.close()
    second.reload()
    first.ping(second)
