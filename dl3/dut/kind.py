"""What a kind of device under test is, to those who open beds."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dl3.dut.bed import Bed
from dl3.model.campaign import Setup, Traffic


class Kind(Protocol):
    """One that can be started here, or of which it can be said why not."""

    @property
    def name(self) -> str:
        """As campaigns and commands write it."""

    def missing(self, options: Mapping[str, object], /) -> str:
        """'', or one sentence: what is not installed, and how to install it."""

    def opened(self, setup: Setup, traffic: Traffic, build: Path) -> AbstractContextManager[Bed]:
        """Start it with dl3gen on its wires; all is gone afterwards. Fault when it does not start or forward."""
