"""Two Linux hosts connected through dl3d: each uses the kernel's TCP/IP stack, in its own network namespace."""

import json
import subprocess
import time

from dl3.lab.namespace import End, Lab, Namespace

CONFIG = """\
ports:
  - {name: left, device: 'net_af_packet0,iface=left', addresses: [10.0.1.1/24, 2001:db8:1::1/64]}
  - {name: right, device: 'net_af_packet1,iface=right', addresses: [10.0.2.1/24, 2001:db8:2::1/64]}
neighbours:
  - 10.0.1.2 lladdr 02:00:00:00:01:02 dev left
  - 2001:db8:1::2 lladdr 02:00:00:00:01:02 dev left
  - 10.0.2.2 lladdr 02:00:00:00:02:02 dev right
  - 2001:db8:2::2 lladdr 02:00:00:00:02:02 dev right
control: {socket: '@SOCKET@'}
memory: {hugepages: never}
"""
PICTURE = """
  host left                         dl3d                         host right
  10.0.1.2  ------ veth ------ left     right ------ veth ------ 10.0.2.2
  2001:db8:1::2                                             2001:db8:2::2
"""
SECONDS_OF_TCP = 2


def add_host(lab: Lab, middle: Namespace, label: str, number: int) -> Namespace:
    """A host on one side of dl3d. Neighbours are permanent, since dl3d does not answer ARP."""
    host = lab.namespace(label)
    lab.cable(End(middle, label, f"02:00:00:00:0{number}:01"), End(host, "eth0", f"02:00:00:00:0{number}:02"))
    for family, network, length in (("-4", f"10.0.{number}.", "24"), ("-6", f"2001:db8:{number}::", "64")):
        host.ip(family, "address", "add", f"{network}2/{length}", "dev", "eth0")
        router = f"{network}1"
        host.ip(family, "neighbour", "replace", router, "lladdr", f"02:00:00:00:0{number}:01", "dev", "eth0")
        host.ip(family, "route", "add", "default", "via", router)
    return host


def ping(host: Namespace, address: str) -> str:
    """Five echo requests; returns the last two lines, without the elapsed time."""
    lines = host.run("ping", "-c", "5", "-i", "0.1", "-w", "10", address).strip().splitlines()
    return f"ping {address}: {lines[-2].partition(', time')[0]}; {lines[-1]}"


def transfer(sender: Namespace, receiver: Namespace, address: str) -> str:
    """A TCP transfer with iperf3, as measured by the receiver."""
    server = subprocess.Popen(receiver.command("iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        text = sender.run("iperf3", "-c", address, "-t", str(SECONDS_OF_TCP), "-J", "--connect-timeout", "5000")
        received = json.loads(text)["end"]["sum_received"]
        return (
            f"iperf3 {address}: {received['bytes'] / 1e6:,.0f} MB in {received['seconds']:.1f} s,"
            f" {received['bits_per_second'] / 1e6:,.0f} Mbit/s"
        )
    finally:
        server.kill()
        server.wait()
