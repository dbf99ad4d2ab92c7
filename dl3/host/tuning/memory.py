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


def pool_mib(n_mbufs: int, mtu: int = MTU) -> int:
    """Memory of a pool, with the gaps at the ends of pages."""
    n = rounded(max(n_mbufs, LEAST_MBUFS) + 1, 1024) - 1
    slots = 1 << n.bit_length() if n & (n + 1) else n + 1
    size = n * object_bytes(mtu) + slots * POINTER
    return -(-(size + size // 50) // MIB)


def needed_mib(loads: dict[int, Load], n_lent: int = LENT, descriptors: int = DESCRIPTORS) -> dict[int, int]:
    """The memory of dl3d on each node in MiB. Each worker has a transmit queue in each port, and each port a receive
    queue for each worker of its node; a frame of any pool may be in any transmit ring.
    """
    n_workers = sum(load.n_workers for load in loads.values())
    n_ports = sum(load.n_ports for load in loads.values())
    on_wire = n_ports * n_workers * descriptors
    found = {}
    for node, load in loads.items():
        if not load.n_ports:
            continue
        received = load.n_ports * max(1, load.n_workers) * descriptors
        in_hand = n_workers * (2 * CACHE + BURSTS_IN_HAND * BURST + n_lent)
        found[node] = pool_mib(received + on_wire + in_hand)
    if found:
        found[min(found)] += BASE_MIB + n_ports * PORT_MIB
    return found
