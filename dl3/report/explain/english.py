"""The sentences of an explanation in English."""

WORKER = "{program}'s worker {worker}"
WHEN = "{times} for {us:,.0f} µs at {at_s:.3f} s"
TAKEN = "Core {core} was taken away from " + WORKER + WHEN + " by {who}{also}"
PAUSED = WORKER + " on core {core} {did}" + WHEN
INTERRUPTED = PAUSED + " because of the interrupt {who}"
STOLEN = (
    PAUSED + ", and the kernel gave the core to no other thread; the hypervisor took {steal_ms:,.0f} ms of it in all"
)
OWN = (
    PAUSED + ", though the core was its own all the time: the worker itself was held up, or a hypervisor tells no steal"
)
RING = (
    "; at {mpps:.4g} Mpps a ring of {ring:,} holds {holds_us:,.0f} µs; {frames:,} packets lost "
    "({expected:,} expected of an empty ring)"
)
DEVICE = "; {frames:,} packets lost meanwhile"
GENERATOR = "; {frames:,} packets lost, because the generator then neither sent nor received in time"
BEHIND = "; the generator could not keep to its rate"
COUNTERS = (
    "In all of the trial, core {core} of {program}: other threads {switches:,.0f}, interrupts {interrupts:,.0f}, "
    "softirqs {softirqs:,.0f}, page faults {faults:,.0f}, taken by the hypervisor {steal_ms:,.0f} ms"
)
STARTS = {"taken": TAKEN, "interrupted": INTERRUPTED, "paused": PAUSED, "stolen": STOLEN, "own": OWN}
DID = {"ring": "did not poll", "device": "did not poll", "generator": "stood still"}
ENDS = {"ring": RING, "device": DEVICE, "generator": GENERATOR}


def begun(start: str, end: str) -> str:
    """How a sentence starts: a worker of dl3gen that stood still may have polled later than that, after it has sent."""
    return STARTS[start].replace("{did}", DID[end])


EXPLAIN_ENGLISH = {
    **{f"explain.{start}.{end}": begun(start, end) + ENDS[end] for start in STARTS for end in ENDS},
    **{f"explain.{start}.generator.behind": begun(start, "generator") + BEHIND for start in STARTS},
    "explain.heading": "{record}, line {line}: {dut}, {frame} frames at {mpps:.4g} Mpps for {seconds:.4g} s: {lost}",
    "explain.heading.lost": "{lost:,} of {sent:,} packets lost ({ratio:.4%})",
    "explain.heading.none": "no loss",
    "explain.times": " {n:,} times, at the worst",
    "explain.also": " and {others:,} more",
    "explain.alone": "{text}.",
    "explain.advised": "{text}: {advice}.",
    "explain.invalid": "This trial is INVALID and says nothing about the device; {reason}",
    "explain.place": "{frames:,} packets, {share:.1%} of those lost: {place}",
    "explain.reset": "{frames:,} packets, {share:.1%} of those lost, while the device was away because it was reset on "
    "purpose: how long that lasts is what this test measures",
    "explain.more": "{frames:,} packets were lost in other pauses, of which there were {n:,}",
    "explain.full": "dl3d's worker {worker} on core {core} was full: a packet costs it {cycles:,.0f} cycles ({steps}"
    "), so at {ghz:.2f} GHz it forwards {most:.4g} Mpps; {mpps:.4g} Mpps were offered to it, and its packets took "
    "{busy:.0%} of its time",
    "explain.overrun": "{frames:,} packets were lost outside of pauses, while a worker was full",
    "explain.no_timeline": "When the {frames:,} packets were lost is not known, so no cause can be named",
    "explain.silent": "{frames:,} packets were lost while the generator's workers polled; the device tells nothing "
    "of itself, so no cause can be named",
    "explain.silent.steady": "{frames:,} packets were lost evenly, in {share:.0%} of the time, while the "
    "generator's workers polled; the device tells nothing of itself, so no cause can be named",
    "explain.unexplained": "{frames:,} packets were lost in no pause that is known, and no worker was full: the "
    "evidence does not suffice to name a cause",
    "explain.unexplained.steady": "{frames:,} packets were lost evenly, in {share:.0%} of the time, in no pause "
    "that is known, and no worker was full: the evidence does not suffice to name a cause",
    "explain.unexplained.full": "{frames:,} packets were lost in no pause that is known, and are more than a full worker "
    "explains: the evidence does not suffice to name a cause",
    "explain.counters": COUNTERS,
    "explain.counters.mhz": COUNTERS + ", {before:,.0f} MHz before and {mhz:,.0f} MHz after",
    "explain.counters.linux": "Messages of Linux to dl3d meanwhile, on routes, neighbours and links: {messages:,.0f}",
    "explain.missing": "Not known here: {sentence}",
    "explain.headroom.none_lost": "No packet of {sent:,} was lost at {mpps:.4g} Mpps",
    "explain.headroom.unknown": "No packet of {sent:,} was lost at {mpps:.4g} Mpps; the device does not tell how "
    "near it was to its limit",
    "explain.headroom.worker": "dl3d's worker {worker} on core {core} was {fill:.0%} full: a packet costs it "
    "{cycles:,.0f} cycles ({steps}) in bursts of {burst:.1f}, at {ghz:.2f} GHz; it is full at about {limit:.4g} "
    "Mpps, later if larger bursts make packets cheaper",
    "explain.headroom.pause": "The longest pause of dl3d's worker {worker} on core {core} was {us:,.0f} µs; a ring of "
    "{ring:,} overflows in such a pause from {limit:.4g} Mpps on",
    "advice.isolate.device": "isolate core {core} (isolcpus, or move {who} away) or deepen the ring",
    "advice.isolate.generator": "isolate core {core} (isolcpus, or move {who} away), it is the generator's",
    "advice.interrupts.device": "move the interrupt {who} to another core (/proc/irq, irqaffinity=) or deepen the ring",
    "advice.interrupts.generator": "move the interrupt {who} to another core (/proc/irq, irqaffinity=)",
    "advice.hypervisor": "give this machine cores of its own",
    "advice.full": "give the port more queues and workers, or take away what step costs most",
    "advice.silent": "measure a device that tells its counters, or look at its own",
    "advice.worker_next": "this limits next, at {least:.4g} Mpps; the step '{step}' costs most",
    "advice.pause_next": "this limits next, at {least:.4g} Mpps; isolate core {core} or deepen the ring",
    "advice.memory": "give dl3d more buffers (memory in its file)",
    "advice.cable": "look at the wire and at both its ends",
    "advice.streams": "the generator sends what the device must not forward; change its streams",
    "advice.routes": "ask 'dl3 route ADDRESS' for a destination of the streams, and add the route that is missing",
    "advice.neighbour": "let the next hop answer ARP or ND, or write its MAC into the file",
    "advice.mac": "set dst_mac of the streams to the port's MAC, see 'dl3 show ports'",
    "advice.mtu": "send smaller frames or raise the MTU",
    "advice.ttl": "send a larger TTL",
    "advice.up": "set the port up and look at its link",
    "advice.taps": "give the ports TAP interfaces in Linux (control: linux), which handles such packets",
    "advice.unsupported": "'dl3 show unsupported' names what workers cannot express",
    "advice.punt": "such packets go through Linux, which is slower; 'dl3 show classes' has the limits",
}
