"""Apply and undo on trees below a temporary folder, stopped at every single change in turn."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dl3.host.change import apply as changes
from dl3.host.change import journal as journals
from dl3.host.change.root import Root
from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import DriverStep, FileStep, LiveStep
from dl3.model.fault import Fault, UsageFault

CARD = "0000:03:00.0"
REQUEST = Request(nics=(CARD,), binds=True)
Manifest = dict[str, tuple[str, int, str]]


class Crash(BaseException):
    """The process is killed: nothing of it runs any more."""


def _unused(_: Sequence[str]) -> None:
    """Never called."""


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote: only a power cut does, and the order is tested on its own."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@dataclass(frozen=True)
class Kernel(Root):
    """A folder that behaves like sysfs where drivers are bound. Commands are listed."""

    own_driver: str = "ixgbe"
    ran: list[tuple[str, ...]] = field(default_factory=list)
    execute: Callable[[Sequence[str]], None] = field(default=_unused)
    fails: str = ""  # a path that refuses to be written

    def run(self, command: Sequence[str]) -> None:
        """List it."""
        self.passing(f"run {command[0]}")
        self.ran.append(tuple(command))

    def poke(self, path: str, value: str) -> None:
        """As the kernel does."""
        if self.fails and self.fails in path:
            raise Fault(f"the kernel refuses '{value}' for {path}: Invalid argument")
        card = self.folder / f"sys/bus/pci/devices/{CARD}"
        if path.endswith("/driver/unbind"):
            self.passing(f"poke {path}")
            (card / "driver").unlink()
        elif path.endswith("drivers_probe"):
            self.passing(f"poke {path}")
            override = (card / "driver_override").read_text().strip()
            driver = self.own_driver if override == "(null)" else override
            (card / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        else:
            super().poke(path, value or "(null)")


def _machine() -> Machine:
    made = Machine(n_cores=2, n_threads=2, nics=(CARD,), governor="powersave", idle_states=(("C1", 2), ("C6", 170)))
    made.nic("0000:81:00.0", 0, "mgmt")
    made.default_route(4, "mgmt")
    made.service("NetworkManager")
    made.irq(40, "eth0-rx", "1")
    made.texts["/sys/kernel/mm/ksm/run"] = "1\n"
    return made


def _manifest(root: Path) -> Manifest:
    found: Manifest = {}
    for folder, _, _ in os.walk(root):
        for one in os.scandir(folder):
            mode, name = stat.S_IMODE(one.stat(follow_symlinks=False).st_mode), one.path.removeprefix(f"{root}/")
            if one.is_symlink():
                found[name] = ("link", 0, os.readlink(one.path))  # noqa: PTH115 - many files, and pathlib is slow
            elif one.is_dir():
                found[name] = ("folder", mode, "")
            else:
                with open(one.path) as file:  # noqa: PTH123
                    found[name] = ("file", mode, file.read())
    return found


def _ready(tmp_path: Path) -> tuple[Path, Tuning]:
    root = tmp_path / "root"
    _machine().write(root)
    return root, plan(read(Root(root).tree), REQUEST)


def _without_journal(manifest: Manifest) -> Manifest:
    return {path: one for path, one in manifest.items() if not path.startswith("var/lib/dl3-host")}


def applies_every_step_and_undoes_it_byte_for_byte(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before, kernel = _manifest(root), Kernel(root)
    assert {step.kind for step in tuning.steps} == {"file", "live", "driver"}
    changes.apply(kernel, tuning)
    for step in tuning.steps:
        if isinstance(step, FileStep):
            assert (root / step.path.lstrip("/")).read_text() == step.after
        elif isinstance(step, LiveStep):
            assert (root / step.path.lstrip("/")).read_text().strip() == step.after
        else:
            assert (root / f"sys/bus/pci/devices/{step.address}/driver").readlink().name == "vfio-pci"
    assert [command[0] for command in kernel.ran] == ["nmcli", "update-grub", "systemd-run", "modprobe"]
    assert changes.undo(kernel) == ()
    assert _manifest(root) == before
    assert [command[0] for command in kernel.ran[4:]] == ["update-grub", "nmcli"]
    assert changes.undo(kernel) is None, "nothing is applied any more"


def arms_the_undo_before_the_first_driver_changes(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    passed: list[str] = []
    changes.apply(Kernel(root, passing=passed.append), tuning)
    armed = passed.index("run systemd-run")
    assert armed < min(n for n, name in enumerate(passed) if "driver" in name and "poke" in name)
    assert passed.index(f"rename {journals.PATH}") < passed.index("rename /etc/default/grub.d/90-dl3.cfg")


def the_journal_is_on_disk_before_the_first_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, tuning = _ready(tmp_path)
    events: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda one: events.append(f"sync {Path(f'/proc/self/fd/{one}').readlink()}"))
    changes.apply(Kernel(root, passing=events.append), tuning)
    folder = f"{root}{journals.FOLDER}"
    first = next(
        n
        for n, one in enumerate(events)
        if not one.startswith("sync") and "journal" not in one and "dl3-host" not in one
    )
    renamed = events.index(f"rename {journals.PATH}")
    assert f"sync {folder}/.journal.json.dl3-new" in events[:renamed]
    assert f"sync {folder}" in events[renamed:first]
    assert f"sync {root}/var/lib" in events[:first]


def _stop_after(n: int) -> Callable[[str], None]:
    left = [n]

    def passing(_: str) -> None:
        if not left[0]:
            raise Crash
        left[0] -= 1

    return passing


def _count(work: Callable[[Kernel], object], root: Path) -> int:
    passed: list[str] = []
    work(Kernel(root, passing=passed.append))
    return len(passed)


def an_apply_that_is_killed_anywhere_is_undone_by_the_next_call(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    shutil.copytree(root, tmp_path / "whole", symlinks=True)
    n_changes = _count(lambda kernel: changes.apply(kernel, tuning), tmp_path / "whole")
    assert n_changes > 25
    for n in range(n_changes):
        with pytest.raises(Crash):
            changes.apply(Kernel(root, passing=_stop_after(n)), tuning)
        changes.undo(Kernel(root))
        assert _manifest(root) == before, n


@pytest.mark.long
def an_apply_that_is_killed_anywhere_can_be_repeated(tmp_path: Path) -> None:
    """Costs as much as the test above, and its second half is the same code: undoing first."""
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    shutil.copytree(root, tmp_path / "whole", symlinks=True)
    n_changes = _count(lambda kernel: changes.apply(kernel, tuning), tmp_path / "whole")
    after = _without_journal(_manifest(tmp_path / "whole"))
    for n in range(n_changes):
        with pytest.raises(Crash):
            changes.apply(Kernel(root, passing=_stop_after(n)), tuning)
        changes.apply(Kernel(root), tuning)
        assert _without_journal(_manifest(root)) == after, n
        changes.undo(Kernel(root))
        assert _manifest(root) == before, n


def an_undo_that_is_killed_anywhere_is_finished_by_the_next_call(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    changes.apply(Kernel(root), tuning)
    shutil.copytree(root, tmp_path / "whole", symlinks=True)
    n_changes = _count(changes.undo, tmp_path / "whole")
    assert n_changes > 25
    for n in range(n_changes):
        with pytest.raises(Crash):
            changes.undo(Kernel(root, passing=_stop_after(n)))
        changes.undo(Kernel(root))
        assert _manifest(root) == before, n
        changes.apply(Kernel(root), tuning)


@given(st.lists(st.integers(0, 80), max_size=4))
@settings(
    max_examples=10,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def killed_again_and_again_it_still_comes_back(tmp_path: Path, stops: list[int]) -> None:
    shutil.rmtree(tmp_path / "root", ignore_errors=True)
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    for n, stop in enumerate(stops):
        kernel = Kernel(root, passing=_stop_after(stop))
        work = changes.undo if n % 2 else (lambda one: changes.apply(one, tuning))
        try:
            work(kernel)
        except (Crash, UsageFault):
            continue
    changes.undo(Kernel(root))
    assert _manifest(root) == before


@pytest.mark.parametrize("path", ["ksm/run", "scaling_governor", "driver_override"])
def a_step_that_fails_leaves_everything_as_it_was(path: str, tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    with pytest.raises(Fault, match=r"the kernel refuses .*; everything is as before"):
        changes.apply(Kernel(root, fails=path), tuning)
    assert _manifest(root) == before


def an_interrupt_that_cannot_be_moved_does_not_stop_the_rest(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    kernel = Kernel(root, fails="/proc/irq/40")
    changes.apply(kernel, tuning)
    changes.undo(kernel)
    assert _manifest(root) == before


def nothing_is_done_if_a_value_changed_since_the_plan_was_made(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    (root / "sys/kernel/mm/ksm/run").write_text("0\n")
    before = _manifest(root)
    with pytest.raises(UsageFault, match=r"/sys/kernel/mm/ksm/run has '0' instead of '1': it changed since"):
        changes.apply(Kernel(root), tuning)
    assert _manifest(root) == before


def what_others_changed_since_is_named_and_left(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    kernel = Kernel(root)
    changes.apply(kernel, tuning)
    (root / "etc/sysctl.d/90-dl3.conf").write_text("mine\n")
    (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").write_text("schedutil\n")
    left = changes.undo(kernel)
    assert left
    assert sorted(one.split()[0] for one in left) == [
        "/etc/sysctl.d/90-dl3.conf",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ]
    assert (root / "etc/sysctl.d/90-dl3.conf").read_text() == "mine\n"


def restores_mode_and_contents_of_a_file_that_was_there(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    file = root / "etc/sysctl.d/90-dl3.conf"
    file.write_text("# older\n")
    file.chmod(0o640)
    tuning = plan(read(Root(root).tree), REQUEST)
    before = _manifest(root)
    changes.apply(Kernel(root), tuning)
    assert file.read_text() != "# older\n"
    changes.undo(Kernel(root))
    assert _manifest(root) == before


def fewer_huge_pages_than_asked_for_are_ours_too(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before = _manifest(root)
    changes.apply(Kernel(root), tuning)
    (root / "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages").write_text("7\n")
    assert changes.undo(Kernel(root)) == ()
    assert _manifest(root) == before


def a_second_plan_waits_until_the_first_is_undone(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    changes.apply(Kernel(root), tuning)
    with pytest.raises(UsageFault, match="a plan is applied already"):
        changes.apply(Kernel(root), tuning)


def what_is_not_confirmed_is_undone_and_what_is_confirmed_stays(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    before, kernel = _manifest(root), Kernel(root)
    changes.apply(kernel, tuning)
    assert changes.undo(kernel, only_unconfirmed=True) == ()
    assert _manifest(root) == before
    changes.apply(kernel, tuning)
    assert changes.confirm(kernel)
    assert kernel.ran[-1] == ("systemctl", "stop", "dl3-host-undo.timer")
    assert not changes.confirm(kernel)
    after = _manifest(root)
    assert changes.undo(kernel, only_unconfirmed=True) is None
    assert _manifest(root) == after


def _refused(root: Path, tuning: Tuning) -> str:
    before = _manifest(root)
    with pytest.raises(UsageFault) as caught:
        changes.apply(Kernel(root), tuning)
    assert _manifest(root) == before
    return str(caught.value)


def refuses_a_plan_for_another_machine(tmp_path: Path) -> None:
    root, _ = _ready(tmp_path)
    other = plan(read(Machine(n_cores=8).tree()), Request())
    assert _refused(root, other).startswith("this plan was made for another machine")


def refuses_a_card_that_became_the_management_card(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    (root / "dl3-outputs/ip6-routes").write_text(json.dumps([{"dst": "default", "dev": "eth0"}]))
    assert "this machine is managed through it" in _refused(root, tuning)
    only_file = tuning.model_copy(
        update={"steps": tuple(one for one in tuning.steps if not isinstance(one, DriverStep))}
    )
    assert "this machine is managed through it" in _refused(root, only_file)
    for name in ("/etc/driverctl.d/", "NetworkManager"):
        steps = tuple(one for one in tuning.steps if isinstance(one, FileStep) and name in one.path)
        assert "managed through it" in _refused(root, tuning.model_copy(update={"steps": steps})), name


def refuses_to_bind_where_nothing_could_undo_it(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    (root / "usr/bin/systemd-run").unlink()
    assert "there is no systemd-run" in _refused(root, tuning)


def refuses_a_read_only_file_system(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    (tmp_path / "plan.json").write_text(tuning.model_dump_json())
    program = (
        "import sys, pathlib\n"
        "from dl3.host.change import apply, root\n"
        "from dl3.host.tuning.plan import load\n"
        "apply.apply(root.root_at(pathlib.Path(sys.argv[1])), load(pathlib.Path(sys.argv[2])))\n"
    )
    mounted = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1" "$4"'
    words = [str(root), sys.executable, program, str(tmp_path / "plan.json")]
    environment = os.environ | {"PYTHONPATH": str(changes.TOP)}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, "sh", *words], capture_output=True, text=True, env=environment
    )
    assert done.stderr.splitlines()[-1].endswith("nothing is changed; remount it writable"), done.stderr
    assert "is read-only" in done.stderr


def a_damaged_journal_stops_everything(tmp_path: Path) -> None:
    root, tuning = _ready(tmp_path)
    changes.apply(Kernel(root), tuning)
    (root / journals.PATH.lstrip("/")).write_text("{")
    for work in (changes.undo, changes.confirm, lambda one: changes.apply(one, tuning)):
        with pytest.raises(Fault, match="is damaged"):
            work(Kernel(root))
