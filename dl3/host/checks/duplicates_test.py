"""Parameters that are set twice."""

from dl3.host.checks.duplicates import check
from dl3.host.fixture import Machine, found


def names_both_files() -> None:
    made = Machine()
    made.texts["/etc/default/grub"] = 'GRUB_CMDLINE_LINUX="isolcpus=1"\n'
    assert found(check, made) == []
    made.texts["/etc/default/grub.d/50-cloudimg-settings.cfg"] = 'GRUB_CMDLINE_LINUX_DEFAULT="isolcpus=2"\n'
    assert found(check, made) == [
        (
            "blocker",
            "isolcpus= is set more than once: isolcpus=1 in /etc/default/grub, isolcpus=2 in "
            "/etc/default/grub.d/50-cloudimg-settings.cfg",
        )
    ]


def counts_the_file_of_dl3_too() -> None:
    made = Machine()
    made.texts["/etc/default/grub.d/90-dl3.cfg"] = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=2-3"\n'
    assert found(check, made) == []
    made.texts["/etc/default/grub"] = 'GRUB_CMDLINE_LINUX="isolcpus=1"\n'
    assert found(check, made)[0][1].endswith("isolcpus=1 in /etc/default/grub, and in /etc/default/grub.d/90-dl3.cfg")
