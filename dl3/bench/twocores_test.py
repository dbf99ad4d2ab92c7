"""When a forwarder on two cores yields a result, and when it does not."""

import pytest

from dl3.bench.norow import NoRow
from dl3.bench.twocores import LinkRun, most_loaded, sample_of
from dl3.control.generator import Results, StreamResult
from dl3.model.fault import Fault


def run(sent: int, refused: int, received: int, share: float = 0.98) -> LinkRun:
    stream = StreamResult.model_construct(sent=sent, refused=refused, received=received)
    results = Results.model_construct(seconds=2.0, tsc_hz=2_000_000_000, streams=(stream,))
    return LinkRun(results, (1.0, share))


def counts_what_came_back() -> None:
    sample = sample_of(run(130, 30, 80))
    assert (sample.received_pps, sample.sent_pps, sample.core_share) == (50.0, 40.0, 0.98)
    assert sample.cycles_per_packet == 50_000_000.0


def takes_the_run_that_offered_most() -> None:
    runs = [run(100, 0, 100), run(130, 30, 100), run(110, 10, 100)]
    assert most_loaded("memif-2-core", "dl3d", runs) is runs[1]


def gives_no_row_when_too_little_was_offered() -> None:
    with pytest.raises(NoRow, match=r"no row memif-2-core: dl3gen offered l3fwd only 1\.10 times the 0\.0 Mpps"):
        most_loaded("memif-2-core", "l3fwd", [run(110, 10, 100), run(100, 0, 100)])


def leaves_out_runs_in_which_the_forwarder_stood_still() -> None:
    runs = [run(900, 800, 100, share=0.5), run(130, 30, 100)]
    assert most_loaded("memif-2-core", "dl3d", runs) is runs[1]
    with pytest.raises(NoRow, match="other programs left 50% of the cores, 95% is needed"):
        most_loaded("memif-2-core", "dl3d", runs[:1])


def fails_when_nothing_came_back() -> None:
    with pytest.raises(Fault, match="nothing came back"):
        sample_of(run(100, 0, 0))
