"""Linux guests in QEMU whose network cards are vhost-user ports of dl3d."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dl3.lab.guest import SHARED, card, memory, vhost_end
from harness.guest import GUEST, guest_command

PATIENCE_S = 1200.0  # only ends what hangs


@dataclass(frozen=True)
class Card:
    """A network card of a guest. `options` are further ones of virtio-net-pci, such as guest_csum=off."""

    socket: Path
    mac: str
    queues: int = 1
    options: Sequence[str] = ()


@dataclass
class GuestRun:
    """A guest that runs, with its output."""

    process: subprocess.Popen[bytes]
    log: Path

    def text(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace").replace("\r", "")

    def state(self) -> str:
        """Whether QEMU runs, and otherwise how it ended; what it said is part of the output."""
        status = self.process.poll()
        return "whose QEMU runs" if status is None else f"whose QEMU ended with {status}"

    def has_left(self) -> bool:
        """Whether its script has ended, or QEMU has."""
        return "guest: left with" in self.text() or self.process.poll() is not None


@contextmanager
def vhost_guest(
    folder: Path, name: str, script: str, cards: Sequence[Card], backend: str = SHARED, mib: int = 768
) -> Iterator[GuestRun]:
    """A guest that runs a shell script; its output is in a file in `folder`. It is killed at the end."""
    log = folder / f"{name}.log"
    # The guest sees this machine's files, but a /tmp of its own.
    file = GUEST / f"{folder.name}-{name}.sh"
    file.write_text(script)
    command = guest_command(file, memory(backend, mib))
    for number, one in enumerate(cards):
        options = [*one.options, "mq=on"] if one.queues > 1 else one.options
        command += [*vhost_end(number, one.socket, one.queues), *card(number, one.mac, options)]
    with log.open("w") as out, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as process:
        try:
            yield GuestRun(process, log)
        finally:
            process.kill()
            file.unlink()
