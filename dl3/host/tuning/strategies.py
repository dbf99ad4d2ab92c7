"""Random machines and requests, for laws that hold on all of them. Used by tests, not by commands."""

from hypothesis import strategies as st

from dl3.host.fixture import Machine
from dl3.host.tuning.request import Request


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Any machine that has a core for a worker beside each card."""
    n_nodes, n_threads = draw(st.integers(1, 4)), draw(st.sampled_from((1, 1, 2, 4)))
    n_cores = draw(st.integers(2, 6))
    n_cpus = n_nodes * n_cores * n_threads
    nic_nodes = tuple(draw(st.lists(st.integers(-1, n_nodes - 1), min_size=1, max_size=3)))
    made = Machine(
        n_nodes=n_nodes,
        n_cores=n_cores,
        n_threads=n_threads,
        interleaved=draw(st.booleans()),
        offline=tuple(draw(st.sets(st.integers(1, n_cpus - 1), max_size=n_cpus // 3))),
        nics=tuple(f"0000:{n + 3:02x}:00.0" for n in range(len(nic_nodes))),
        nic_nodes=nic_nodes,
        governor=draw(st.sampled_from((None, "powersave", "performance"))),
        idle_states=draw(st.sampled_from(((), (("C1", 2), ("C6", 170))))),
        has_iommu=draw(st.booleans()),
        driver=draw(st.sampled_from(("ixgbe", "vfio-pci", "mlx5_core"))),
    )
    for n in range(draw(st.integers(0, 4))):
        made.irq(40 + n, f"irq{n}", str(draw(st.sampled_from([c for c in range(n_cpus) if c not in made.offline]))))
    for name in draw(st.sets(st.sampled_from(("NetworkManager", "tuned", "irqbalance")))):
        made.service(name)
    if draw(st.booleans()):
        del made.texts["/usr/sbin/driverctl"]
    if draw(st.booleans()):
        made.texts["/sys/class/net/eth0/queues/rx-0/rps_cpus"] = f"{(1 << n_cpus) - 1:x}\n"
    if draw(st.booleans()):
        made.nic("0000:81:00.0", 0, "mgmt")
        made.default_route(draw(st.sampled_from((4, 6))), "mgmt")
    return made


requests = st.builds(
    Request,
    binds=st.booleans(),
    no_turbo=st.booleans(),
    page=st.sampled_from(("2M", "1G")),
    n_cores=st.sampled_from((None, 1)),
)
