"""What 'dl3 bench shape' refuses before anything is started, and what it prints."""

import pytest
from harness.shapings import shaping
from typer.testing import CliRunner

from dl3.bench.shape import Plan
from dl3.cli.bench import app
from dl3.cli.shape import numbers_of, plan_for, rates_of, row, show
from dl3.dut.shaping import Subscribers
from dl3.model.fault import UsageFault


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--subscribers", "0"), "--subscribers 0: '0'; expected numbers from 1 to 65024, like 1,1000,64000"),
        (("--subscribers", "1,,2"), "--subscribers 1,,2: ''; expected numbers"),
        (("--subscribers", "65025"), "--subscribers 65025: '65025'; expected numbers"),
        (("--rate", "3"), "--rate 3: '3'; expected bits per second, like 2Mbit/s"),
        (("--rate", "1kbit/s"), "--rate 1kbit/s: 1000 bit/s; a subscriber is shaped to 64kbit/s to 400Gbit/s"),
        (("--rate", ",".join(["1Mbit/s"] * 33)), "33 rates; expected at most 32"),
        (
            ("--subscribers", "1", "--rate", "1Mbit/s,2Mbit/s"),
            "--subscribers 1: fewer than the 2 rates of --rate; each needs one",
        ),
        (("--device", "ovs"), "--device ovs: expected one of dl3d, tc, external"),
        (("--device", "dl3d:wire"), "'dl3d:wire': invalid option 'wire' after ':': expected OPTION=VALUE"),
    ],
)
def refuses_with_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(app, ["shape", *words])
    assert isinstance(result.exception, UsageFault)
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


def the_help_has_an_example() -> None:
    result = CliRunner().invoke(app, ["shape", "--help"])
    assert result.exit_code == 0
    assert "Example: dl3 bench shape" in result.stdout


def rates_default_to_equal_parts_of_a_gigabit() -> None:
    base = Plan(Subscribers(1, (64_000.0,)))
    rates = [plan_for(n, rates_of(""), base).subscribers.rates_bps for n in numbers_of("1,1000,64000,1000")]
    assert rates == [(1e9,), (1e6,), (64_000.0,)]


def prints_each_result_and_who_got_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    result = shaping(silent=2)
    assert row(result)[:5] == ("1,000", "1 Mbit/s, 4 Mbit/s", "-0.010", "-0.400", "+0.210")
    show([result])
    printed = capsys.readouterr()
    assert "0.99999" in printed.out
    assert "of 2 fewer than two frames came" in printed.err
