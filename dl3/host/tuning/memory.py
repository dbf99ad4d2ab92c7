"""How much memory dl3d needs on each node. The same computation as src/port/pools.c, for devices that are not open yet."""

from dl3.model.noun import Noun

DESCRIPTORS = 2048  # of each queue, unless the file of dl3d says otherwise
MTU = 1500
AROUND = 14 + 8 + 4  # Ethernet header, two VLAN tags, FCS
HEADROOM, LEAST_ROOM = 128, 2048
HEADER = 64 + 128  # of a mempool's object, and struct rte_mbuf
CACHE_LINE = 64
CACHE = 512  # mbufs of a worker
BURST, BURSTS_IN_HAND = 64, 4
LEAST_MBUFS = 4096
BASE_MIB, PORT_MIB = 24, 2
MIB = 1 << 20
POINTER = 8
LENT = 18_644  # mbufs that the TAP interfaces hold at most, per worker, with the default limits of all classes


class Load(Noun):
    """What dl3d will run on one node."""

    n_ports: int
    n_workers: int


def rounded(n: int, unit: int) -> int:
    """The next multiple."""
    return -(-n // unit) * unit


def object_bytes(mtu: int = MTU) -> int:
    """Size of a buffer, an odd number of cache lines."""
    room = rounded(max(mtu + AROUND, LEAST_ROOM) + HEADROOM, CACHE_LINE)
    lines = (HEADER + room) // CACHE_LINE
    return HEADER + room + (CACHE_LINE if lines % 2 == 0 else 0)


def pool_mbufs(load: Load, whole: Load, n_lent: int, descriptors: int) -> int:
    """Buffers of a node's pool. Each worker has a transmit queue in each port, and each port of the node a receive queue
    for each worker of the node; a frame of any pool may be in any transmit ring.
    """
    on_wire = whole.n_ports * whole.n_workers * descriptors
    received = load.n_ports * max(1, load.n_workers) * descriptors
    in_hand = whole.n_workers * (2 * CACHE + BURSTS_IN_HAND * BURST + n_lent)
    return rounded(max(received + on_wire + in_hand, LEAST_MBUFS) + 1, 1024) - 1


def pool_mib(n_mbufs: int, page_bytes: int = 1) -> int:
    """Memory of a pool, with the gaps at the ends of pages. In small pages, each buffer takes whole ones."""
    slots = 1
    while slots < n_mbufs + 1:
        slots *= 2
    size = n_mbufs * rounded(object_bytes(), page_bytes) + slots * POINTER
    return -(-(size + size // 50) // MIB)


def needed_mib(
    loads: dict[int, Load], n_lent: int = LENT, descriptors: int = DESCRIPTORS, page_bytes: int = 1
) -> dict[int, int]:
    """The memory of dl3d on each node in MiB."""
    whole = Load(
        n_ports=sum(load.n_ports for load in loads.values()), n_workers=sum(load.n_workers for load in loads.values())
    )
    found = {
        node: pool_mib(pool_mbufs(load, whole, n_lent, descriptors), page_bytes)
        for node, load in loads.items()
        if load.n_ports
    }
    if found:
        found[min(found)] += BASE_MIB + whole.n_ports * PORT_MIB
    return found
