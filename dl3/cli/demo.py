"""The second half of the demo: dl3gen measures dl3d over memif, one core each, and prints two tables and a page."""

from pathlib import Path

from dl3.bench.demo import latency_at, search_all
from dl3.bench.site import ProgressListener
from dl3.cli.place import Place, run_at
from dl3.cli.printing import out, table
from dl3.cli.progress import Bar
from dl3.cli.report import report
from dl3.cli.results import say, show
from dl3.cli.rfc2544 import LATENCY_COLUMNS, latency_row
from dl3.control.client import DL3GEN
from dl3.host.busy import look, sentence
from dl3.model.fault import Fault
from dl3.model.trial import Trial


class Patient(Bar):
    """Does not report INVALID trials: they are in the record, and each is repeated."""

    is_paced = False  # the time of the demo is limited

    def on_trial(self, trial: Trial) -> None:
        """Only the warning that the machine is too busy."""
        self.judge_machine(trial)


def demo(record: Path) -> None:
    """Measure, print, and write the page next to the record."""
    if busy := look():
        say(f"warning: {sentence(busy)}; figures will be lower and noisier than those of a quiet machine")
    place = Place(DL3GEN.socket, "", "", is_lab=True, streams=None, record=record)
    bar = Patient()
    listener: ProgressListener = bar
    with run_at(place, 1.0, listener) as run, bar:
        found = search_all(run)
        trials = latency_at(run, [one.result for one in found])
    if not found:
        raise Fault(
            f"no frame size has a throughput, so there is no page; {sentence(look())}; try again when the cores are free"
        )
    show("throughput of dl3d without loss; Gbit/s with preamble and gap, latency at that rate", found, is_brief=True)
    say("latency of dl3d at shares of that throughput, from the time at which a frame was due")
    out.print(table("", LATENCY_COLUMNS, [latency_row(trial) for trial in trials]))
    report([record])
