"""A dl3d of one's own."""

from collections.abc import Sequence
from pathlib import Path

from dl3.lab.namespace import Namespace
from dl3.lab.program import Program, Surroundings


class Forwarder(Program):
    """dl3d on a configuration text, in a folder of its own; the folder goes when the object is closed."""

    NAME = "dl3d"

    def __init__(
        self, program: Path, config: str, namespace: Namespace | None = None, options: Sequence[str] = ()
    ) -> None:
        super().__init__(program, config, Surroundings(namespace, options))
