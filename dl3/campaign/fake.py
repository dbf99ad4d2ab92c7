"""A test vocabulary: kinds that support every field, and one that supports few."""

from dl3.campaign.vocabulary import Vocabulary
from dl3.model.campaign import Ability, Setup, Traffic

SENT = frozenset(Traffic.model_fields)
ALL = SENT.union(Setup.model_fields)
LAB = {"resets_over": frozenset(("veth",)), "most_bytes": 1518}
LITTLE = Ability.model_validate(
    {
        "honours": SENT.union(("dut", "generator_cores", "cores", "dut_cores")),
        "choices": {"mode": ("route", "bridge", "vxlan"), "wire": ("veth",)},
        **LAB,
    }
)
WIRED = Ability.model_validate(
    {
        "honours": ALL,
        "choices": {"mode": ("route", "xconnect", "bridge", "vxlan"), "wire": ("memif", "veth", "vhost")},
        **LAB,
    }
)
WITH_TABLE = WIRED.model_copy(update={"choices": {**WIRED.choices, "lookup": ("route", "flow")}})
CHAPTERS = {"thesis": {4: 8}, "white-paper": {1: 8, 2: 7, 3: 4}}  # number of cases per chapter, by source
NOTES = (
    "kernel L2",
    "kernel L3",
    "kernel, one core",
    "kernel VXLAN encapsulation",
    "DPDK L2",
    "SR-IOV, all VFs together",
)  # without numbers
CASES = [
    f"{source} {n}.{i + 1}" for source, parts in CHAPTERS.items() for n, most in parts.items() for i in range(most)
]

VOCABULARY = Vocabulary(
    kinds={
        "dl3d": WITH_TABLE,
        "l3fwd": WIRED,
        "testpmd": WIRED.model_copy(update={"choices": {"mode": ("io", "mac"), "wire": ("memif", "veth", "vhost")}}),
        "ovs": Ability(honours=ALL, choices={}),
        "linux": LITTLE,
        "vrouters": WIRED,
        "external": Ability(honours=frozenset(), choices={"generator": (), "streams": ()}),
    },
    published=frozenset((*CHAPTERS, *CASES, *(f"notes {case}" for case in NOTES), "vrouter 6.1")),
)
