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
from dl3.host.guest.qmp import pin
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


def guest_command(
    nic: Annotated[
        list[str] | None,
        typer.Option("--nic", metavar="ADDRESS", help="PCI address of a card or VF for the guest; may be repeated."),
    ] = None,
    node: Annotated[
        list[int] | None, typer.Option("--node", min=0, metavar="N", help="NUMA node, without a card.")
    ] = None,
    cores: Annotated[int, typer.Option("--cores", min=1, metavar="N", help="Cores on each node, a vCPU on each.")] = 2,
    memory: Annotated[int, typer.Option("--memory", min=128, metavar="MIB", help="Memory on each node.")] = 4096,
    page: Annotated[Literal["4K", "2M", "1G"], typer.Option("--page", help="Size of its pages.")] = "1G",
    name: Annotated[str, typer.Option("--name", help="Name of the guest.")] = "guest",
    disk: Annotated[str | None, typer.Option("--disk", metavar="FILE", help="Image in the format qcow2.")] = None,
    form: Annotated[Form, typer.Option("--form", help="Arguments of QEMU, or XML of libvirt.")] = Form.QEMU,
    qmp: Annotated[Path, typer.Option("--qmp", metavar="SOCKET", help="QEMU's control socket.")] = Path(
        "/run/guest.qmp"
    ),
    pins: Annotated[
        bool, typer.Option("--pin", help="Pin the vCPUs of the QEMU that runs with these arguments, and let it go on.")
    ] = False,
    emulated: Annotated[
        bool, typer.Option("--emulated", help="Without KVM: works, but is no basis for figures.")
    ] = False,
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
        pinned = pin(qmp, guest)
        rows = [(one.vcpu, one.thread, one.cpu) for one in pinned]
        if as_json:
            print_json([one.model_dump() for one in pinned])
        else:
            out.print(table("", (">vCPU", ">thread", ">CPU"), rows))
    elif as_json:
        print_json(guest.model_dump(mode="json"))
    else:
        show(guest, form, qmp)
