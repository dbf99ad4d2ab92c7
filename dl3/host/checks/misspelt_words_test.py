"""Kernel parameters that nearly have a known name."""

import pytest

from dl3.host.checks.misspelt_words import check, meant
from dl3.host.fixture import Machine, found


def names_the_parameter_of_the_white_paper_that_the_kernel_ignores() -> None:
    made = Machine()
    made.words("isolCPUs=2-3")
    assert found(check, made) == [("blocker", "the kernel's command line has 'isolCPUs=2-3', which the kernel ignores")]


def names_the_file_of_the_bootloader_before_the_next_boot() -> None:
    made = Machine()
    made.texts["/etc/default/grub"] = 'GRUB_CMDLINE_LINUX="NOHZ_FULL=2"\n'
    made.texts["/boot/grub/grub.cfg"] = ""
    assert found(check, made) == [("blocker", "/etc/default/grub has 'NOHZ_FULL=2', which the kernel ignores")]


@pytest.mark.parametrize(
    ("key", "is_unknown", "right"),
    [
        ("isolcpus", False, None),
        ("nmi-watchdog", False, None),
        ("IsolCpus", False, "isolcpus"),
        ("isolcpu", True, "isolcpus"),
        ("isolcpu", False, None),
        ("hugepage", True, "hugepages"),
        ("BOOT_IMAGE", True, None),
        ("quiet", False, None),
    ],
)
def finds_what_was_meant(key: str, is_unknown: bool, right: str | None) -> None:
    assert meant(key, is_unknown) == right
