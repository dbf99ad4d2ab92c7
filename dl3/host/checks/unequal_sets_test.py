"""The three sets of isolated CPUs."""

import pytest

from dl3.host.checks.unequal_sets import check
from dl3.host.fixture import RELEASE, Machine, found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", None),
        ("isolcpus=domain,2-3 nohz_full=2,3 rcu_nocbs=2-3", None),
        ("isolcpus=2-3 nohz_full=2-3", None),
        ("isolcpus=1-3 nohz_full=2-3 rcu_nocbs=2-3", "isolcpus=1-3, nohz_full=2-3, rcu_nocbs=2-3"),
        ("isolcpus=2-3", "isolcpus=2-3, no nohz_full=, no rcu_nocbs="),
        ("nohz_full=2-3 rcu_nocbs=2-3", "no isolcpus=, nohz_full=2-3, rcu_nocbs=2-3"),
        ("isolcpus=2-3 nohz_full=2-3 rcu_nocbs=3", "isolcpus=2-3, nohz_full=2-3, rcu_nocbs=3"),
    ],
)
def compares_sets_and_not_texts(words: str, said: str | None) -> None:
    made = Machine()
    made.words(words)
    expected = [("blocker", f"the sets of isolated CPUs differ: {said}")] if said else []
    assert found(check, made) == expected


def a_kernel_without_nohz_full_needs_the_other_two() -> None:
    made = Machine()
    made.texts[f"/boot/config-{RELEASE}"] = "CONFIG_CPU_ISOLATION=y\n"
    made.words("isolcpus=2-3 rcu_nocbs=2-3")
    assert found(check, made) == []
