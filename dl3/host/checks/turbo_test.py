"""Turbo."""

from dl3.host.checks.turbo import check
from dl3.host.fixture import Machine, found


def is_a_note() -> None:
    made = Machine()
    assert found(check, made) == []
    made.texts["/sys/devices/system/cpu/intel_pstate/no_turbo"] = "0\n"
    assert found(check, made) == [("note", "turbo is on")]
    made.texts["/sys/devices/system/cpu/intel_pstate/no_turbo"] = "1\n"
    assert found(check, made) == []
