"""The option --at of campaigns and comparisons: the machine of the devices that dl3 does not start itself."""

from pathlib import Path
from typing import Annotated, TypeVar

import typer

from dl3.bench.past import Past
from dl3.campaign.plan import jobs_of
from dl3.campaign.reader import Campaign
from dl3.campaign.written import WrittenDut
from dl3.cli import given
from dl3.dut import external
from dl3.dut.beds import KINDS
from dl3.model.campaign import DutSpec, Plan
from dl3.model.fault import UsageFault

At = Annotated[
    str,
    typer.Option(
        callback=given.machine, metavar="URL", help="Machine that runs the 'external' devices: ssh://admin@192.0.2.7."
    ),
]


Device = TypeVar("Device", DutSpec, WrittenDut)


def there(device: Device, at: str) -> Device:
    """The device on the machine given by --at; UsageFault if it cannot run there or names another machine."""
    if not at:
        return device
    if device.kind in KINDS and device.kind != external.KIND.name:
        raise UsageFault(
            f"--at {at}: dl3 starts '{device.name}' itself, and only on this machine: start it there by hand and measure "
            "it as a device of the kind 'external', or set the option 'at' only for the devices that are there"
        )
    if "at" in device.options:
        raise UsageFault(
            f"--at {at}: the option 'at' of '{device.name}' already names its machine: omit one of the two"
        )
    return device.model_copy(update={"options": {**device.options, "at": at}})


def campaign_there(campaign: Campaign, at: str) -> Campaign:
    """The setup with all of its devices on that machine."""
    duts = tuple(there(dut, at) for dut in campaign.written.duts)
    return campaign.model_copy(update={"written": campaign.written.model_copy(update={"duts": duts})})


def devices_of(plan: Plan) -> dict[str, DutSpec]:
    """The devices by name."""
    return {job.setup.dut.name: job.setup.dut for job in jobs_of(plan)}


def where(device: DutSpec) -> str:
    """The machine as the user wrote it."""
    at = device.options.get("at")
    return f"on {at}" if at else "without 'at'"


def refuse_moved(record: Path, past: Past, now: Plan) -> None:
    """Refuse to continue the record of a device on one machine with the same device on another."""
    devices = devices_of(now)
    for name, device in devices_of(past.plan).items():
        was, is_now = (where(spec) for spec in (device, devices.get(name, device)))
        if was != is_now:
            raise UsageFault(
                f"{record} was started with '{name}' {was}, now it is {is_now}: use the same --at, or choose another file"
            )
