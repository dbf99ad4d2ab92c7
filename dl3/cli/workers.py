"""What 'dl3 show workers' prints: each worker, what it hands to others, and what to do about uneven load."""

from rich.console import Group, RenderableType

from dl3.cli.printing import table
from dl3.control.replies import Worker, WorkerQueue, Workers

SKEWED = 0.8  # share of all packets
IDLE = 0.5  # share of empty polls of a worker with time to spare
UNEVEN = 1.5  # times the mean of what is handed to a worker
FEWEST = 10_000  # packets that tell anything


def worker_row(worker: Worker) -> tuple[object, ...]:
    """Where a worker runs and how busy it is."""
    queues = " ".join(f"{queue.port}/{queue.queue}" for queue in worker.queues)
    hands_to = " ".join(str(hand.worker) for hand in worker.hands_to)
    packets, bursts = sum(worker.verdicts.values()), worker.counters.get("bursts", 0)
    packets += worker.counters.get("handover_packets", 0)
    per_burst = packets / bursts if bursts else None
    gap = f"{worker.poll_gap.longest_us:,.0f} us, {worker.poll_gap.ago_s:,.0f} s ago" if worker.poll_gap else None
    asleep = f"{worker.asleep_share:.1%}" if worker.idle == "sleep" else None
    rest = (f"{worker.empty_share:.1%}", asleep, worker.woken_by, gap)
    return (worker.worker, worker.core, worker.numa, queues, hands_to, packets, per_burst, *rest)


def draw_steps(reply: Workers) -> RenderableType | None:
    """The cost of each step of the datapath that has run, once some bursts were timed."""
    timed = [(worker.worker, worker.cycles_per_packet) for worker in reply.workers if worker.cycles_per_packet]
    if not timed:
        return None
    steps = [step for step in timed[0][1] if any(cycles.get(step) for _, cycles in timed)]
    rows = [(worker, *(cycles.get(step) for step in steps), sum(cycles.values())) for worker, cycles in timed]
    names = (">worker", *(f">{step}" for step in steps), ">all")
    return table("TSC cycles per packet, by step, in every 64th burst (includes timing overhead)", names, rows)


def draw_hands(reply: Workers) -> RenderableType | None:
    """What workers hand to each other; a share is that of the packets which the first one hands over."""
    rows = []
    for worker in reply.workers:
        packets = sum(hand.packets for hand in worker.hands_to)
        rows += [
            (worker.worker, hand.worker, len(hand.slots), hand.packets, share_of(hand.packets, packets), hand.waiting)
            for hand in worker.hands_to
        ]
    columns = (">from worker", ">to worker", ">slots", ">packets", ">share", ">waiting")
    return table("packets that workers hand to each other", columns, rows) if rows else None


def share_of(part: int, whole: int) -> str | None:
    """A share of packets; None: there are none."""
    return f"{part / whole:.1%}" if whole else None


def _idle_ones(reply: Workers, busy: Worker) -> list[Worker]:
    """Workers that could take over packets of a busy one."""
    return [worker for worker in reply.workers if worker is not busy and worker.empty_share > IDLE]


def _on_queue(reply: Workers, worker: Worker, queue: WorkerQueue, packets: int) -> str | None:
    idle = _idle_ones(reply, worker)
    if queue.rx_packets <= SKEWED * packets or worker.hands_to or worker.empty_share > IDLE or not idle:
        return None
    receives = ", ".join(f"{each.port}/{each.queue}" for each in worker.queues)
    cores = ", ".join(str(each.core) for each in idle)
    return (
        f"Queue {queue.port}/{queue.queue} has {queue.rx_packets / packets:.0%} of all packets, and the workers on "
        f"cores {cores} are idle: to share its flows with them, set in the file "
        f"workers: [{{core: {worker.core}, receives: [{receives}], hands_to: [{cores}]}}, ...]"
    )


def _on_hands(reply: Workers, worker: Worker) -> str | None:
    packets = sum(hand.packets for hand in worker.hands_to)
    idle = {each.worker for each in _idle_ones(reply, worker)}
    others = [hand.worker for hand in worker.hands_to if hand.worker in idle]
    for hand in worker.hands_to:
        most = UNEVEN * packets / len(worker.hands_to)
        if packets >= FEWEST and hand.packets > most and others and hand.worker not in idle:
            return (
                f"Worker {hand.worker} gets {hand.packets / packets:.0%} of what worker {worker.worker} hands over, and "
                f"worker {others[0]} is idle: move flows between them with dl3 balance"
            )
    return None


def advice(reply: Workers) -> list[str]:
    """Where one queue or worker has most of the packets while others idle, and what to do. A sentence each."""
    packets = sum(queue.rx_packets for worker in reply.workers for queue in worker.queues)
    if packets < FEWEST:
        return []
    found = [_on_queue(reply, worker, queue, packets) for worker in reply.workers for queue in worker.queues]
    found += [_on_hands(reply, worker) for worker in reply.workers]
    return [sentence for sentence in found if sentence]


def draw_workers(reply: Workers) -> RenderableType:
    """All of it."""
    columns = (
        ">worker",
        ">core",
        ">NUMA",
        "~queues",
        "~hands to",
        ">packets",
        ">per burst",
        ">empty polls",
        ">asleep",
        "woken by",
        ">longest gap",
    )
    parts: list[RenderableType] = [table("", columns, [worker_row(worker) for worker in reply.workers])]
    for part in (draw_hands(reply), draw_steps(reply)):
        parts += ["", part] if part else []
    parts += [f"\n{sentence}" for sentence in advice(reply)]
    return Group(*parts)
