"""The command dl3 host guest."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import ValidationError

from dl3.cli.host import Json, Recorded, tree_of
from dl3.cli.printing import err, out, print_json, table
from dl3.host.facts.read import read
from dl3.host.guest.guest import Guest, GuestRequest, guest_of
from dl3.host.guest.libvirt import libvirt_xml
from dl3.host.guest.qemu import qemu_arguments
from dl3.host.guest.qmp import Pinned, pin
from dl3.model.fault import UsageFault


class Form(StrEnum):
    """How a guest is printed."""

    QEMU = "qemu"
    LIBVIRT = "libvirt"


def request_from(**values: object) -> GuestRequest:
    """A request, or a sentence."""
    try:
        return GuestRequest.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageFault(f"invalid {first['loc'][0]} '{first['input']}': {first['msg']}") from error


def show(guest: Guest, form: Form, qmp: Path) -> None:
    """The command or the XML alone on standard output, so that it can be used; remarks on standard error."""
    for remark in guest.remarks:
        err.print(remark, highlight=False, soft_wrap=True, markup=False)
    text = shlex.join(qemu_arguments(guest, str(qmp))) if form == Form.QEMU else libvirt_xml(guest).rstrip()
    out.print(text, highlight=False, soft_wrap=True, markup=False)


Nics = Annotated[
    list[str] | None,
    typer.Option("--nic", metavar="ADDRESS", help="PCI address of a card or VF for the guest; may be repeated."),
]
Nodes = Annotated[list[int] | None, typer.Option("--node", min=0, metavar="N", help="NUMA node, without a card.")]
Cores = Annotated[int, typer.Option("--cores", min=1, metavar="N", help="Cores on each node, a vCPU on each.")]
Memory = Annotated[int, typer.Option("--memory", min=128, metavar="MIB", help="Memory on each node.")]
Page = Annotated[Literal["4K", "2M", "1G"], typer.Option("--page", help="Size of its pages.")]
Name = Annotated[str, typer.Option("--name", help="Name of the guest.")]
Disk = Annotated[str | None, typer.Option("--disk", metavar="FILE", help="Image in the format qcow2.")]
Forms = Annotated[Form, typer.Option("--form", help="Arguments of QEMU, or XML of libvirt.")]
Qmp = Annotated[Path, typer.Option("--qmp", metavar="SOCKET", help="QEMU's control socket.")]
Pins = Annotated[
    bool, typer.Option("--pin", help="Pin the vCPUs of the QEMU that runs with these arguments, and let it go on.")
]
Emulated = Annotated[bool, typer.Option("--emulated", help="Without KVM: works, but is no basis for figures.")]
RUN = Path("/run/guest.qmp")


def show_pinned(pinned: list[Pinned], as_json: bool) -> None:
    """Each vCPU with its thread and CPU."""
    if as_json:
        print_json([one.model_dump() for one in pinned])
    else:
        out.print(table("", (">vCPU", ">thread", ">CPU"), [(one.vcpu, one.thread, one.cpu) for one in pinned]))


def guest_command(
    nic: Nics = None,
    node: Nodes = None,
    cores: Cores = 2,
    memory: Memory = 4096,
    page: Page = "1G",
    name: Name = "guest",
    disk: Disk = None,
    form: Forms = Form.QEMU,
    qmp: Qmp = RUN,
    pins: Pins = False,
    emulated: Emulated = False,
    recorded: Recorded = None,
    as_json: Json = False,
) -> None:
    """Print the QEMU command or the libvirt XML of a guest on isolated cores, or pin one that runs.

    vCPUs are on whole cores of the node of the network card, memory is of that node, and all other threads of QEMU are
    on the cores that stay with Linux. QEMU starts stopped; --pin pins it over its control socket and lets it go on.

    Example: dl3 host guest --nic 0000:03:10.0 --cores 4 --memory 8192 --form libvirt
    """
    request = request_from(
        name=name,
        nics=tuple(nic or ()),
        nodes=tuple(node or ()),
        n_cores=cores,
        memory_mib=memory,
        page=page,
        disk=disk,
        is_emulated=emulated,
    )
    guest = guest_of(read(tree_of(recorded)), request)
    if pins:
        show_pinned(pin(qmp, guest), as_json)
    elif as_json:
        print_json(guest.model_dump(mode="json"))
    else:
        show(guest, form, qmp)
