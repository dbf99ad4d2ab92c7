"""A check before all measurements: sends a few frames in each direction to verify that the device forwards."""

import time
from collections.abc import Sequence

from dl3.control.client import Client
from dl3.control.generator import Results, Started, StreamResult
from dl3.lab.pair import Pair
from dl3.model.fault import Fault

N_FRAMES = 8  # per stream
RATE = "1000 pps"
RATE_OF_REPLAY = "10000 pps"
SECONDS = 0.1
POLL_S = 0.02
TRIES = 15  # of one second: a device may still be loading tables, Open vSwitch enables its ports one by one


def few(stream: dict[str, object]) -> dict[str, object]:
    """The stream limited to a few frames; more for a capture, since not every frame has a number."""
    if "pcap" in stream:
        return {key: value for key, value in stream.items() if key != "loops"} | {"rate": RATE_OF_REPLAY}
    return {**stream, "rate": RATE, "frames": N_FRAMES}


def seen(generator: Client, sent: Sequence[dict[str, object]]) -> tuple[StreamResult, ...]:
    """Send a few frames of each stream and return the results."""
    generator.ask(Started, "send", streams=[few(stream) for stream in sent], seconds=SECONDS)
    deadline = time.monotonic() + 1.0
    while True:
        time.sleep(POLL_S)
        results = generator.ask(Results, "results")
        has_all = all(stream.received for stream in results.streams)
        if results.state != "sending" and (has_all or time.monotonic() > deadline):
            return results.streams


def lost_streams(generator: Client, sent: Sequence[dict[str, object]], tries: int = TRIES) -> list[StreamResult]:
    """The streams of which no frame is ever received."""
    for _ in range(tries):
        lost = [stream for stream in seen(generator, sent) if not stream.received]
        if not lost:
            return []
    return lost


def ways_of(lost: Sequence[StreamResult]) -> str:
    """The directions of the streams, for display."""
    return " and ".join(f"from {stream.from_port} to {stream.to_port}" for stream in lost)


def check_forwards(lab: Pair, sent: Sequence[dict[str, object]]) -> None:
    """Fault if nothing passes of one of the streams."""
    lost = lost_streams(lab.generator, sent)
    lab.check_alive()
    if lost:
        words = lab.dut_process.last_words() if lab.device.processes else "it is the kernel"
        raise Fault(f"{lab.device.name} has started but forwards nothing {ways_of(lost)}; its last words: {words}")
