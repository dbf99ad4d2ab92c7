"""The command dl3 host vf."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from dl3.cli.host import Json, Recorded, tree_of
from dl3.cli.tuning import Output, deliver
from dl3.host.facts.read import read
from dl3.host.tuning.step import VfSettings
from dl3.host.tuning.vfs import plan_vfs
from dl3.model.fault import UsageFault

Value = TypeVar("Value")
SWITCH = {"on": True, "off": False}
Macs = Annotated[
    list[str] | None, typer.Option("--mac", metavar="MAC", help="MAC address of a VF; repeated, one for each in order.")
]
Vlans = Annotated[
    list[int] | None,
    typer.Option("--vlan", metavar="ID", help="VLAN of a VF, 0 for none; one for all, or one for each."),
]


def value_for(values: Sequence[Value] | None, n: int, count: int, what: str) -> Value | None:
    """The value of a VF: one for all, or one for each."""
    if not values:
        return None
    if len(values) not in (1, count):
        raise UsageFault(f"{len(values)} values of {what} for {count} VFs: give one for each, or one for all")
    return values[n if len(values) == count else 0]


def switch(text: str | None, what: str) -> bool | None:
    """'on' or 'off'."""
    if text is None:
        return None
    if text not in SWITCH:
        raise UsageFault(f"{what} is on or off, not '{text}'")
    return SWITCH[text]


def settings_of(mac: str | None, vlan: int | None, spoofchk: bool | None, trust: bool | None) -> VfSettings:
    """One VF, or a sentence."""
    try:
        return VfSettings(mac=mac.lower() if mac else None, vlan=vlan, spoofchk=spoofchk, trust=trust)
    except ValidationError as error:
        first = error.errors()[0]
        wanted = {"mac": "a MAC address of one station like 02:00:00:00:00:01", "vlan": "a number from 0 to 4094"}
        raise UsageFault(f"'{first['input']}' is not {wanted[str(first['loc'][0])]}") from error


def vf_command(
    pf: Annotated[str, typer.Argument(metavar="PF", help="PCI address of the network card.")],
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, max=256, help="Number of VFs.")],
    mac: Macs = None,
    vlan: Vlans = None,
    spoofchk: Annotated[
        str | None, typer.Option("--spoofchk", metavar="on|off", help="Drop other source addresses.")
    ] = None,
    trust: Annotated[
        str | None, typer.Option("--trust", metavar="on|off", help="Allow promiscuous mode and other MACs.")
    ] = None,
    bind: Annotated[bool, typer.Option("--bind", help="Give the VFs to vfio-pci.")] = False,
    output: Output = None,
    recorded: Recorded = None,
    as_json: Json = False,
) -> None:
    """Plan VFs of a network card, for 'dl3 host apply'. Changes nothing.

    They are made, waited for, configured by the card's interface, and bound. Unless 'dl3 host confirm' keeps them they are
    removed after 120 seconds. A card that has VFs already is refused.

    Example: dl3 host vf 0000:03:00.0 2 --mac 02:00:00:00:00:01 --mac 02:00:00:00:00:02 --bind --output vfs.json
    """
    if mac and len(mac) == 1 and number > 1:
        raise UsageFault(f"one MAC address for {number} VFs: give one for each")
    spoofs, trusts = switch(spoofchk, "--spoofchk"), switch(trust, "--trust")
    settings = tuple(
        settings_of(value_for(mac, n, number, "--mac"), value_for(vlan, n, number, "--vlan"), spoofs, trusts)
        for n in range(number)
    )
    tuning = plan_vfs(read(tree_of(recorded)), pf, settings, bind)
    deliver(tuning, output, as_json)
