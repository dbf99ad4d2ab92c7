"""Ranges and bounds of results in the tables of commands."""

from pathlib import Path
from typing import Any

import pytest
from harness.campaigns import found_flows, white_paper
from harness.records import Maker

from dl3.cli.campaign_table import flow_sentences, other_words, throughput_words
from dl3.cli.results_test import NOISE, result
from dl3.cli.rfc_tables import recovery_rows
from dl3.model.campaign import Plan
from dl3.model.results import FrameLoss, LossPoint, Recovery
from dl3.record.journal import append
from dl3.record.reader import read


def writes_a_range_of_a_job_where_the_machine_was_noisy() -> None:
    assert throughput_words(result()) == "9.800 Mpps, limited by the device"
    noisy = result(noise=NOISE, passed_pps=11.2e6)
    assert throughput_words(noisy) == "9.800 to 11.200 Mpps, limited by the device, noisy"


def writes_at_most_of_a_recovery_where_frames_were_left_out() -> None:
    head: dict[str, Any] = {"at": "t", "campaign": "c", "dut": "d", "frame": "64", "mean_bytes": 64, "facts": {}}
    made = Recovery(**head, overload_pps=2e6, recovery_pps=1e6, seconds=(0.001,), is_at_most=True)
    assert list(recovery_rows([made])) == [("64", "2.000", "1.000", "<= 1.000", "-")]
    assert next(iter(recovery_rows([made.model_copy(update={"is_at_most": False})])))[3] == "1.000"


@pytest.mark.parametrize(
    ("missed", "wanted"),
    [
        (0, "1.8: all 5,000,000 packets had a flow in the flow table"),
        (7, "1.8: 7 of 5,000,000 packets had no flow in the flow table and were dropped"),
    ],
)
def tells_whether_packets_had_a_flow(missed: int, wanted: str, tmp_path: Path) -> None:
    plan = next(record for record in white_paper() if isinstance(record, Plan))
    record = tmp_path / "r.jsonl"
    append(record, plan)
    assert not list(flow_sentences(read(record)))
    job = next(job for case in plan.cases for job in case.jobs if job.setup.dut.has_flow_table)
    append(record, Maker().trial("66", 1e6, job=job.key, **found_flows(job, 1e6, missed)))
    assert list(flow_sentences(read(record))) == [wanted]


def counts_the_loads_of_a_job_without_a_valid_trial() -> None:
    head: dict[str, Any] = {"at": "t", "campaign": "c", "dut": "d", "frame": "64", "mean_bytes": 64, "facts": {}}
    points = (LossPoint(share=1, pps=2e6, loss_ratio=0.5),)
    made = FrameLoss(**head, points=points, invalid_shares=(0.9, 0.8), trial_seconds=1)
    assert other_words(made) == "50.00% lost at 2.000 Mpps; loads without a valid trial: 2"
    assert other_words(made.model_copy(update={"invalid_shares": ()})) == "50.00% lost at 2.000 Mpps"
