"""Runs the forwarding rate test (RFC 2889, 5.1), with a cross-connect or any other device."""

from collections.abc import Sequence

from dl3.bench.loads import RETRIES, Loads, reported_of
from dl3.bench.testbed import Most, Testbed, head_of
from dl3.model.results import Forwarding
from dl3.search.forwarding import find_rates, forwarded_pps


def measure_forwarding(testbed: Testbed) -> Sequence[Forwarding]:
    """The forwarding rates at the intended loads, at the maximum offered load (FRMOL), and the maximum (MFR)."""
    run, effort, frame = testbed.run, testbed.job.effort, testbed.job.frame
    most = Most.of(run, frame)
    rates = find_rates(Loads(run, frame, "forwarding", most, effort.step).at, effort.step, RETRIES)
    result = Forwarding(
        **head_of(testbed, most.ceiling),
        **reported_of(rates),
        at_most_offered_pps=forwarded_pps(rates.at_most_offered),
        most_pps=forwarded_pps(rates.most),
        most_at_pps=rates.most.offered_pps,
    )
    run.keep(result)
    return (result,)
