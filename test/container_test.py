"""The container image: built by its recipe, run without --privileged, it forwards between two hosts of Linux."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.shell import ping
from harness.wire import wait_until
from harness.wired import TOP

from dl3.control.client import Client
from dl3.control.replies import AnyReply
from dl3.lab.namespace import NAMESPACES, End, Lab, Namespace
from dl3.model.fault import Fault

PODMAN = ("podman", "--runtime", "runc", "--log-level", "error")
# Both may be lower than what podman would set by itself, and would then be refused.
LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
NAME, BASE, BUILT = "dl3-container-test", "localhost/dl3-test-debian", "localhost/dl3-test"
FORWARDS = ("NET_ADMIN", "NET_RAW", "IPC_LOCK")
MANY, HOUR_S = 5, 3600.0

pytestmark = [pytest.mark.long, pytest.mark.alone]  # minutes: an image is made


def _podman(*words: str) -> str:
    run = subprocess.run([*PODMAN, *words], capture_output=True, text=True, timeout=HOUR_S)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def image(packages_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the recipe makes on a Debian of the distribution's mirror."""
    tar = tmp_path_factory.mktemp("base") / "debian.tar"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "bookworm", str(tar)], check=True, timeout=HOUR_S)
    _podman("import", "--quiet", str(tar), BASE)
    # The build of packages is not what is tried here, so it may run as the builder wants.
    recipe = ("--file", str(TOP / "Containerfile"), "--build-arg", f"BASE={BASE}", "--tag", BUILT)
    _podman("build", "--isolation", "chroot", "--network", "host", *recipe, str(packages_of("bookworm")))
    try:
        yield BUILT
    finally:
        _podman("rmi", "--force", BUILT, BASE)


class Bed:
    """Two hosts, and a namespace of their own for the container."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab()
        self.middle = self.lab.namespace("middle", silent=True)
        self.hosts = [self.lab.namespace(f"host{index}") for index in range(2)]
        for index, host in enumerate(self.hosts):
            mac = f"02:00:00:00:{index:02x}"
            self.lab.cable(End(self.middle, f"p{index}", f"{mac}:01"), End(host, "eth0", f"{mac}:02"))
            host.ip("address", "add", f"10.0.{index}.2/24", "dev", "eth0")
            host.ip("route", "add", "default", "via", f"10.0.{index}.1")
            host.ip("neighbour", "add", f"10.0.{index}.1", "lladdr", f"{mac}:01", "dev", "eth0")
        self.etc, self.run = folder / "etc", folder / "run"
        for path in (self.etc, self.run):
            path.mkdir()

    def ask(self, method: str) -> Any:
        """The reply of dl3d's method."""
        return Client(self.run / "dl3d.sock").ask(AnyReply, method).root

    def start(self, image: str, keys: dict[str, Any], *options: str) -> None:
        """Run the image with what the guide says, and these options."""
        ports: list[dict[str, Any]] = [
            {"name": f"p{index}", "device": f"net_af_packet{index},iface=p{index}"} for index in range(2)
        ]
        if "linux" not in keys:
            ports = [port | {"addresses": [f"10.0.{index}.1/24"]} for index, port in enumerate(ports)]
        whole = {"ports": ports, "control": {"socket": "/run/dl3/dl3d.sock"}, "memory": {"hugepages": "never"}} | keys
        (self.etc / "dl3d.yaml").write_text(yaml.safe_dump(whole))
        mounts = ("--volume", f"{self.etc}:/etc/dl3:ro", "--volume", f"{self.run}:/run/dl3")
        network = ("--network", f"ns:{NAMESPACES / self.middle.name}")
        _podman("run", "--replace", "--detach", "--name", NAME, *LIMITS, *mounts, *network, *options, image)
        wait_until(self._is_up, "it forwards")

    def _is_up(self) -> bool:
        state = _podman("inspect", "--format", "{{.State.Running}}", NAME).strip()
        assert state == "true", subprocess.run([*PODMAN, "logs", NAME], capture_output=True, text=True).stderr
        with contextlib.suppress(Fault, OSError):
            return all(port["link_up"] for port in self.ask("ports")["ports"])
        return False

    def reach(self) -> None:
        """Each host reaches the other one."""
        for index, host in enumerate(self.hosts):
            wait_until(lambda host=host, index=index: _answers(host, index), "they met")  # type: ignore[misc]
            assert ping(host, f"10.0.{1 - index}.2", count=MANY).received == MANY

    def stop(self) -> None:
        """Remove container and namespaces."""
        subprocess.run([*PODMAN, "rm", "--force", "--time", "30", NAME], capture_output=True, check=False)
        self.lab.close()


def _answers(host: Namespace, index: int) -> bool:
    return ping(host, f"10.0.{1 - index}.2", "-W", "2", count=1).received == 1


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    try:
        yield made
    finally:
        made.stop()


def it_forwards_with_three_capabilities(bed: Bed, image: str) -> None:
    lines = [f"10.0.{index}.2 lladdr 02:00:00:00:{index:02x}:02 dev p{index}" for index in range(2)]
    bed.start(image, {"neighbours": lines}, *(f"--cap-add={name}" for name in FORWARDS))
    bed.reach()
    account = bed.ask("status")["account"]
    assert account["sent"] >= 4 * MANY
    wait_until(lambda: bed.ask("status")["account"]["in_flight"] == 0, "the account closed")
    shown = _podman("exec", NAME, "dl3", "show", "ports", "--socket", "/run/dl3/dl3d.sock")
    assert "p0" in shown
    _podman("stop", "--time", "30", NAME)
    assert _podman("inspect", "--format", "{{.State.ExitCode}}", NAME).strip() == "0"


def linux_is_its_control_plane_there_too(bed: Bed, image: str) -> None:
    more = ("--cap-add=SYS_ADMIN", "--security-opt", "unmask=ALL", "--device", "/dev/net/tun")
    bed.start(image, {"linux": {}}, *(f"--cap-add={name}" for name in FORWARDS), *more)
    for index in range(2):
        words = ("address", "add", f"10.0.{index}.1/24", "dev", f"p{index}")
        _podman("exec", NAME, "ip", "-n", "dl3d", *words)
    bed.reach()
