"""Locked-down kernels."""

from dl3.host.checks.lockdown import check
from dl3.host.fixture import Machine, found


def is_a_note() -> None:
    made = Machine()
    made.texts["/sys/kernel/security/lockdown"] = "[none] integrity confidentiality\n"
    assert found(check, made) == []
    made.texts["/sys/kernel/security/lockdown"] = "none [integrity] confidentiality\n"
    assert found(check, made) == [("note", "the kernel is locked down (integrity)")]
