"""The kernel configuration of Linux as a router."""

from dl3.dut.linux import core_mask


def names_processors_as_the_kernel_reads_them() -> None:
    assert core_mask([0, 1]) == "3"
    assert core_mask([31]) == "80000000"
    assert core_mask([32, 1]) == "1,00000002"
    assert core_mask([64]) == "1,00000000,00000000"
