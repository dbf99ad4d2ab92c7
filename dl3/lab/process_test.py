"""Programs that are suspended, exit in order, or do not."""

import sys
import time
from pathlib import Path

import pytest

from dl3.lab.process import Process, end_all
from dl3.model.fault import Fault

COUNTS = "import sys, time\nwhile True: print('tick', flush=True); time.sleep(0.01)"
DEAF = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"


def process(text: str, folder: Path) -> Process:
    return Process("it", [sys.executable, "-c", text], folder / "log")


def says(one: Process, word: str) -> bool:
    return word in one.log.read_text(encoding="utf-8")


def _stands_still(one: Process) -> bool:
    """A moment after the signal, when it gets its core again: it may write until then."""
    stat = Path(f"/proc/{one.process.pid}/stat").read_text(encoding="ascii")
    return stat.rpartition(")")[2].split()[0] == "T"


def stands_still_while_frozen(tmp_path: Path) -> None:
    one = process(COUNTS, tmp_path)
    one.wait_until(lambda: says(one, "tick"), "ticked", 60)
    one.freeze()
    one.wait_until(lambda: _stands_still(one), "stood still", 60)
    before = one.log.stat().st_size
    time.sleep(0.1)
    assert one.log.stat().st_size == before
    one.thaw()
    one.wait_until(lambda: one.log.stat().st_size > before, "ticked", 60)
    assert one.kill() == -9


def is_killed_when_it_does_not_end(tmp_path: Path) -> None:
    one = process(DEAF, tmp_path)
    one.wait_until(lambda: says(one, "deaf"), "spoke", 60)
    assert one.stop(timeout_s=0.2) == -9


def reports_the_last_output_of_a_program_that_exited(tmp_path: Path) -> None:
    one = process("import sys; print('no room'); sys.exit(3)", tmp_path)
    with pytest.raises(Fault, match="it exited with status 3: no room"):
        one.wait_until(lambda: False, "came", 60)


def names_what_it_waited_for(tmp_path: Path) -> None:
    one = process(DEAF, tmp_path)
    one.wait_until(lambda: says(one, "deaf"), "spoke", 60)
    with pytest.raises(Fault, match="timed out after 0 s waiting until it was ready: deaf"):
        one.wait_until(lambda: False, "was ready", 0.1)
    one.kill()


@pytest.mark.parametrize("error", [ProcessLookupError(), KeyboardInterrupt()])
def ends_all_of_them_when_ending_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(_number: int) -> None:
        raise error

    first, second = (Process(name, ["sleep", "60"], tmp_path / name) for name in ("first", "second"))
    second.freeze()
    with monkeypatch.context() as patch:
        patch.setattr(first, "send_signal", fail)
        with pytest.raises(type(error)):
            end_all([first, second])
    assert second.process.returncode == -2
    assert first.kill() == -9
