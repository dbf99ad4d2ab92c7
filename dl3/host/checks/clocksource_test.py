"""The clock source."""

from dl3.host.checks.clocksource import check
from dl3.host.fixture import Machine, found


def names_a_slow_one() -> None:
    made = Machine()
    assert found(check, made) == []
    made.texts["/sys/devices/system/clocksource/clocksource0/current_clocksource"] = "hpet\n"
    assert found(check, made) == [("speed", "the clock source is hpet")]
