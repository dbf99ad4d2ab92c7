"""The interface of a kind of device under test."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dl3.dut.bed import Bed
from dl3.lab.endpoint import Device, Endpoint
from dl3.model.campaign import Ability, Setup, Traffic
from dl3.model.fault import UsageFault

ALWAYS_HONOURED = ("dut", "generator_cores")
AS_WANTED = Traffic()


class Kind(Protocol):
    """A kind that can be started here, or that reports why not."""

    @property
    def name(self) -> str:
        """Name used in campaigns and commands."""

    @property
    def ability(self) -> Ability:
        """What can be configured; everything else is rejected when it is opened."""

    def missing(self, options: Mapping[str, object], /) -> str:
        """'', or one sentence: what is not installed, and how to install it."""

    def opened(self, setup: Setup, traffic: Traffic, build: Path, /) -> AbstractContextManager[Bed]:
        """Start it with dl3gen on its wires; everything is removed afterwards. Fault if it does not start or forward.

        The call itself rejects unsupported settings, before anything is started.
        """


class Subject(Protocol):
    """A device with everything needed to start it on the lab's links."""

    def started(self, endpoint: Endpoint) -> AbstractContextManager[Device]:
        """Start and configure it; return once dl3gen can be started. It is stopped gracefully at the end of the
        context.
        """

    def about(self, endpoint: Endpoint, device: Device) -> Mapping[str, object]:
        """'version' and 'configuration', for the record."""


def check_honoured(setup: Setup, honours: frozenset[str], sent: Traffic = AS_WANTED) -> None:
    """Reject settings that this kind does not support; `sent` is for kinds whose streams are not made from a traffic
    definition.
    """
    for noun in (setup, sent):
        for name, field in type(noun).model_fields.items():
            value = getattr(noun, name)
            if name not in honours and name not in ALWAYS_HONOURED and value != field.default:
                raise UsageFault(
                    f"{setup.dut.name}: a device of the kind '{setup.dut.kind}' cannot be given {name} = {value}; "
                    f"leave it at {field.default}, or take another kind"
                )


def chosen_options(setup: Setup, choices: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """All options of a kind; the first choice is the default."""
    for name, value in setup.dut.options.items():
        if name not in choices:
            known = ", ".join(choices) or "none"
            raise UsageFault(f"{setup.dut.name}: the kind '{setup.dut.kind}' has no option '{name}'; it has {known}")
        if value not in choices[name]:
            wanted = ", ".join(choices[name])
            raise UsageFault(f"{setup.dut.name}: option {name} is '{value}'; expected one of {wanted}")
    return {name: str(setup.dut.options.get(name, values[0])) for name, values in choices.items()}
