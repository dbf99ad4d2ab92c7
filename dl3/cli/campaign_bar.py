"""The progress bar of a campaign: case, job and remaining time."""

from collections.abc import Sequence

from dl3.bench.campaign import Listener
from dl3.campaign.plan import jobs_of
from dl3.cli.progress import Bar, span, words_for
from dl3.model.campaign import Job, Plan, Setup
from dl3.model.fault import Fault
from dl3.model.noun import Noun
from dl3.model.trial import Throughput, Trial


def name_of(job: Job) -> str:
    """Case, device, values, test and frame."""
    values = ", ".join(f"{name} {value}" for name, value in job.parameters.items())
    return f"{job.case} {job.setup.dut.name}{f' ({values})' if values else ''}: {job.test}, {words_for(job.frame)}"


class CampaignBar(Bar, Listener):
    """Redraws between trials; events of a job stay as a line above the bar."""

    is_paced = False  # the conductor of the campaign corrects its estimates itself

    def __init__(self, n_jobs: int) -> None:
        super().__init__()
        self._n_jobs = n_jobs
        self._doing = ""
        self._n_trials = 0
        self._invalid: list[str] = []  # one reason per INVALID trial of the job

    def words(self, frame: str) -> str:
        """The current activity."""
        return self._doing or words_for(frame)

    def on_bed(self, setup: Setup, left_s: float) -> None:
        """A device is being started."""
        self._doing = f"starting {setup.dut.name}"
        self.on_left("", left_s)

    def on_proof(self, wire: str, left_s: float) -> None:
        """The generator is tested against itself."""
        self._doing = f"testing the generator itself over {wire}"
        self._n_trials, self._invalid = 0, []
        self.on_left("", left_s)

    def on_job(self, job: Job, n_done: int, left_s: float) -> None:
        """The next job."""
        self._doing = f"{n_done + 1}/{self._n_jobs} {name_of(job)}"
        self._n_trials, self._invalid = 0, []
        self.on_left(job.frame, left_s)

    def on_trial(self, trial: Trial) -> None:
        """INVALID trials are reported at the end of the job, in a single line."""
        self._n_trials += 1
        self._invalid += trial.invalid[:1]
        self.judge_machine(trial)

    def on_done(self, job: Job, results: Sequence[Noun]) -> None:
        """One line for each rate found."""
        rates = [f"{result.pps / 1e6:.3f} Mpps" for result in results if isinstance(result, Throughput)]
        n = len(self._invalid)
        invalid = f"; {n} of {self._n_trials} trials were INVALID, the last because {self._invalid[-1]}" if n else ""
        self._say(f"{name_of(job)}: {', '.join(rates) or 'done'}{invalid}")

    def on_skip(self, job: Job, reason: str) -> None:
        """One line, and the exit status."""
        self._say(f"{name_of(job)}: SKIPPED, {reason}")

    def on_fault_of_bed(self, fault: Fault) -> None:
        """The message names its job itself."""
        self._say(f"{self._doing}: {fault}")

    def on_plan(self, plan: Plan) -> None:
        """The remaining jobs were planned again."""
        self._n_jobs = len(jobs_of(plan))
        self._say(f"the remaining jobs were planned again to fit the time budget: {span(plan.seconds)}")
