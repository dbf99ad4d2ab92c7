"""Several dl3d in a row as one device: what they report of packets, workers and pauses, as one of them would."""

from collections import Counter
from collections.abc import Mapping, Sequence

from dl3.control.client import Client
from dl3.control.generator import Pauses
from dl3.control.replies import Drops, Ports, Reply, Verdict, Wire, Worker, Workers


def summed(values: Sequence[int | None]) -> int | None:
    """The sum; None if one of them is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def wire_of(wires: Sequence[Wire]) -> Wire:
    """Losses in all of their devices."""
    return Wire(
        rx_missed=summed([one.rx_missed for one in wires]),
        rx_no_mbuf=summed([one.rx_no_mbuf for one in wires]),
        rx_errors=summed([one.rx_errors for one in wires]),
        starved_loops=sum(one.starved_loops for one in wires),
    )


def verdicts_of(drops: Sequence[Drops]) -> dict[str, Verdict]:
    """Those of all, by name."""
    packets: Counter[str] = Counter()
    handed: Counter[str] = Counter()
    first: dict[str, Verdict] = {}
    for verdict in (verdict for one in drops for verdict in one.verdicts):
        packets[verdict.name] += verdict.packets
        handed[verdict.name] += verdict.handed
        first.setdefault(verdict.name, verdict)
    return {
        name: one.model_copy(update={"packets": packets[name], "handed": handed[name]}) for name, one in first.items()
    }


def drops_of(drops: Sequence[Drops], ports: Sequence[Ports], between: str) -> Drops:
    """Their accounts as one. What one sends to another by its port `between` is neither sent nor received; what is lost
    there is dropped by the name of that port.
    """
    inside = [port for one in ports for port in one.ports if port.name == between]
    put, taken = sum(port.tx_packets for port in inside), sum(port.rx_packets for port in inside)
    verdicts = verdicts_of(drops)
    verdicts[between] = Verdict(name=between, packets=put - taken, step="send", text="lost between two of them")
    return Drops(
        received=sum(one.received for one in drops) - taken,
        injected=sum(one.injected for one in drops),
        copied=sum(one.copied for one in drops),
        sent=sum(one.sent for one in drops) - put,
        punted=sum(one.punted for one in drops),
        dropped=sum(one.dropped for one in drops) + put - taken,
        held=sum(one.held for one in drops),
        in_flight=sum(one.in_flight for one in drops) + max(0, put - taken),
        verdicts=tuple(verdicts.values()),
        wire=wire_of([one.wire for one in drops]),
    )


def workers_of(found: Sequence[Workers]) -> Workers:
    """The workers of all, numbered on."""
    numbered: list[Worker] = []
    for one in found:
        numbered += [each.model_copy(update={"worker": len(numbered) + n}) for n, each in enumerate(one.workers)]
    return Workers(workers=tuple(numbered), tsc_hz=found[0].tsc_hz)


def pauses_of(found: Sequence[Pauses], n_workers: Sequence[int]) -> Pauses:
    """The pauses of all, of workers that are numbered on, oldest first."""
    gaps = [
        gap.model_copy(update={"worker": gap.worker + sum(n_workers[:place])})
        for place, one in enumerate(found)
        for gap in one.gaps
    ]
    return Pauses(
        gaps=tuple(sorted(gaps, key=lambda gap: gap.at_ns)),
        forgotten=sum(one.forgotten for one in found),
        now_ns=found[-1].now_ns,
    )


class Chain(Client):
    """A client of all of them. What concerns only one is asked of the first."""

    def __init__(self, clients: Sequence[Client], between: str) -> None:
        super().__init__(clients[0].path)
        self.clients, self.between = clients, between

    def result(self, method: str, given: Mapping[str, object]) -> object:
        """See Client."""
        whole = self.whole(method)
        return whole.model_dump() if whole else self.clients[0].result(method, given)

    def whole(self, method: str) -> Reply | None:
        """The replies of all as one; None for other methods."""
        if method == "drops":
            drops = [client.ask(Drops, method) for client in self.clients]
            return drops_of(drops, [client.ask(Ports, "ports") for client in self.clients], self.between)
        if method == "workers":
            return workers_of([client.ask(Workers, method) for client in self.clients])
        if method == "gaps":
            workers = [len(client.ask(Workers, "workers").workers) for client in self.clients]
            return pauses_of([client.ask(Pauses, method) for client in self.clients], workers)
        if method == "ports":
            found = [client.ask(Ports, method).ports for client in self.clients]
            return Ports(ports=tuple(port for ports in found for port in ports if port.name != self.between))
        return None
