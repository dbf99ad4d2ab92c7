"""The two memif links between dl3gen and a forwarder: devices, addresses, and the streams across them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dl3.lab.endpoint import Role, Wire
from dl3.model.fault import Fault
from dl3.model.traffic import End
from dl3.model.white_paper import FIRST_DESTINATIONS

NAMES = ("left", "right")
GENERATOR_MACS = ("02:00:00:00:00:11", "02:00:00:00:00:12")
DUT_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
DUT_ADDRESSES = ("10.0.1.1/24", "10.0.2.1/24")
GENERATOR_ADDRESSES = ("10.0.1.2", "10.0.2.2")
NETWORKS = ("198.18.0.0/16", "198.19.0.0/16")  # of RFC 2544's /15: the networks behind the links
FIRST_HOSTS = ("198.18.0.1", "198.19.0.1")
# The same for IPv6; the networks are part of RFC 5180's 2001:2::/48.
DUT_ADDRESSES_6 = ("2001:db8:1::1/64", "2001:db8:2::1/64")
GENERATOR_ADDRESSES_6 = ("2001:db8:1::2", "2001:db8:2::2")
NETWORKS_6 = ("2001:2:0:1::/64", "2001:2:0:2::/64")
FIRST_HOSTS_6 = ("2001:2:0:1::1", "2001:2:0:2::1")
ENDS = tuple(
    End(
        port=NAMES[i],
        mac=GENERATOR_MACS[i],
        gateway_mac=DUT_MACS[i],
        first_ip4=FIRST_HOSTS[i],
        first_ip6=FIRST_HOSTS_6[i],
        first_of_white_paper=FIRST_DESTINATIONS[1 - i],
    )
    for i in range(2)
)
HOSTS = 65_024  # number of addresses that a stream may iterate over in one network
CATCH_UP = 16_384  # frames, one ring of the lab: hypervisors preempt virtual cores for up to a few ms


@dataclass(frozen=True)
class Links:
    """A folder for the sockets, and the ring size; the forwarder is the server of both links.

    With zero copy the client's buffers are exchanged directly and the server does all the copying: dl3gen then has more
    CPU time to offer frames. The forwarder's work is the same.
    """

    folder: Path
    ring_bits: int
    is_zero_copy: bool = False
    name: str = "memif"

    def socket(self, number: int) -> Path:
        """Socket of a link."""
        return self.folder / f"{NAMES[number]}.memif"

    def device(self, number: int, role: Role) -> str:
        """One end of a link, in the form of EAL's --vdev."""
        zero_copy = ",zero-copy=yes" if self.is_zero_copy and role == "client" else ""
        where = f"socket={self.socket(number)},socket-abstract=no"
        return f"net_memif{number},role={role},id=0,{where},rsize={self.ring_bits}{zero_copy}"

    def devices(self, role: Role) -> tuple[str, str]:
        """Both ends of one program."""
        return self.device(0, role), self.device(1, role)

    def enter(self, _role: Role, *command: str) -> list[str]:
        """No change: the sockets can be reached from any namespace."""
        return list(command)

    def is_listening(self) -> bool:
        """Whether the server listens on both sockets."""
        return all(self.socket(i).exists() for i in range(2))

    def buffers(self) -> dict[str, int]:
        """With zero copy, all ring slots hold buffers of dl3gen."""
        number = max(32, 1 << self.ring_bits)
        return {"rx_descriptors": number, "tx_descriptors": number} if self.is_zero_copy else {}

    def reset_port(self) -> None:
        """Not possible: dl3gen would poll a dead peer."""
        raise Fault("a memif link cannot go down while dl3gen polls it: give the device the option 'wire: veth'")


@dataclass(frozen=True)
class Flows:
    """Stream parameters besides the rate: one stream per direction, with destinations in one network."""

    size: int | str | list[dict[str, int]] = 64  # including the FCS, or a mix of dl3gen
    number: int = 1  # per direction; destination addresses first, then source ports
    is_both_ways: bool = False


def addresses_and_ports(number: int) -> tuple[int, int]:
    """Numbers of addresses and ports whose product is at least `number` flows."""
    hosts = min(number, HOSTS)
    return hosts, -(-number // hosts)


def stream(start: int, flows: Flows, rate: str) -> dict[str, Any]:
    """The stream that starts at link `start`, in dl3gen's format."""
    end = 1 - start
    hosts, ports = addresses_and_ports(flows.number)
    return {
        "name": ("east", "west")[start],
        "from": NAMES[start],
        "to": NAMES[end],
        "src_mac": GENERATOR_MACS[start],
        "dst_mac": DUT_MACS[start],
        "src_ip": FIRST_HOSTS[start],
        "dst_ip": {"first": FIRST_HOSTS[end], "count": hosts},
        "src_port": {"first": 1024, "count": ports},
        "dst_port": 4791,
        "flows": flows.number,
        "catch_up": CATCH_UP,
        "size": flows.size,
        "rate": rate,
    }


def streams(flows: Flows, rate: str = "1 Mpps") -> list[dict[str, Any]]:
    """One stream, or one per direction."""
    return [stream(start, flows, rate) for start in range(2 if flows.is_both_ways else 1)]


def generator_file(links: Wire, cores: Sequence[int], burst: int, given: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """dl3gen's configuration: its ports are distributed over its workers, one worker per core."""
    devices = links.devices("client")
    ports = [{"name": NAMES[i], "device": devices[i], "mac": GENERATOR_MACS[i], **links.buffers()} for i in range(2)]
    return {
        "ports": ports,
        "workers": [{"core": core} for core in cores],
        "burst": burst,
        "memory": {"hugepages": "require"},
        "control": {"socket": str(links.folder / "dl3gen.sock")},
        "streams": list(given),
    }
