"""What the flow table of a device in the lab takes. The bytes are those of docs/internals/flow.md."""

LINES_BYTES, LIFE_BYTES, COUNT_BYTES = 28.5, 8, 16  # per IPv4 flow; the counters per worker
ENDED_MIB = 5
MIB = 1 << 20


def n_table_flows(each_way: int) -> int:
    """Flows in the table: those of both directions, also if frames are only measured in one."""
    return 2 * each_way


def table_mib(each_way: int, n_workers: int = 1) -> int:
    """Memory of the table besides huge pages."""
    each = LINES_BYTES + LIFE_BYTES + COUNT_BYTES * n_workers
    return ENDED_MIB + -(-int(n_table_flows(each_way) * each) // MIB)
