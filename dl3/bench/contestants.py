"""The compared programs, each started in its own way with the same core, memory, burst and descriptors."""

from collections.abc import Callable

from dl3.bench.acls import make_acl_dl3d, make_l3fwd_acl
from dl3.bench.bridges import make_bridge_dl3d, make_bridge_ovs, make_bridge_testpmd
from dl3.bench.ceilings import make_dl3gen_over_memif, make_testpmd_over_memif
from dl3.bench.flows import make_flow_dl3d, make_l3fwd_em
from dl3.bench.forwarder import Settings, write_config
from dl3.bench.generators import make_dl3gen, make_testpmd_alone
from dl3.bench.one_worker import make_worker
from dl3.bench.shapers import make_police, make_sched, make_shaper
from dl3.bench.sides import (
    MAKER,
    Contestant,
    Entry,
    PairSettings,
    eal,
    job_of,
    march_of_build,
    march_of_distribution,
    march_of_peer,
)
from dl3.bench.taps import make_tapped_dl3d
from dl3.bench.twocores import make_memif_dl3d, make_memif_l3fwd, make_vhost_dl3d, make_vhost_testpmd
from dl3.bench.vxlan_routes import make_decap_dl3d, make_decap_ovs
from dl3.bench.vxlans import make_vxlan_dl3d, make_vxlan_ovs
from dl3.bench.workplace import BUILD, PEERS, TABLES, Workplace, built
from dl3.lab.tables import TableFiles


def make_dl3d(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d of one of our builds, with a generated configuration."""
    program = built(BUILD / folder / "src" / "dl3d", "make")
    settings = Settings(terms.core, terms.burst, entry.n_hops, terms.descriptors, entry.mode, terms.memory_mib)
    config = write_config(settings, TableFiles(entry.routes, TABLES), place)
    return Contestant(job_of(entry, terms, (str(program), str(config))), march_of_build(folder))


def make_l3fwd(name: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """l3fwd with LPM. The main lcore forwards: otherwise it would busy-wait on the same core."""
    program = built(PEERS / "l3fwd" / name, MAKER)
    is_ip6 = entry.routes.startswith("v6")
    rules4 = TableFiles("one" if is_ip6 else entry.routes, TABLES).l3fwd_rules()
    rules6 = TableFiles(entry.routes if is_ip6 else "v6-1", TABLES).l3fwd_rules()
    command = (
        *(str(program), *eal(terms, place, f"0@{terms.core}")),
        *("-p", "0x3", "-P", "--no-numa", "--config=(0,0,0)", "--parse-ptype", "--lookup=lpm"),
        *(f"--rx-queue-size={terms.descriptors}", f"--tx-queue-size={terms.descriptors}"),
        *(f"--rule_ipv4={rules4}", f"--rule_ipv6={rules6}"),
    )
    return Contestant(job_of(entry, terms, command), march_of_peer("l3fwd"))


def make_graph(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """l3fwd-graph: rte_graph's nodes, one route, and the burst size of its library."""
    program = built(PEERS / "l3fwd-graph" / "program", MAKER)
    command = (
        *(str(program), *eal(terms, place, f"0@{terms.core},1@{terms.core}")),
        *("-p", "0x3", "-P", "--no-numa", "--config=(0,0,1)"),
    )
    return Contestant(job_of(entry, terms, command), march_of_peer("l3fwd-graph"))


def make_testpmd(mode: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The distribution's testpmd; its main thread sleeps."""
    command = (
        *("dpdk-testpmd", *eal(terms, place, f"0@{terms.core},1@{terms.core}")),
        *("--nb-cores=1", f"--forward-mode={mode}", f"--burst={terms.burst}", "--no-lsc-interrupt", "--auto-start"),
        *(f"--rxd={terms.descriptors}", f"--txd={terms.descriptors}"),
    )
    return Contestant(job_of(entry, terms, command), march_of_distribution())


Maker = Callable[[Entry, PairSettings, Workplace], Contestant]

MAKERS: dict[str, Maker] = {
    "dl3d": lambda *side: make_dl3d(".", *side),
    "dl3d as built for testpmd": lambda *side: make_dl3d("peers/portable", *side),
    "dl3d with TAP interfaces": make_tapped_dl3d,
    "worker of dl3d": make_worker,
    "policing": make_police,
    "shaper of dl3d": lambda *side: make_shaper("peers/portable", *side),
    "rte_sched": lambda *side: make_sched("peers/portable", *side),
    "l3fwd": lambda *side: make_l3fwd("program", *side),
    "l3fwd linked alike": lambda *side: make_l3fwd("program-alike", *side),
    "dl3d with flows": make_flow_dl3d,
    "l3fwd exact match": make_l3fwd_em,
    "dl3d with access lists": make_acl_dl3d,
    "l3fwd access lists": make_l3fwd_acl,
    "l3fwd-graph": make_graph,
    "testpmd io": lambda *side: make_testpmd("io", *side),
    "testpmd macswap": lambda *side: make_testpmd("macswap", *side),
    "dl3gen": lambda *side: make_dl3gen(".", *side),
    "dl3gen as built for testpmd": lambda *side: make_dl3gen("peers/portable", *side),
    "testpmd": make_testpmd_alone,
    "dl3gen over memif": make_dl3gen_over_memif,
    "testpmd over memif": make_testpmd_over_memif,
    "dl3d over memif": lambda entry, terms, _: make_memif_dl3d(".", entry, terms),
    "l3fwd over memif": lambda entry, terms, _: make_memif_l3fwd(entry, terms),
    "dl3d over vhost": lambda entry, terms, _: make_vhost_dl3d("peers/portable", entry, terms),
    "testpmd over vhost": lambda entry, terms, _: make_vhost_testpmd(entry, terms),
    "dl3d with a bridge": lambda *side: make_bridge_dl3d("peers/portable", *side),
    "testpmd io both ways": make_bridge_testpmd,
    "Open vSwitch": make_bridge_ovs,
    "dl3d with VXLAN": lambda *side: make_vxlan_dl3d("peers/portable", *side),
    "Open vSwitch with VXLAN": make_vxlan_ovs,
    "dl3d with VXLAN that is routed": lambda *side: make_decap_dl3d("peers/portable", *side),
    "Open vSwitch with VXLAN that is routed": make_decap_ovs,
}


def contestant(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The side, ready to start."""
    return MAKERS[entry.program](entry, terms, place)
