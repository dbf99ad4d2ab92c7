"""What is not applied."""

from dl3.host.checks.prescribed import check
from dl3.host.fixture import Machine, found


def names_what_costs_security_or_the_connection_and_asks_for_nothing() -> None:
    said = found(check, Machine())
    assert {severity for severity, _ in said} == {"note"}
    for word in ("selinux=0", "firewalld", "NetworkManager", "mitigations=off"):
        assert any(what.startswith(f"prescribed, not applied: {word}") for _, what in said)
