"""Kernel same-page merging."""

from dl3.host.checks.ksm import check
from dl3.host.fixture import Machine, found


def names_what_is_on_and_who_switches_it_on_again() -> None:
    made = Machine()
    assert found(check, made) == []
    made.service("ksmtuned")
    assert found(check, made)[0][1].endswith("is off now, and the service ksmtuned is enabled")
    made.texts["/sys/kernel/mm/ksm/run"] = "1\n"
    assert found(check, made)[0][1].endswith("is on, and the service ksmtuned is enabled")
