"""The sentences of an explanation in English."""

WORKER = "{program}'s worker {worker}"
WHEN = "{times} for {us:,.0f} µs at {at_s:.3f} s"
TAKEN = "Core {core} was taken from " + WORKER + WHEN + " by {who}{also}"
STALLED = WORKER + " on core {core} {did}" + WHEN
INTERRUPTED = STALLED + " because of the interrupt {who}"
STOLEN = (
    STALLED + ", and the kernel gave the core to no other thread; the hypervisor took {steal_ms:,.0f} ms of it in total"
)
OWN = (
    STALLED + ", although no other thread had the core: the worker itself was blocked, or the hypervisor does not "
    "report steal time"
)
RING = (
    "; at {mpps:.4g} Mpps a ring of {ring:,} descriptors fills in {holds_us:,.0f} µs; {frames:,} packets lost "
    "({expected:,} expected with an empty ring at the start)"
)
DEVICE = "; {frames:,} packets lost meanwhile"
GENERATOR = "; {frames:,} packets lost because the generator neither sent nor received in time"
BEHIND = "; the generator could not maintain its rate"
COUNTERS = (
    "Over the whole trial, core {core} of {program} had {switches:,.0f} switches to other threads, {interrupts:,.0f} "
    "interrupts, {softirqs:,.0f} softirqs and {faults:,.0f} page faults; the hypervisor took {steal_ms:,.0f} ms"
)
STARTS = {"taken": TAKEN, "interrupted": INTERRUPTED, "stalled": STALLED, "stolen": STOLEN, "own": OWN}
DID = {"ring": "did not poll", "device": "did not poll", "generator": "stalled"}
ENDS = {"ring": RING, "device": DEVICE, "generator": GENERATOR}


def begun(start: str, end: str) -> str:
    """The start of a sentence. A dl3gen worker that stalled may have polled even later, because it sends first."""
    return STARTS[start].replace("{did}", DID[end])


EXPLAIN_ENGLISH = {
    **{f"explain.{start}.{end}": begun(start, end) + ENDS[end] for start in STARTS for end in ENDS},
    **{f"explain.{start}.generator.behind": begun(start, "generator") + BEHIND for start in STARTS},
    "explain.heading": "{record}, line {line}: {dut}, {frame} frames at {mpps:.4g} Mpps for {seconds:.4g} s: {lost}",
    "explain.heading.lost": "{lost:,} of {sent:,} packets lost ({ratio:.4%})",
    "explain.heading.none": "no loss",
    "explain.times": " {n:,} times, at worst",
    "explain.also": " and {others:,} more",
    "explain.alone": "{text}.",
    "explain.advised": "{text}: {advice}.",
    "explain.invalid": "This trial is INVALID and says nothing about the device; {reason}",
    "explain.place": "{frames:,} packets, {share:.1%} of those lost: {place}",
    "explain.reset": "{frames:,} packets, {share:.1%} of those lost, while the device was out of service because of "
    "the deliberate reset: the length of this outage is what the test measures",
    "explain.more": "{frames:,} packets were lost in {n:,} other stalls",
    "explain.full": "dl3d's worker {worker} on core {core} was fully loaded: at {cycles:,.0f} cycles per packet ("
    "{steps}) and {ghz:.2f} GHz it can forward {most:.4g} Mpps; its offered load was {mpps:.4g} Mpps, and packet "
    "processing took {busy:.0%} of its time",
    "explain.overrun": "{frames:,} packets were lost outside of stalls, while a worker was fully loaded",
    "explain.no_timeline": "It is not known when the {frames:,} packets were lost, so no cause can be named",
    "explain.silent": "{frames:,} packets were lost while the generator's workers were polling; the device reports "
    "nothing about itself, so no cause can be named",
    "explain.silent.steady": "{frames:,} packets were lost evenly over {share:.0%} of the time, while the generator's "
    "workers were polling; the device reports nothing about itself, so no cause can be named",
    "explain.unexplained": "{frames:,} packets were lost outside of any known stall, and no worker was fully loaded: "
    "there is not enough evidence to name a cause",
    "explain.unexplained.steady": "{frames:,} packets were lost evenly over {share:.0%} of the time, outside of any "
    "known stall, and no worker was fully loaded: there is not enough evidence to name a cause",
    "explain.unexplained.full": "{frames:,} packets were lost outside of any known stall, more than a fully loaded "
    "worker explains: there is not enough evidence to name a cause",
    "explain.counters": COUNTERS,
    "explain.counters.mhz": COUNTERS + ", {before:,.0f} MHz before and {mhz:,.0f} MHz after",
    "explain.counters.linux": "Linux sent {messages:,.0f} netlink messages (routes, neighbours, links) to dl3d during "
    "the trial",
    "explain.missing": "Missing evidence: {sentence}",
    "explain.headroom.none_lost": "None of {sent:,} packets were lost at {mpps:.4g} Mpps",
    "explain.headroom.unknown": "None of {sent:,} packets were lost at {mpps:.4g} Mpps; the device does not report "
    "how close it was to its limit",
    "explain.headroom.worker": "dl3d's worker {worker} on core {core} was {fill:.0%} loaded: {cycles:,.0f} cycles per "
    "packet ({steps}) in bursts of {burst:.1f}, at {ghz:.2f} GHz; it is fully loaded at about {limit:.4g} Mpps, or "
    "later if larger bursts make packets cheaper",
    "explain.headroom.stall": "The longest stall of dl3d's worker {worker} on core {core} was {us:,.0f} µs; a ring of "
    "{ring:,} descriptors overflows in such a stall from {limit:.4g} Mpps on",
    "advice.isolate.device": "isolate core {core} (isolcpus, or move {who} away) or deepen the ring",
    "advice.isolate.generator": "isolate core {core} (isolcpus, or move {who} away), which belongs to the generator",
    "advice.interrupts.device": "move the interrupt {who} to another core (/proc/irq, irqaffinity=) or deepen the ring",
    "advice.interrupts.generator": "move the interrupt {who} to another core (/proc/irq, irqaffinity=)",
    "advice.hypervisor": "give this machine dedicated cores",
    "advice.full": "give the port more queues and workers, or remove the most expensive step",
    "advice.silent": "measure a device that exports its counters, or check the device's own counters",
    "advice.worker_next": "this is the next limit, at {least:.4g} Mpps; the step '{step}' costs most",
    "advice.stall_next": "this is the next limit, at {least:.4g} Mpps; isolate core {core} or deepen the ring",
    "advice.memory": "give dl3d more buffers (memory in its configuration file)",
    "advice.cable": "check the cable and both of its ends",
    "advice.streams": "the generator sends packets that the device must not forward; change its streams",
    "advice.routes": "run 'dl3 show route ADDRESS' for a destination of the streams, and add the missing route",
    "advice.shape": "ask 'dl3 show subscriber' which class waits; raise the rate or the limits of its profile, or qos.held_packets",
    "advice.acls": "ask 'dl3 acl check' which rule decides; change the list if the packets are to pass",
    "advice.flows": "look the flow up with 'dl3 flow find'; add or change it if its packets are to pass",
    "advice.unsynced": "start the traffic when 'dl3 show status' reports that dl3d is ready",
    "advice.neighbour": "make the next hop answer ARP or ND, or set its MAC address in the configuration file",
    "advice.mac": "set dst_mac of the streams to the port's MAC, see 'dl3 show ports'",
    "advice.mtu": "send smaller frames or raise the MTU",
    "advice.ttl": "send packets with a higher TTL",
    "advice.up": "set the port up and check its link",
    "advice.taps": "make Linux the control plane (key 'linux' in the configuration file), so that it handles such packets",
    "advice.unsupported": "'dl3 show unsupported' lists what workers do not support",
    "advice.handover": "that worker is too slow for what it is handed; 'dl3 show workers' shows the shares",
    "advice.punt": "such packets go through Linux, which is slower; 'dl3 show classes' shows the limits",
}
