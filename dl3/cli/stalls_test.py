"""What the terminal says where stalls affected results."""

from dl3.cli.stalls import remarks, stalls_in_short
from dl3.model.evidence import Stalled
from dl3.model.results import Forwarding
from dl3.report.explain.fake import trial

REASONS = ("stalls: 3 of 9 trials were shortened to as little as 50 ms, because x", "steal: y", "stall cost: z")
RATES = {"at_most_offered_pps": 1e6, "most_pps": 1e6, "most_at_pps": 1e6, "points": ()}
HEAD = {"at": "t", "campaign": "c", "dut": "dl3d", "frame": "64", "mean_bytes": 64.0, "facts": {}}
RESULT = Forwarding.model_validate({**HEAD, **RATES, "noise": REASONS})


def gives_each_reason_of_a_result_a_line() -> None:
    assert list(remarks([RESULT])) == [f"frames of 64: noisy, {reason}" for reason in REASONS]


def says_of_a_latency_trial_what_stalls_did_to_it() -> None:
    stalled = Stalled(n=1, us=300.0, longest_us=300.0, frames=3_000)
    made = trial({}, ms=50, ordered_s=1.0, held=70, stalled=stalled, load=0.5)
    assert list(remarks([made, trial({}, load=0.9)])) == [
        "frames of 64, 50%: 50 ms instead of 1 s because of stalls",
        "frames of 64, 50%: 70 frames still in the device count as lost",
        "frames of 64, 50%: stalls may have cost up to 0.60 %",
    ]


def ends_the_line_of_a_job_with_its_stalls() -> None:
    assert stalls_in_short([RESULT, RESULT]) == f"; {REASONS[0]}; {REASONS[2]}"
    assert stalls_in_short([trial({})]) == ""
