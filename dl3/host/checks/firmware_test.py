"""The list for hands."""

from dl3.host.checks.firmware import ROWS, check
from dl3.host.fixture import Machine, found


def lists_the_bios_of_a_machine_and_not_that_of_a_virtual_one() -> None:
    made = Machine()
    assert [what for _, what in found(check, made)] == [f"BIOS: {row}" for row, _ in ROWS]
    made.texts["/proc/cpuinfo"] = "flags\t: fpu hypervisor\n"
    assert found(check, made) == [("note", "this is a virtual machine")]
