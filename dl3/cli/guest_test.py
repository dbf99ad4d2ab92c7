"""dl3 host guest."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.host.fixture import Machine
from dl3.model.fault import UsageFault

CARD = "0000:03:00.0"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A machine."""
    Machine(n_cores=4, nics=(CARD,)).write(tmp_path / "root")
    return str(tmp_path / "root")


def _dl3(*words: str) -> Result:
    return CliRunner().invoke(app, ["host", "guest", *words], prog_name="dl3")


def prints_a_command_alone_and_remarks_beside_it(root: str) -> None:
    done = _dl3("--for", root, "--nic", CARD)
    words = shlex.split(done.stdout)
    assert (words[0], words[-1]) == ("qemu-system-x86_64", "-S")
    assert "bind it to vfio-pci first, see 'dl3 host plan --bind'" in done.stderr


def prints_xml_or_the_value(root: str) -> None:
    xml = _dl3("--for", root, "--nic", CARD, "--form", "libvirt").stdout
    assert xml.startswith('<domain type="kvm">')
    assert xml.endswith("</domain>\n")
    value = json.loads(_dl3("--for", root, "--nic", CARD, "--json").stdout)
    assert value["nodes"] == [{"host_node": 0, "cpus": [1, 2], "memory_mib": 4096}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "a,b"), "invalid name 'a,b'"),
        (("--disk", "relative"), "invalid disk 'relative'"),
        (("--nic", "0000:99:00.0"), "0000:99:00.0 is no network card of this machine"),
        (("--nic", CARD, "--cores", "9"), "9 were requested"),
        (("--nic", CARD, "--pin", "--qmp", "/nowhere"), "no QEMU listens at /nowhere"),
    ],
)
def refuses_with_a_sentence(words: tuple[str, ...], said: str, root: str) -> None:
    fault = _dl3("--for", root, *words).exception
    assert isinstance(fault, UsageFault)
    assert said in str(fault)
    assert len(str(fault).splitlines()) == 1
