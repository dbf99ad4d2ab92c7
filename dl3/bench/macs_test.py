"""Frames between MAC addresses."""

import struct
from collections import Counter

import pytest

from dl3.bench import macs
from dl3.bench.macs import MAC_SETS, MacSet, addresses, content, order
from dl3.lab.tables import FRAME_BYTES, header_4, ones_sum

RECORD = struct.Struct("!6s6s4s")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a set with few addresses."""
    monkeypatch.setattr(macs, "MAC_SETS", {"few": MacSet(24, 6)})
    addresses.cache_clear()
    return "few"


def has_as_many_unicast_addresses_as_its_name_says() -> None:
    found = addresses("4k")
    assert len(set(found)) == len(found) == MAC_SETS["4k"].number == 4096
    assert all(mac[0] & 3 == 2 and len(mac) == 6 for mac in found)
    assert MAC_SETS["1m"].number == 1_000_000


def lets_every_host_send_to_its_partner_behind_the_other_port(few: str) -> None:
    known, whole = addresses(few), content(few)
    records = [RECORD.unpack_from(whole, FRAME_BYTES + i * RECORD.size) for i in range(64)]
    assert len(whole) == FRAME_BYTES + 64 * RECORD.size
    senders, receivers = known[:12], known[12:]
    assert {(sender, receiver) for receiver, sender, _ in records} == set(zip(senders, receivers, strict=True))
    ports_of = {(sender, ports) for _, sender, ports in records}
    assert len(ports_of) == len({ports for _, _, ports in records}) == 12


def repeats_no_pair_before_all_others_were_there() -> None:
    for name, macs_of in MAC_SETS.items():
        found = order(macs_of)[: 2 * macs_of.n_pairs]
        assert len(order(macs_of)) == 1 << macs_of.bits, name
        assert set(Counter(found).values()) == {2}
        assert found[: macs_of.n_pairs] != found[macs_of.n_pairs :]


def has_a_frame_whose_header_is_valid_and_whose_addresses_are_missing(few: str) -> None:
    frame = content(few)[:FRAME_BYTES]
    assert frame[:14] == bytes(12) + b"\x08\x00"
    assert ones_sum(frame[14:34]) == 0xFFFF
    assert frame[14:24] == header_4()[:10]
