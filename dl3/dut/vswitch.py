"""A private instance of Open vSwitch with DPDK: its programs, and the commands that configure it."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dl3.dut import dpdk
from dl3.lab.command import run
from dl3.lab.process import Process
from dl3.lab.single import START_SECONDS, start_process

SERVER, SWITCH = "ovsdb-server", "ovs-vswitchd"
WITH_DPDK = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")  # path in Debian
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
BRIDGE = "dl3"
OWN_BURST = 32  # NETDEV_MAX_BURST
PATIENCE_S = 120.0  # until a switch on a busy machine has its ports
LONG_SECONDS = 600.0  # for a million flows


@dataclass(frozen=True)
class Vswitch:
    """The files of an instance are in its folder, which is private."""

    folder: Path

    @property
    def database(self) -> Path:
        """The socket of ovsdb-server."""
        return self.folder / "db.sock"

    @property
    def control(self) -> Path:
        """The control socket of ovs-vswitchd, which exists as soon as it runs."""
        return self.folder / f"{SWITCH}.ctl"

    @property
    def openflow(self) -> Path:
        """The OpenFlow socket of its bridge, which exists as soon as that does."""
        return self.folder / f"{BRIDGE}.mgmt"

    def vsctl(self, *words: str) -> str:
        """Run ovs-vsctl; returns when the switch has applied the change."""
        patience = f"--timeout={PATIENCE_S:.0f}"
        return run(["ovs-vsctl", f"--db=unix:{self.database}", patience, *words], LONG_SECONDS)

    def ofctl(self, method: str, *words: str) -> str:
        """Run ovs-ofctl for its bridge."""
        return self.ofctl_of(BRIDGE, method, *words)

    def ofctl_of(self, bridge: str, method: str, *words: str) -> str:
        """Run ovs-ofctl for another one, too."""
        return run(["ovs-ofctl", method, f"unix:{self.folder / bridge}.mgmt", *words], LONG_SECONDS)

    def appctl(self, *words: str) -> str:
        """Run ovs-appctl."""
        return run(["ovs-appctl", "--target", str(self.control), *words])

    def start_server(self, other_config: Mapping[str, str]) -> Process:
        """Create a database with this configuration and start its server."""
        file = self.folder / "conf.db"
        run(["ovsdb-tool", "create", str(file), str(SCHEMA)])
        command = (SERVER, str(file), f"--remote=punix:{self.database}", f"--unixctl={self.folder / SERVER}.ctl")
        server = start_process(SERVER, command, self.folder)
        server.wait_until(self.database.exists, "was ready", START_SECONDS)
        words = (f"other_config:{key}={value}" for key, value in other_config.items())
        self.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *words)
        return server

    @property
    def command(self) -> tuple[str, ...]:
        """Starts ovs-vswitchd."""
        return (
            *("env", f"OVS_RUNDIR={self.folder}", str(WITH_DPDK), f"unix:{self.database}"),
            f"--unixctl={self.control}",
        )

    def wrong_port(self, *names: str) -> str:
        """'', or the first of the ports that does not work, with the reason."""
        for name in names:
            if error := self.vsctl("get", "Interface", name, "error").strip().strip('[]"'):
                return f"port {name} does not work: {error}"
        return ""


def needs() -> str:
    """See dl3.dut.kind.Kind.missing."""
    if WITH_DPDK.exists() and shutil.which("ovs-vsctl") and shutil.which(SERVER):
        return ""
    return f"Open vSwitch with DPDK is not installed: {dpdk.INSTALL} (package openvswitch-switch-dpdk)"
