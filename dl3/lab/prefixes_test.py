"""Routing tables are reproducible and have the documented shape."""

import hashlib
import random
from collections import Counter

import pytest

from dl3.lab.prefixes import LENGTHS_4, LENGTHS_6, NOT_ROUTED_4, SEED, Prefix, internet_6, make


def digest(name: str) -> str:
    table = make(name)
    some = [*map(str, table.prefixes[-1000:]), *map(str, table.destinations[-1000:])]
    text = " ".join([*some, str(len(table.prefixes)), str(len(table.destinations))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("one", "3070229ac9a8f30d"),
        ("10k", "4cb740f522cf31bf"),
        ("v6-1", "255800583d70e520"),
        ("v6-200k", "f69a9d867ae27ec2"),
        pytest.param("1m", "9c213ea97b4af9f2", marks=pytest.mark.long),
    ],
)
def makes_the_same_table_on_every_machine(name: str, known: str) -> None:
    assert digest(name) == known


@pytest.mark.long
def has_a_million_prefixes_with_the_lengths_of_the_internet() -> None:
    prefixes = make("1m").prefixes
    assert len(prefixes) == len(set(prefixes)) == 1_000_011
    assert Counter(prefix.length for prefix in prefixes) == Counter(LENGTHS_4)
    assert not {prefix.value >> 24 for prefix in prefixes} & set(NOT_ROUTED_4)


def has_two_hundred_thousand_ipv6_prefixes() -> None:
    prefixes = internet_6(random.Random(SEED))
    assert len(prefixes) == len(set(prefixes)) == sum(LENGTHS_6.values()) == 200_000
    assert Counter(prefix.length for prefix in prefixes) == Counter(LENGTHS_6)


@pytest.mark.parametrize("name", ["one", "10k", "v6-1", "v6-200k"])
def draws_destinations_inside_prefixes(name: str) -> None:
    table = make(name)
    lengths = {prefix.length for prefix in table.prefixes}
    known = {(prefix.value, prefix.length) for prefix in table.prefixes}
    n = len(table.destinations)
    assert n & (n - 1) == 0
    for destination in table.destinations[:1000]:
        assert any((destination >> (table.bits - k) << (table.bits - k), k) in known for k in lengths)


def writes_prefixes_as_people_do() -> None:
    assert str(Prefix(0xC0000200, 24, 32)) == "192.0.2.0/24"
    assert str(Prefix(0x20010DB8 << 96, 32, 128)) == "2001:db8::/32"
