"""Campaigns with a simulated generator, device and clock."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dl3.bench.campaign import Conductor, Environment
from dl3.bench.fake_environment import FILE, FakeBed, FakeEnvironment, NotingListener, conducted, contents_of, plan
from dl3.bench.past import look_into, read_past
from dl3.campaign.duration import bed_of
from dl3.campaign.plan import jobs_of
from dl3.dut.bed import Bed
from dl3.model.campaign import Job, Setup, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.record.journal import DiskFull
from dl3.record.reader import parse, read
from dl3.record.spare import kept
from dl3.trial.fake import FakeGenerator


def makes_all_jobs_and_starts_each_bed_once(tmp_path: Path) -> None:
    path, fake, listener = tmp_path / "r.jsonl", FakeEnvironment(), NotingListener()
    conducted(path, fake, listener=listener)
    record = read(path)
    assert record.plans == (plan(),)
    assert listener.jobs == [job.key for job in jobs_of(plan())] == [finished.job for finished in record.finished]
    assert [setup.dut.name for setup in fake.beds] == ["loop", "dl3d", "dl3d", "dl3d"]
    assert len({str(bed_of(job)) for job in jobs_of(plan())}) == 3
    assert [(proof.wire, [point.frame for point in proof.points]) for proof in record.proofs] == [
        ("memif", ["64", "512"])
    ]
    rates = {result.job: result.pps for result in record.results}
    assert rates["a|dl3d|huge pages=512 MiB|throughput|64"] == pytest.approx(5.12e6, rel=0.02)
    assert rates["b|dl3d|flows=7|throughput|512"] == pytest.approx(2.56e6, rel=0.02)
    assert all(
        trial.campaign == "now" and bool(trial.job) == (trial.test != "proof") and trial.facts["kernel"] == "6"
        for trial in record.trials
    )
    assert record.left_out == ()
    assert listener.left_s == sorted(listener.left_s, reverse=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The record of an uninterrupted campaign."""
    path = tmp_path_factory.mktemp("whole") / "r.jsonl"
    conducted(path)
    return path.read_bytes()


@given(data=st.data())
@settings(max_examples=20)
def gives_the_same_results_wherever_it_was_cut(data: st.DataObject, whole: bytes, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("cut") / "r.jsonl"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    cut_again = data.draw(st.integers(0, len(whole)))
    conducted(path)
    if cut_again < path.stat().st_size:
        path.write_bytes(path.read_bytes()[:cut_again])
        conducted(path)
    assert contents_of(path.read_bytes()) == contents_of(whole)


class Killed(BaseException):
    """Not even a KeyboardInterrupt."""


def makes_no_trial_twice_when_it_is_killed_in_one(tmp_path: Path, whole: bytes) -> None:
    turns = iter(range(1000))

    def spoil(_results: dict[str, Any]) -> None:
        if next(turns) == 30:
            raise Killed

    path = tmp_path / "r.jsonl"
    with pytest.raises(Killed):
        conducted(path, FakeEnvironment(spoil=spoil))
    n_before = len(read(path).trials)
    assert 0 < n_before < len(parse(path, whole).trials)
    conducted(path)
    assert contents_of(path.read_bytes()) == contents_of(whole)


def learns_no_pace_from_what_was_left_of_a_job(tmp_path: Path, whole: bytes) -> None:
    """All trials of the first job are recorded and only its last line is missing: the remainder takes no time."""
    path = tmp_path / "r.jsonl"
    lines = whole.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if b'"kind":"finished"' in line.replace(b" ", b""))
    path.write_bytes(b"".join(lines[:first]))
    conducted(path)
    finished = read(path).finished
    assert [one.is_rest for one in finished] == [True] + [False] * (len(finished) - 1)
    assert finished[0].seconds < 0.1 * finished[0].planned_seconds
    past = read_past(path, FILE)
    assert past is not None
    path.write_bytes(whole)
    unbroken = read_past(path, FILE)
    assert unbroken is not None
    assert past.pace().factor("job") == pytest.approx(unbroken.pace().factor("job"), rel=0.1)


def loses_nothing_on_a_disk_that_fills_and_goes_on_when_there_is_room(tmp_path: Path, whole: bytes) -> None:
    """As in the command, on a 2 MB tmpfs."""
    path, ballast = tmp_path / "r.jsonl", tmp_path / "ballast"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path], check=True)
    try:

        class Filling(NotingListener):
            def on_job(self, job: Job, _n_done: int, _left_s: float) -> None:
                self.jobs.append(job.key)
                if len(self.jobs) == 4:
                    with suppress(OSError):
                        ballast.write_bytes(bytes(2 << 20))

        listener = Filling()
        with pytest.raises(DiskFull, match="all results are recorded"), kept(path):
            conducted(path, listener=listener)
        assert len(listener.jobs) in (4, 5)
        assert read(path).left_out == ()
        with pytest.raises(DiskFull, match="free some space, then continue"), kept(path):
            raise AssertionError
        ballast.unlink()
        with kept(path):
            conducted(path)
        assert contents_of(path.read_bytes()) == contents_of(whole)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def makes_nothing_again_when_all_is_done(tmp_path: Path, whole: bytes) -> None:
    path, fake = tmp_path / "r.jsonl", FakeEnvironment()
    path.write_bytes(whole)
    assert conducted(path, fake).left() == []
    assert path.read_bytes() == whole
    assert fake.beds == []


def refuses_to_go_on_with_the_record_of_another_campaign(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(whole)
    with pytest.raises(UsageFault, match="is the record of the campaign 'mine' with a different campaign file"):
        read_past(path, FILE + "# changed\n")
    path.write_bytes(whole[whole.index(b"\n") + 1 :])
    with pytest.raises(UsageFault, match="is the record of something else"):
        read_past(path, FILE)


@pytest.mark.parametrize(
    "content",
    [
        b"# mine\nname: mine\ntitle: Mine\nduts: dl3d\ncases: [none]",
        b"\x7fELF\x02\x01\x01\n\x00\xff\x00",
        b'{"kind":"pancake"}\n{"ki',
        b"\n",
    ],
    ids=["YAML", "binary", "JSON", "a line's end"],
)
def leaves_a_file_that_is_no_record_as_it_was(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    for reads in (look_into, read_past):
        with pytest.raises(UsageFault, match=r"r\.jsonl is not a record: choose another file"):
            reads(path, FILE)
    assert path.read_bytes() == content


def leaves_the_record_of_something_else_as_it_was(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "r.jsonl"
    for content in (whole[: len(whole) // 2], whole[whole.index(b"\n") + 1 :][:-5]):
        path.write_bytes(content)
        with pytest.raises(UsageFault, match=r"r\.jsonl is the record of "):
            read_past(path, FILE + "# changed\n")
        assert path.read_bytes() == content


def takes_an_empty_file_for_a_new_record(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.touch()
    assert read_past(path, FILE) is None
    conducted(path)
    assert contents_of(path.read_bytes()) == contents_of(whole)


def cuts_half_a_line_only_to_go_on(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "r.jsonl"
    cut = whole[: whole.rindex(b'{"kind":"finished"') + 30]
    path.write_bytes(cut)
    seen = look_into(path, FILE)
    assert seen is not None
    assert path.read_bytes() == cut
    past = read_past(path, FILE)
    assert past is not None
    assert past.done == seen.done
    assert past.record.left_out == ()
    assert path.read_bytes() == cut[:-30]


def reports_what_is_left_and_touches_nothing(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "r.jsonl"
    lines = whole.splitlines(keepends=True)
    ends = [i for i, line in enumerate(lines) if line.startswith(b'{"kind":"finished"')]
    path.write_bytes(content := b"".join(lines[: ends[7] + 1]) + b'{"kind":"tri')
    past = look_into(path, FILE)
    assert past is not None
    rest = Conductor(past.plan, path, past=past).rest()
    assert [job.key for job in jobs_of(rest)] == [job.key for job in jobs_of(plan())][8:]
    assert [case.key for case in rest.cases] == ["b"]
    assert 0 < rest.seconds < plan().seconds / 2
    short = Conductor(past.plan, path, past=past, budget_s=rest.seconds * 0.7).rest()
    assert {job.key for job in jobs_of(short)} == {job.key for job in jobs_of(rest)}
    assert short.seconds < rest.seconds
    assert path.read_bytes() == content


def reports_everything_before_it_has_begun(tmp_path: Path) -> None:
    rest = Conductor(plan(), tmp_path / "r.jsonl").rest()
    assert rest.cases == plan().cases
    assert rest.seconds == pytest.approx(plan().seconds)


def goes_on_after_a_device_that_does_not_start_and_tries_it_again(tmp_path: Path) -> None:
    path, listener = tmp_path / "r.jsonl", NotingListener()
    made = conducted(path, FakeEnvironment(cannot_start="box exited with status 1: no memory"), listener=listener)
    assert made.failed == listener.skipped
    assert [one.reason for one in read(path).skipped] == ["box exited with status 1: no memory"] * 10
    assert read(path).finished == ()
    assert conducted(path).failed == {}
    assert len(read(path).finished) == 10


def skips_jobs_whose_bed_is_refused_at_the_call_and_makes_the_others(tmp_path: Path) -> None:
    class Strict(FakeEnvironment):
        def opened(self, setup: Setup, traffic: Traffic) -> AbstractContextManager[Bed]:
            if setup.memory_mib == 512 and setup.dut.name == "dl3d":
                raise UsageFault("box: burst = 32, but it was built for 64")
            return self.bed(setup, traffic)

        def environment(self) -> Environment:
            return replace(super().environment(), open_bed=self.opened)

    path = tmp_path / "r.jsonl"
    for _ in range(2):
        made = conducted(path, Strict())
        assert set(made.failed.values()) == {"box: burst = 32, but it was built for 64"}
        assert made.left() == []
        assert 0 < len(read(path).finished) == 10 - len(made.failed)


def counts_what_is_made_at_the_call_as_time_of_the_bed(tmp_path: Path) -> None:
    class Laying(FakeEnvironment):
        """Creates routing tables before it returns the context."""

        laying_s = 0.0

        def opened(self, setup: Setup, traffic: Traffic) -> AbstractContextManager[Bed]:
            self.time_s += self.laying_s
            return self.bed(setup, traffic)

        def environment(self) -> Environment:
            return replace(super().environment(), open_bed=self.opened)

    class Slow(Laying):
        laying_s = 60.0

    quick, slow = NotingListener(), NotingListener()
    conducted(tmp_path / "quick.jsonl", Laying(), listener=quick)
    conducted(tmp_path / "slow.jsonl", Slow(), listener=slow)
    assert slow.left_s[0] > quick.left_s[0] + 5


def goes_on_after_a_search_that_has_no_result(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        for stream in results["streams"]:
            if results["run"] < 12:
                stream["lost_by_gaps"] += 7

    path, listener = tmp_path / "r.jsonl", NotingListener()
    made = conducted(path, FakeEnvironment(spoil=spoil), listener=listener)
    assert made.failed
    assert len(made.done) + len(made.failed) == 10
    assert all(re.match("no result: ", reason) for reason in listener.skipped.values())
    assert {one.job for one in read(path).skipped} == set(made.failed)
    assert conducted(path).failed == {}
    assert len(read(path).finished) == 10


def starts_the_bed_again_after_a_fault_in_it(tmp_path: Path) -> None:
    class Dying(FakeGenerator):
        """Stops replying from its fourth run on."""

        def reply_send(self, params: dict[str, Any]) -> dict[str, Any]:
            if self.run == 3:
                raise Fault("dl3gen does not reply")
            return super().reply_send(params)

    class Frail(FakeEnvironment):
        @contextmanager
        def bed(self, setup: Setup, traffic: Traffic) -> Iterator[Bed]:
            with super().bed(setup, traffic) as bed:
                yield FakeBed(Dying() if len(self.beds) == 2 else FakeGenerator()) if bed else bed

    path, fake = tmp_path / "r.jsonl", Frail()
    made = conducted(path, fake)
    assert list(made.failed.values()) == ["dl3gen does not reply"]
    assert len(made.done) == 9
    assert len(fake.beds) == 5


def reports_how_much_is_left_with_what_later_jobs_take(tmp_path: Path) -> None:
    class More(NotingListener):
        def on_left(self, _frame: str, seconds: float) -> None:
            self.left_s.append(seconds)

    listener = More()
    conducted(tmp_path / "r.jsonl", listener=listener)
    assert listener.left_s[0] == pytest.approx(plan().seconds, rel=0.3)
    assert listener.left_s[-1] < plan().seconds / 8
