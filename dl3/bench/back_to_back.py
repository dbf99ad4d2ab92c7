"""Runs the back-to-back frames test (RFC 2544, 26.4, with RFC 9004's buffer times)."""

from collections.abc import Sequence
from statistics import fmean

from dl3.bench.testbed import Most, Testbed, best_throughput_of, head_of
from dl3.model.results import BackToBack
from dl3.model.trial import Trial
from dl3.search.back_to_back import Burst, Reach, find_burst
from dl3.trial.order import LOSSLESS, Order

LONGEST_S = 30.0  # of a burst
LIKELY_TRIALS = 20


def bursts_of(testbed: Testbed, most: Most) -> list[Burst[Trial]]:
    """One search per repetition; only one if even the longest burst passes."""
    run, effort, frame = testbed.run, testbed.job.effort, testbed.job.frame
    longest_s = min(effort.seconds, LONGEST_S)
    reach = Reach(max(1, int(longest_s * most.pps)), share=effort.resolution)

    def measure(frames: int) -> Trial:
        seconds = frames / most.pps
        return run.trial(
            Order(
                run.streams,
                frame,
                most.asked_pps,
                seconds,
                "back-to-back",
                warm_up_s=0.0,
                frames=frames,
                goals=LOSSLESS,
            )
        )

    found: list[Burst[Trial]] = []
    while len(found) < effort.repetitions and not (found and found[-1].is_at_least):
        left_s = (effort.repetitions - len(found)) * LIKELY_TRIALS * (run.trial_s_beside + longest_s / 4)
        run.listener.on_left(frame, left_s)
        found.append(find_burst(measure, reach))
    return found


def measure_back_to_back(testbed: Testbed) -> Sequence[BackToBack]:
    """The longest lossless burst at the highest rate, and the buffer size that it implies.

    implied = frames / rate; corrected = implied x (1 - throughput / rate), RFC 9004, 6.4.
    """
    throughput = best_throughput_of(testbed)
    most = Most.of(testbed.run, testbed.job.frame)
    found = bursts_of(testbed, most)
    rates = [burst.trial.offered_pps for burst in found if burst.trial and burst.trial.offered_pps]
    burst_pps = most.pps if most.limit == "line" or not rates else fmean(rates)
    frames = fmean(burst.frames for burst in found)
    result = BackToBack(
        **head_of(testbed, most.ceiling),
        burst_pps=burst_pps,
        bursts=tuple(burst.frames for burst in found),
        frames=frames,
        throughput_pps=throughput.pps,
        implied_buffer_s=frames / burst_pps,
        corrected_buffer_s=frames / burst_pps * max(0.0, 1 - throughput.pps / burst_pps),
        is_at_least=any(burst.is_at_least for burst in found),
    )
    testbed.run.keep(result)
    return (result,)
