"""The group 'dl3 lab': the topologies of the source reports, each with one command."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from dl3.cli.lab_steps import Action, Asked, Files, asked_of, carry_out, need_guests, need_used, print_qemu, rates_of
from dl3.cli.lazy import CONTEXT
from dl3.lab import kvm_report as kvm_lab
from dl3.labs import contrail as contrail_lab
from dl3.labs import kernel_notes as notes_lab
from dl3.labs import laptop as laptop_lab
from dl3.labs import vswitch as vswitch_lab
from dl3.labs.registry import SRIOV
from dl3.labs.sriov import why_not
from dl3.model.fault import UsageFault
from dl3.report.words import Language

app = typer.Typer(
    help="Repeat the source reports on this machine.\n\nExample: dl3 lab kvm-report",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=CONTEXT,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 lab': none."""


Step = Annotated[Action, typer.Argument(metavar="[up|measure|report|down]", help="One step; default: all.")]
Switches = Annotated[
    Literal["linux", "dl3d"],
    typer.Option("--switch", help="Linux bridges with TAP interfaces, or dl3d with vhost-user."),
]
Generators = Annotated[Literal["dl3gen", "pktgen"], typer.Option("--generator", help="What sends in VM1.")]
Forwarders = Annotated[Literal["l2fwd", "testpmd", "dl3d"], typer.Option("--forwarder", help="What forwards in VM2.")]
Short = Annotated[
    str, typer.Option("--short-queue", metavar="PLACE", help=f"Shorten a queue: {', '.join(kvm_lab.QUEUES)}.")
]
Vms = Annotated[int, typer.Option("--vms", metavar="N", help="2 guests, or 0: programs in their place.")]
OneVm = Annotated[int, typer.Option("--vms", metavar="N", help="1 guest, or 0: a program in its place.")]
Cores = Annotated[int, typer.Option("--cores", min=2, max=64, metavar="N", help="CPUs of each guest.")]
Seconds = Annotated[
    float, typer.Option("--seconds", min=0, max=3600, metavar="S", help="Of each load; 0: 10, emulated 5.")
]
Rates = Annotated[str, typer.Option("--rates", metavar="PPS,...", help="Loads, in frames per second.")]
Size = Annotated[
    int | None, typer.Option("--size", min=64, max=1518, metavar="BYTES", help="Frame size, including FCS.")
]
Emulated = Annotated[bool, typer.Option("--emulated", help="Do not use KVM.")]
Print = Annotated[bool, typer.Option("--print-qemu", help="Only print the commands that start the guests.")]
Record = Annotated[Path | None, typer.Option("--record", metavar="FILE", help="The record.")]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="The page.")]
Lang = Annotated[Language, typer.Option("--lang", help="Language of the page.")]


def perform(context: typer.Context, action: Action, asked: Asked, qemu: bool, files: Files) -> None:
    """Check what is asked for, and do it."""
    need_used(context, action)
    need_guests(asked)
    if qemu:
        print_qemu(asked)
    else:
        carry_out(action, asked, files)


@app.command(kvm_lab.NAME)
def kvm_report(
    context: typer.Context,
    action: Step = Action.ALL,
    switch: Switches = "linux",
    generator: Generators = "dl3gen",
    forwarder: Forwarders = "l2fwd",
    short_queue: Short = "",
    vms: Vms = 2,
    cores: Cores = 2,
    seconds: Seconds = 0.0,
    rates: Rates = "",
    size: Size = None,
    emulated: Emulated = False,
    qemu: Print = False,
    record: Record = None,
    output: Output = None,
    lang: Lang = Language.EN,
) -> None:
    """VM1 generates, VM2 forwards, and each lost frame is named at its place.

    Starts two guests, measures three loads, writes a report, and removes everything. The steps up, measure, report and down do
    the same one by one. Guests use KVM where it works and are emulated elsewhere.

    Example: dl3 lab kvm-report --switch dl3d --forwarder testpmd
    """
    programs = {"switch": switch, "generator": generator, "forwarder": forwarder, "short_queue": short_queue}
    loads = {"n_cpus": cores, "frame_bytes": size or 0, "rates_pps": rates_of(rates), "seconds": seconds}
    if vms == 0 and switch == "linux" and action in (Action.ALL, Action.UP) and not qemu:
        raise UsageFault("--vms 0 needs --switch dl3d: programs in place of guests use vhost-user")
    if short_queue not in ("", *kvm_lab.QUEUES):
        raise UsageFault(f"--short-queue {short_queue}: no such queue: expected {', '.join(kvm_lab.QUEUES)}")
    if generator == "pktgen" and short_queue == "vnet3" and switch == "dl3d":
        raise UsageFault(
            "--short-queue vnet3 with --switch dl3d is the receive ring of dl3gen: omit --generator pktgen"
        )
    asked = asked_of(kvm_lab.NAME, vms, emulated, **programs, **loads)
    perform(context, action, asked, qemu, Files(record, output, lang))


@app.command(contrail_lab.NAME)
def contrail(
    context: typer.Context,
    action: Step = Action.ALL,
    generator: Generators = "dl3gen",
    vms: Vms = 2,
    cores: Cores = 2,
    seconds: Seconds = 0.0,
    rates: Rates = "",
    size: Size = None,
    emulated: Emulated = False,
    qemu: Print = False,
    record: Record = None,
    output: Output = None,
    lang: Lang = Language.EN,
) -> None:
    """VM1 sends to VM2 by MPLS over UDP between two vRouters, at the loads of the OpenContrail report.

    Both vRouters are dl3d. With --vms 0 the VMs are dl3gen on this machine, and the rates are real ones; an emulated guest is
    much slower than the report's loads, so that there are others for it.

    Example: dl3 lab contrail --vms 0
    """
    loads = {"n_cpus": cores, "frame_bytes": size or 0, "rates_pps": rates_of(rates), "seconds": seconds}
    asked = asked_of(contrail_lab.NAME, vms, emulated, generator=generator, **loads)
    perform(context, action, asked, qemu, Files(record, output, lang))


@app.command(vswitch_lab.NAME)
def white_paper_vswitch(
    context: typer.Context,
    action: Step = Action.ALL,
    switch: Annotated[
        Literal["ovs", "dl3d", "both"], typer.Option("--switch", help="Open vSwitch, dl3d, or one after the other.")
    ] = "both",
    path: Annotated[
        Literal["port-to-port", "one-link", "two-links", "all"],
        typer.Option("--path", help="From port to port, or through a guest with one or two links."),
    ] = "all",
    vms: OneVm = 1,
    cores: Cores = 2,
    seconds: Seconds = 0.0,
    rates: Rates = "",
    size: Size = None,
    emulated: Emulated = False,
    qemu: Print = False,
    record: Record = None,
    output: Output = None,
    lang: Lang = Language.EN,
) -> None:
    """Open vSwitch and dl3d as the switch of a guest: from port to port, and through the guest by one link and by two.

    In the guest, testpmd sends back what comes. 'up' brings up one topology: choose it with --switch and --path.

    Example: dl3 lab white-paper-vswitch --switch dl3d --path two-links
    """
    which = {"switch": "" if switch == "both" else switch, "path": "" if path == "all" else path}
    loads = {"n_cpus": cores, "frame_bytes": size or 0, "rates_pps": rates_of(rates), "seconds": seconds}
    asked = asked_of(vswitch_lab.NAME, vms, emulated, **which, **loads)
    perform(context, action, asked, qemu, Files(record, output, lang))


@app.command(SRIOV)
def white_paper_sriov() -> None:
    """Say why the SR-IOV cases of the white paper cannot be repeated as a lab here, and what repeats them.

    Example: dl3 lab white-paper-sriov
    """
    raise UsageFault(why_not())


@app.command(notes_lab.NAME)
def kernel_notes(
    context: typer.Context,
    action: Step = Action.ALL,
    switch: Annotated[
        Literal["linux", "dl3d", "both"], typer.Option("--switch", help="Linux, dl3d, or one after the other.")
    ] = "both",
    path: Annotated[Literal["L2", "L3", "both"], typer.Option("--path", help="A bridge, or a router.")] = "both",
    seconds: Seconds = 0.0,
    rates: Rates = "",
    size: Size = None,
    record: Record = None,
    output: Output = None,
    lang: Lang = Language.EN,
) -> None:
    """Linux and dl3d as a bridge and as a router between two ports of dl3gen, without guests.

    Linux forwards between TAP interfaces, dl3d between vhost-user ports.

    Example: dl3 lab kernel-notes --path L3
    """
    which = {"switch": "" if switch == "both" else switch, "path": "" if path == "both" else path}
    loads = {"frame_bytes": size or 0, "rates_pps": rates_of(rates), "seconds": seconds}
    asked = asked_of(notes_lab.NAME, 0, False, **which, **loads)
    perform(context, action, asked, False, Files(record, output, lang))


@app.command(laptop_lab.NAME)
def router_on_a_laptop(
    context: typer.Context,
    action: Step = Action.ALL,
    seconds: Seconds = 0.0,
    rates: Rates = "",
    size: Size = None,
    record: Record = None,
    output: Output = None,
    lang: Lang = Language.EN,
) -> None:
    """dl3d routes between two Linux hosts, which are namespaces of this machine: one pings the other.

    'up' prints what to type first, and what to look at.

    Example: dl3 lab router-on-a-laptop up
    """
    loads = {"frame_bytes": size or 0, "rates_pps": rates_of(rates), "seconds": seconds}
    asked = asked_of(laptop_lab.NAME, 0, False, **loads)
    perform(context, action, asked, False, Files(record, output, lang))
