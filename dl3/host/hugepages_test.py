"""How many huge pages may be asked for."""

from dl3.host.hugepages import available_pages


def test_counts_pages_that_fit_into_available_memory() -> None:
    assert available_pages("MemTotal: 24000000 kB\nMemAvailable:   4097 kB\n") == 2


def test_knows_no_pages_without_the_kernels_word() -> None:
    assert available_pages("MemTotal: 24000000 kB\n") == 0
