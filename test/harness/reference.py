"""Routes by length in plain dictionaries: the reference for the forwarder's table."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

N_HOPS = 256


@dataclass(frozen=True)
class Family:
    """The differences between IPv4 and IPv6."""

    bits: int
    lengths: tuple[int, ...]
    most_common: int
    head: tuple[int, int, int]  # bits of the head, its lowest and highest value
    hop: str  # address of next hop number {}

    def random_address(self, rng: random.Random) -> int:
        """An address below one of the heads."""
        bits, low, high = self.head
        return rng.randint(low, high) << (self.bits - bits) | rng.getrandbits(self.bits - bits)

    def text(self, address: int) -> str:
        """An address in text form."""
        return str(IPv4Address(address) if self.bits == 32 else IPv6Address(address))


IP4 = Family(32, (*range(9, 29), 32), 24, (8, 1, 125), "172.16.{}.1")
IP6 = Family(128, (29, 32, 36, 40, 44, 46, 47, 48, 56, 64, 127, 128), 48, (16, 0x2400, 0x241F), "2001:db8:{:x}::1")


class Reference:
    """`n` random routes over all lengths, a random next hop each."""

    def __init__(self, family: Family, n: int, seed: int) -> None:
        self.family = family
        self.by_length: dict[int, dict[int, int]] = {length: {} for length in family.lengths}
        rng = random.Random(seed)
        n_left = n
        for length in (*(length for length in family.lengths if length != family.most_common), family.most_common):
            # Few are longer than the most common length, as in real tables.
            most = n // 40 if length < family.most_common else n // 400
            share = n_left if length == family.most_common else min(most, self._n_possible(length) // 8)
            self._fill(length, share, rng)
            n_left -= share

    def _n_possible(self, length: int) -> int:
        bits, low, high = self.family.head
        return (high - low + 1) << max(length - bits, 0)

    def _fill(self, length: int, n: int, rng: random.Random) -> None:
        routes, shift = self.by_length[length], self.family.bits - length
        while len(routes) < n:
            routes[self.family.random_address(rng) >> shift] = rng.randrange(N_HOPS)

    def find(self, address: int) -> int | None:
        """The next hop of the longest prefix that covers `address`."""
        for length in sorted(self.by_length, reverse=True):
            hop = self.by_length[length].get(address >> (self.family.bits - length))
            if hop is not None:
                return hop
        return None

    def lines(self) -> Iterator[str]:
        """The routes in the format of the file."""
        family = self.family
        for length, routes in self.by_length.items():
            for value, hop in routes.items():
                yield f"{family.text(value << (family.bits - length))}/{length} via {family.hop.format(hop)} dev b\n"

    def sample(self, n: int, seed: int) -> list[int]:
        """Addresses, half of them inside routes of uniformly chosen lengths, half at random."""
        rng = random.Random(seed)
        keys = {length: list(routes) for length, routes in self.by_length.items() if routes}
        out = [self.family.random_address(rng) for _ in range(n // 2)]
        while len(out) < n:
            length = rng.choice(list(keys))
            shift = self.family.bits - length
            out.append(rng.choice(keys[length]) << shift | (rng.getrandbits(shift) if shift else 0))
        return out
