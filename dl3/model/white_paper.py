"""The flows of the China Telecom DPDK white paper (V1.2, appendix 5), which differ in their destinations only."""

from collections.abc import Iterator

import numpy as np

from dl3.model.flow_file import FLOW, SLICE, Records

MOST_EACH_WAY = 1 << 24  # 16,777,216: all that the last three bytes of an address can tell apart
SOURCE, SRC_PORT, DST_PORT, UDP = 0x640A0001, 11, 101, 17  # 100.10.0.1
FIRST_BYTES = (101, 201)  # of the destinations, one each way
SOURCE_TEXT = "100.10.0.1"
FIRST_DESTINATIONS = tuple(f"{byte}.0.0.0" for byte in FIRST_BYTES)
NETWORKS = tuple(f"{first}/8" for first in FIRST_DESTINATIONS)


def white_paper_flows(each_way: int) -> Iterator[Records]:
    """Flow i goes to 101.c.b.a or 201.c.b.a in turn, where a is the lowest byte of i/2; so do actions 0 and 1."""
    for first in range(0, each_way, SLICE):
        numbers = np.arange(first, min(first + SLICE, each_way), dtype=np.uint32)
        made = np.zeros(2 * len(numbers), dtype=FLOW)
        made["src4"], made["src_port"], made["dst_port"], made["proto"] = SOURCE, SRC_PORT, DST_PORT, UDP
        for n, first_byte in enumerate(FIRST_BYTES):
            made["dst4"][n::2] = numbers | first_byte << 24
            made["action"][n::2] = n
        yield made
