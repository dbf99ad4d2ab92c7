"""The power of a machine fails at random moments while a plan is applied: it is before or after, never between."""

import random
import time
from pathlib import Path

import pytest
from harness.debian import copy_disk
from harness.emulated import Emulated, card_of, emulated

RESETS = 20
BEYOND = 1.2  # of the time that an apply takes: some moments are after its end
JOURNAL = "/var/lib/dl3-host/journal.json"
# All files that an apply could change. The journal has times, and a boot may write the list of disks of GRUB.
FILES = "find /etc /boot/grub /boot/loader /var/lib/dl3-host -type f -o -type l -o -type d"
STATE = (
    f"({FILES}) 2>/dev/null | sort | xargs stat -c '%n %f %u %g'; ({FILES}) 2>/dev/null | sort | grep -v {JOURNAL} | "
    + ("xargs -d '\\n' sha256sum 2>/dev/null")
)

pytestmark = [pytest.mark.long, pytest.mark.alone]  # an emulated machine boots twenty times: half an hour


def state(machine: Emulated) -> str:
    """Names, modes, owners and contents."""
    return machine.must(f"{STATE}; true")


class Cut:
    """A machine whose power fails."""

    def __init__(self, machine: Emulated) -> None:
        self.machine, self.card = machine, card_of(machine)
        self.before, self.n_interrupted = state(machine), 0
        self.after, self.seconds = self._whole()

    def _plan(self) -> str:
        """A plan for the machine as it is now; interrupts have other numbers after each boot."""
        self.machine.must(f"dl3 host plan --nic {self.card} --cores 1 --output /run/plan.json")
        return "dl3 host apply /run/plan.json"

    def _whole(self) -> tuple[str, float]:
        """The state after an apply that nothing interrupted and its boot, and how long the apply takes."""
        command = self._plan()
        start = time.monotonic()
        self.machine.must(command)
        seconds = time.monotonic() - start
        self.machine.reboot()
        after = state(self.machine)
        assert after != self.before
        self.back()
        return after, seconds

    def back(self) -> None:
        """Undo."""
        self.machine.must("dl3 host undo")
        assert state(self.machine) == self.before

    def fails_after(self, seconds: float) -> None:
        """Apply, and let the power fail meanwhile; then the next call."""
        self.machine.agent.start(self._plan())
        time.sleep(seconds)  # any moment will do
        self.machine.reset()
        self.machine.up()
        said = self.machine.run("dl3 host confirm")  # any command that changes something
        units = self.machine.must("journalctl -b -u dl3-host-trial.service; true")
        self.n_interrupted += "interrupted" in said.error + units
        found = state(self.machine)
        assert found in (self.before, self.after), (seconds, said, units)
        if found == self.after:
            self.back()


def is_before_or_after_and_never_between(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy_disk("bookworm", tmp_path / "disk")
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    with emulated(tmp_path / "disk") as machine:
        cut = Cut(machine)
        for _ in range(RESETS):
            cut.fails_after(moments.uniform(0, BEYOND) * cut.seconds)
    with capsys.disabled():
        print(f"\n  seed {seed}: {cut.n_interrupted} of {RESETS} resets interrupted an apply of {cut.seconds:.0f} s")
    assert cut.n_interrupted > 0
