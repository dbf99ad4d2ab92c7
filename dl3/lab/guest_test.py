"""The topology as a value, and QEMU's arguments from it."""

from pathlib import Path

import pytest

from dl3.lab.guest import boot, lab_command
from dl3.lab.guest_image import cache_folder, need_packages
from dl3.lab.kind import SHORT_RING, Settings, devices_of, ring_keys
from dl3.lab.kvm_report import QUEUES, topology_of
from dl3.lab.switches import dl3d_config
from dl3.model.fault import UsageFault
from dl3.model.lab import VM1, VM2, Accelerator, Switch

FOLDER = Path("/run/x")


def _command(switch: Switch, accelerator: Accelerator) -> list[str]:
    topology = topology_of(Settings(switch=switch, n_cpus=3), accelerator)
    booted = boot(Path("/image"), Path("/top"), Path("/image/agent.sh"), {"python": "/python"})
    return lab_command(topology, topology.station(VM2), FOLDER, booted)


@pytest.mark.parametrize("accelerator", ["kvm", "tcg"])
@pytest.mark.parametrize("switch", ["linux", "dl3d"])
def starts_a_guest_with_both_of_its_cards(switch: Switch, accelerator: Accelerator) -> None:
    command = _command(switch, accelerator)
    text = " ".join(command)
    assert command[command.index("-accel") + 1].split(",")[0] == accelerator
    assert command[command.index("-smp") + 1] == "3"
    assert ("ifname=vnet1" in text and "ifname=vnet2" in text) == (switch == "linux")
    assert ("path=/run/x/vnet1.sock" in text and "share=on" in text) == (switch == "dl3d")
    assert "guest.script=/image/agent.sh" in text
    assert [word for word in command if word.startswith("virtio-net-pci")] == [
        f"virtio-net-pci,netdev=n{n},mac=02:00:00:00:02:0{n + 2},vectors=0{',ctrl_rx=off' if switch == 'linux' else ''}"
        for n in range(2)
    ]


def joins_the_ports_of_a_bridge() -> None:
    topology = topology_of(Settings(), "tcg")
    assert topology.nodes == {"br0": ("vnet0", "vnet1"), "br1": ("vnet2", "vnet3")}
    config = dl3d_config(topology_of(Settings(switch="dl3d"), "tcg"), FOLDER, [4, 5])
    assert config["bridges"] == [
        {"name": "br0", "ports": ["vnet0", "vnet1"]},
        {"name": "br1", "ports": ["vnet2", "vnet3"]},
    ]
    assert config["workers"] == [
        {"core": 4, "queues": ["vnet0/0", "vnet1/0"]},
        {"core": 5, "queues": ["vnet2/0", "vnet3/0"]},
    ]


@pytest.mark.parametrize("queue", QUEUES)
def shortens_one_queue_only(queue: str) -> None:
    topology = topology_of(Settings(switch="dl3d", short_queue=queue), "none")
    found = {vm.name: ring_keys(topology, vm) for vm in topology.stations}
    wanted = {
        "vnet1": {VM1: {}, VM2: {"rx_descriptors": SHORT_RING}},
        VM2: {VM1: {}, VM2: {"tx_descriptors": SHORT_RING}},
        "vnet3": {VM1: {"rx_descriptors": SHORT_RING}, VM2: {}},
    }
    assert found == wanted[queue]


def puts_programs_in_place_of_guests() -> None:
    topology = topology_of(Settings(switch="dl3d"), "none")
    assert not topology.guests
    assert [device.split(",")[1] for device in devices_of(topology, topology.station(VM1), FOLDER)] == [
        "path=/run/x/vnet0.sock",
        "path=/run/x/vnet3.sock",
    ]


def names_the_package_of_a_missing_program() -> None:
    with pytest.raises(UsageFault, match=r"^qemu-x not installed: apt install qemu-x$"):
        need_packages({"no-such-program": "qemu-x"})


def refuses_a_cache_that_a_guest_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/tmp/cache")
    with pytest.raises(UsageFault, match="a guest cannot read /tmp/cache/dl3/guest, because it has a /tmp of its own"):
        cache_folder()
