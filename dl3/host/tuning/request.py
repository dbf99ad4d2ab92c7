"""What is asked of a tuning."""

from typing import Literal

from dl3.host.facts.devices import Nic
from dl3.host.facts.read import Facts
from dl3.host.management import cards, refuse_management
from dl3.model.fault import UsageFault
from dl3.model.noun import Noun


class Request(Noun):
    """Without any value: cores and pages near all network cards that the machine is not managed through."""

    nics: tuple[str, ...] = ()  # PCI addresses
    nodes: tuple[int, ...] = ()  # instead of those of the cards
    n_cores: int | None = None  # for workers, on each node; default: one per card
    page: Literal["2M", "1G"] = "2M"
    binds: bool = False  # the cards to vfio-pci
    no_turbo: bool = False


class Place(Noun):
    """A node, the cards on it that are used, and the number of cores for workers."""

    node: int
    nics: tuple[str, ...]
    n_cores: int


def chosen_cards(facts: Facts, request: Request) -> tuple[Nic, ...]:
    """The cards for the forwarder."""
    managed = cards(facts)
    if not request.nics:
        return tuple(nic for nic in facts.nics if nic.address not in managed and not nic.physfn)
    found = []
    for address in request.nics:
        nic = facts.nic(address)
        if not nic:
            known = ", ".join(one.address for one in facts.nics) or "none"
            raise UsageFault(f"{address} is no network card of this machine: its cards are {known}")
        refuse_management(facts, address, "using the card")
        found.append(nic)
    return tuple(found)


def no_card(facts: Facts) -> str:
    """Why there is none."""
    managed = cards(facts)
    if not managed:
        return "this machine has no network card on PCI: name a node with --node to plan cores and pages for virtual devices"
    reasons = "; ".join(f"{address}: {reason}" for address, reason in managed.items() if facts.nic(address))
    return f"this machine is managed through all its network cards ({reasons}): add a card, or name a node with --node"


def places(facts: Facts, request: Request) -> tuple[Place, ...]:
    """Where workers go."""
    nics = chosen_cards(facts, request) if request.nics or not request.nodes else ()
    nodes = request.nodes or tuple(sorted({facts.node_of(nic) for nic in nics}))
    if not nodes:
        raise UsageFault(no_card(facts))
    found = []
    for node in nodes:
        if node not in facts.cpus.nodes:
            raise UsageFault(
                f"node {node} has no CPU: the nodes of this machine are {', '.join(map(str, facts.cpus.nodes))}"
            )
        near = tuple(nic.address for nic in nics if facts.node_of(nic) == node)
        n_cores = request.n_cores or max(1, min(len(near), len(facts.cpus.cores_of(node)) - 1))
        found.append(Place(node=node, nics=near, n_cores=n_cores))
    return tuple(found)
