"""CPU lists of kernel parameters, and masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.host.cores import listed
from dl3.host.cpulist import cpus_of, cpus_of_mask, flags_of, mask_of


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("2-3,8", {2, 3, 8}),
        ("managed_irq,domain,2-3", {2, 3}),
        ("14-N", {14, 15}),
        ("all", set(range(16))),
        ("0-15:2/4", {0, 1, 4, 5, 8, 9, 12, 13}),
        ("12-99", {12, 13, 14, 15}),
        ("3-2", None),
        ("0-15:5/4", None),
        ("2..3", None),
        ("2-", None),
    ],
)
def reads_a_list_as_the_kernel_does(text: str, cpus: set[int] | None) -> None:
    assert cpus_of(text, 15) == cpus


def reads_the_flags_of_isolcpus() -> None:
    assert flags_of("managed_irq,domain,2-3") == {"managed_irq", "domain"}
    assert flags_of("2-3") == frozenset()


@given(st.frozensets(st.integers(0, 200)))
def a_list_and_a_mask_of_cpus_are_read_as_what_was_written(cpus: frozenset[int]) -> None:
    assert cpus_of_mask(mask_of(cpus)) == cpus
    if cpus:
        assert cpus_of(listed(cpus), 200) == cpus


def writes_masks_in_groups_of_32_bits() -> None:
    assert [mask_of(frozenset(one)) for one in ((), (0, 1), (33,), (64, 0))] == [
        "0",
        "3",
        "2,00000000",
        "1,00000000,00000001",
    ]
