"""Reproducible routing tables for measurements: prefixes, and destinations that match them.

The prefix lengths of the large tables follow those of the Internet (the global IPv4 table plus a customer's long
prefixes; long IPv6 prefixes are inside 9,000 allocations, as in real tables).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

SEED = 20_261_121

# Number of prefixes per length; short lengths that have fewer values are used up completely.
LENGTHS_4 = {
    8: 16,
    9: 13,
    10: 40,
    11: 100,
    12: 300,
    13: 600,
    14: 1_200,
    15: 2_100,
    16: 13_500,
    17: 8_500,
    18: 14_000,
    19: 25_500,
    20: 44_500,
    21: 51_500,
    22: 112_000,
    23: 100_000,
    24: 600_000,
    25: 3_000,
    26: 3_000,
    27: 3_000,
    28: 3_000,
    29: 4_000,
    30: 3_500,
    32: 6_642,
}
LENGTHS_6 = {29: 8_000, 32: 30_000, 36: 8_000, 40: 14_000, 44: 16_000, 46: 9_000, 47: 4_000, 48: 110_000, 64: 1_000}

NOT_ROUTED_4 = (10, 127, 169)  # first octets excluded: the lab's own networks, loopback, link-local
REGISTRIES_6 = (0x2001, 0x2400, 0x2600, 0x2800, 0x2A00, 0x2C0F)
N_ALLOCATIONS_6 = 9_000


@dataclass(frozen=True)
class Prefix:
    """A prefix: an address as a number with host bits clear, and a length in bits."""

    value: int
    length: int
    bits: int  # 32 or 128

    def __str__(self) -> str:
        address = IPv4Address(self.value) if self.bits == 32 else IPv6Address(self.value)
        return f"{address}/{self.length}"

    def an_address(self, dice: random.Random) -> int:
        """A random address inside the prefix."""
        return self.value | dice.getrandbits(self.bits - self.length) if self.length < self.bits else self.value


@dataclass(frozen=True)
class Heads:
    """The leading bits of generated prefixes."""

    values: tuple[int, ...]
    length: int


def some_of_length(dice: random.Random, heads: Heads, length: int, wanted: int, bits: int) -> list[Prefix]:
    """The given number of distinct prefixes of one length below the heads, or as many as exist."""
    tail = length - heads.length
    wanted = min(wanted, len(heads.values) << tail)
    chosen: set[int] = set()
    while len(chosen) < wanted:
        chosen.add(dice.choice(heads.values) << tail | (dice.getrandbits(tail) if tail else 0))
    return [Prefix(value << (bits - length), length, bits) for value in sorted(chosen)]


def like_the_internet(dice: random.Random, heads: Heads, lengths: dict[int, int], bits: int) -> list[Prefix]:
    """A table with these prefix lengths, in random order."""
    table = [p for length, wanted in lengths.items() for p in some_of_length(dice, heads, length, wanted, bits)]
    dice.shuffle(table)
    return table


def internet_4(dice: random.Random) -> list[Prefix]:
    """1,000,011 IPv4 prefixes."""
    octets = tuple(octet for octet in range(1, 224) if octet not in NOT_ROUTED_4)
    return like_the_internet(dice, Heads(octets, 8), LENGTHS_4, 32)


def internet_6(dice: random.Random) -> list[Prefix]:
    """200,000 IPv6 prefixes."""
    heads = tuple(dice.choice(REGISTRIES_6) << 12 | dice.getrandbits(12) for _ in range(N_ALLOCATIONS_6))
    return like_the_internet(dice, Heads(heads, 28), LENGTHS_6, 128)


def one_4(_: random.Random) -> list[Prefix]:
    """48.0.0.0/8."""
    return [Prefix(48 << 24, 8, 32)]


def ten_thousand_4(_: random.Random) -> list[Prefix]:
    """10,240 adjacent /24 prefixes."""
    return [Prefix((48 << 24) + (i << 8), 24, 32) for i in range(10_240)]


def one_6(_: random.Random) -> list[Prefix]:
    """2001:db8::/32."""
    return [Prefix(0x2001_0DB8 << 96, 32, 128)]


@dataclass(frozen=True)
class Recipe:
    """How to generate a table."""

    prefixes: Callable[[random.Random], list[Prefix]]
    n_destinations: int  # a power of two


RECIPES = {
    "one": Recipe(one_4, 1 << 16),
    "10k": Recipe(ten_thousand_4, 1 << 18),
    "1m": Recipe(internet_4, 1 << 20),
    "v6-1": Recipe(one_6, 1 << 16),
    "v6-200k": Recipe(internet_6, 1 << 20),
}


@dataclass(frozen=True)
class RouteTable:
    """Prefixes, and destinations that each match one of them, uniformly distributed over the prefixes."""

    prefixes: list[Prefix]
    destinations: list[int]
    bits: int


@lru_cache(maxsize=1)
def make(name: str) -> RouteTable:
    """Generate the table of that name; identical on every machine and run."""
    recipe = RECIPES[name]
    dice = random.Random(SEED)
    prefixes = recipe.prefixes(dice)
    destinations = [dice.choice(prefixes).an_address(dice) for _ in range(recipe.n_destinations)]
    return RouteTable(prefixes, destinations, prefixes[0].bits)
