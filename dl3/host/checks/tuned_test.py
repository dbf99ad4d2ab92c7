"""tuned beside dl3 host."""

from dl3.host.checks.tuned import check
from dl3.host.fixture import Machine, found


def names_an_active_profile() -> None:
    made = Machine()
    made.texts["/etc/tuned/active_profile"] = "virtual-guest\n"
    assert found(check, made) == [], "it does not run"
    made.service("tuned")
    assert found(check, made) == [("speed", "tuned is active with the profile virtual-guest")]


def a_profile_that_should_isolate_and_does_not_is_worse() -> None:
    made = Machine()
    made.service("tuned")
    made.texts["/etc/tuned/active_profile"] = "cpu-partitioning\n"
    assert found(check, made) == [("loss", "tuned is active with the profile cpu-partitioning")]
    made.isolate("2-3")
    assert found(check, made) == [("speed", "tuned is active with the profile cpu-partitioning")]
