"""Apply and undo on trees below a temporary folder, stopped at every single change in turn."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dl3.host.change import apply as changes
from dl3.host.change import journal as journals
from dl3.host.change.confirm import confirm
from dl3.host.change.fixture import REQUEST, Crash, Kernel, Manifest, manifest, ready, stop_after
from dl3.host.change.root import Root
from dl3.host.change.steps import TRIAL_TEXT
from dl3.host.change.trial_boot import TOP
from dl3.host.change.undo import undo
from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.tuning.names import GRUB
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import DriverStep, FileStep, LiveStep
from dl3.model.fault import Fault, UsageFault


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote: only a power cut does, and the order is tested on its own."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def applies_every_step_and_undoes_it_byte_for_byte(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before, kernel = manifest(root), Kernel(root)
    assert {step.kind for step in tuning.steps} == {"file", "live", "driver"}
    changes.apply(kernel, tuning)
    assert [command[0] for command in kernel.ran] == ["update-grub", "systemctl", "systemd-run", "nmcli", "modprobe"]
    assert confirm(kernel)
    assert (root / GRUB[1:]).read_text() == TRIAL_TEXT
    for n, step in enumerate(tuning.steps):
        if isinstance(step, FileStep):
            assert n in tuning.tried or (root / step.path.lstrip("/")).read_text() == step.after
        elif isinstance(step, LiveStep):
            assert (root / step.path.lstrip("/")).read_text().strip() == step.after
        else:
            assert (root / f"sys/bus/pci/devices/{step.address}/driver").readlink().name == "vfio-pci"
    assert [command[0] for command in kernel.ran[5:]] == ["systemctl"]
    assert undo(kernel) == ()
    assert manifest(root) == before
    assert [command[0] for command in kernel.ran[6:]] == ["nmcli", "update-grub"]
    assert undo(kernel) is None, "nothing is applied any more"


def arms_the_undo_before_the_first_driver_changes(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    passed: list[str] = []
    changes.apply(Kernel(root, passing=passed.append), tuning)
    armed = passed.index("run systemd-run")
    assert armed < min(n for n, name in enumerate(passed) if "driver" in name and "poke" in name)
    assert passed.index(f"rename {journals.PATH}") < passed.index("rename /etc/default/grub.d/90-dl3.cfg")


def the_journal_is_on_disk_before_the_first_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, tuning = ready(tmp_path)
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


def _without_journal(manifest: Manifest) -> Manifest:
    return {path: one for path, one in manifest.items() if not path.startswith("var/lib/dl3-host")}


def _count(work: Callable[[Kernel], object], root: Path) -> int:
    passed: list[str] = []
    work(Kernel(root, passing=passed.append))
    return len(passed)


def an_apply_that_is_killed_anywhere_is_undone_by_the_next_call(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    shutil.copytree(root, tmp_path / "whole", symlinks=True)
    n_changes = _count(lambda kernel: changes.apply(kernel, tuning), tmp_path / "whole")
    assert n_changes > 25
    for n in range(n_changes):
        with pytest.raises(Crash):
            changes.apply(Kernel(root, passing=stop_after(n)), tuning)
        undo(Kernel(root))
        assert manifest(root) == before, n


@pytest.mark.long
def an_apply_that_is_killed_anywhere_can_be_repeated(tmp_path: Path) -> None:
    """Costs as much as the test above, and its second half is the same code: undoing first."""
    root, tuning = ready(tmp_path)
    before = manifest(root)
    shutil.copytree(root, tmp_path / "whole", symlinks=True)
    n_changes = _count(lambda kernel: changes.apply(kernel, tuning), tmp_path / "whole")
    after = _without_journal(manifest(tmp_path / "whole"))
    for n in range(n_changes):
        with pytest.raises(Crash):
            changes.apply(Kernel(root, passing=stop_after(n)), tuning)
        changes.apply(Kernel(root), tuning)
        assert _without_journal(manifest(root)) == after, n
        undo(Kernel(root))
        assert manifest(root) == before, n


def an_undo_that_is_killed_anywhere_is_finished_by_the_next_call(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    changes.apply(Kernel(root), tuning)
    shutil.copytree(root, tmp_path / "whole", symlinks=True)
    n_changes = _count(undo, tmp_path / "whole")
    assert n_changes > 25
    for n in range(n_changes):
        with pytest.raises(Crash):
            undo(Kernel(root, passing=stop_after(n)))
        undo(Kernel(root))
        assert manifest(root) == before, n
        changes.apply(Kernel(root), tuning)


@given(st.lists(st.integers(0, 80), max_size=4))
@settings(
    max_examples=10,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def killed_again_and_again_it_still_comes_back(tmp_path: Path, stops: list[int]) -> None:
    shutil.rmtree(tmp_path / "root", ignore_errors=True)
    root, tuning = ready(tmp_path)
    before = manifest(root)
    for n, stop in enumerate(stops):
        kernel = Kernel(root, passing=stop_after(stop))
        work = undo if n % 2 else (lambda one: changes.apply(one, tuning))
        try:
            work(kernel)
        except (Crash, UsageFault):
            continue
    undo(Kernel(root))
    assert manifest(root) == before


@pytest.mark.parametrize("path", ["ksm/run", "scaling_governor", "driver_override"])
def a_step_that_fails_leaves_everything_as_it_was(path: str, tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    with pytest.raises(Fault, match=r"the kernel refuses .*; everything is as before"):
        changes.apply(Kernel(root, fails=path), tuning)
    assert manifest(root) == before


def an_interrupt_that_cannot_be_moved_does_not_stop_the_rest(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    kernel = Kernel(root, fails="/proc/irq/40")
    changes.apply(kernel, tuning)
    undo(kernel)
    assert manifest(root) == before


def nothing_is_done_if_a_value_changed_since_the_plan_was_made(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    (root / "sys/kernel/mm/ksm/run").write_text("0\n")
    before = manifest(root)
    with pytest.raises(UsageFault, match=r"/sys/kernel/mm/ksm/run has '0' instead of '1': it changed since"):
        changes.apply(Kernel(root), tuning)
    assert manifest(root) == before


def what_others_changed_since_is_named_and_left(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    kernel = Kernel(root)
    changes.apply(kernel, tuning)
    (root / "etc/sysctl.d/90-dl3.conf").write_text("mine\n")
    (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").write_text("schedutil\n")
    left = undo(kernel)
    assert left
    assert sorted((one.target, one.is_final) for one in left) == [
        ("/etc/sysctl.d/90-dl3.conf", True),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", True),
    ]
    assert (root / "etc/sysctl.d/90-dl3.conf").read_text() == "mine\n"
    assert undo(kernel) is None, "what belongs to others is not tried again"


def restores_mode_and_contents_of_a_file_that_was_there(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    file = root / "etc/sysctl.d/90-dl3.conf"
    file.write_text("# older\n")
    file.chmod(0o640)
    tuning = plan(read(Root(root).tree), REQUEST)
    before = manifest(root)
    changes.apply(Kernel(root), tuning)
    assert file.read_text() != "# older\n"
    undo(Kernel(root))
    assert manifest(root) == before


def fewer_huge_pages_than_asked_for_are_ours_too(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    changes.apply(Kernel(root), tuning)
    (root / "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages").write_text("7\n")
    assert undo(Kernel(root)) == ()
    assert manifest(root) == before


def a_second_plan_waits_until_the_first_is_undone(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    changes.apply(Kernel(root), tuning)
    with pytest.raises(UsageFault, match="a plan is applied already"):
        changes.apply(Kernel(root), tuning)


def _refused(root: Path, tuning: Tuning) -> str:
    before = manifest(root)
    with pytest.raises(UsageFault) as caught:
        changes.apply(Kernel(root), tuning)
    assert manifest(root) == before
    return str(caught.value)


def refuses_a_plan_for_another_machine(tmp_path: Path) -> None:
    root, _ = ready(tmp_path)
    other = plan(read(Machine(n_cores=8).tree()), Request())
    assert _refused(root, other).startswith("this plan was made for another machine")


def refuses_a_card_that_became_the_management_card(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    (root / "dl3-outputs/ip6-routes").write_text(json.dumps([{"dst": "default", "dev": "eth0"}]))
    assert "this machine is managed through it" in _refused(root, tuning)
    only_file = tuning.model_copy(
        update={"steps": tuple(one for one in tuning.steps if not isinstance(one, DriverStep))}
    )
    assert "this machine is managed through it" in _refused(root, only_file)
    for name in ("/etc/driverctl.d/pci-", "NetworkManager"):
        steps = tuple(one for one in tuning.steps if isinstance(one, FileStep) and name in one.path)
        assert "managed through it" in _refused(root, tuning.model_copy(update={"steps": steps})), name


def refuses_to_bind_where_nothing_could_undo_it(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    shutil.rmtree(root / "run/systemd/system")
    assert "systemd can undo it, and systemd is not running: change them yourself" in _refused(root, tuning)
    (root / "usr/bin/systemd-run").unlink()
    assert "there is no systemd-run" in _refused(root, tuning)


def refuses_a_read_only_file_system(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    (tmp_path / "plan.json").write_text(tuning.model_dump_json())
    program = (
        "import sys, pathlib\n"
        "from dl3.host.change import apply, root\n"
        "from dl3.host.tuning.plan import load\n"
        "apply.apply(root.root_at(pathlib.Path(sys.argv[1])), load(pathlib.Path(sys.argv[2])))\n"
    )
    mounted = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1" "$4"'
    words = [str(root), sys.executable, program, str(tmp_path / "plan.json")]
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, "sh", *words], capture_output=True, text=True, env=environment
    )
    assert done.stderr.splitlines()[-1].endswith("nothing is changed; remount it writable"), done.stderr
    assert "is read-only" in done.stderr


def a_damaged_journal_stops_everything(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    changes.apply(Kernel(root), tuning)
    (root / journals.PATH.lstrip("/")).write_text("{")
    for work in (undo, confirm, lambda one: changes.apply(one, tuning)):
        with pytest.raises(Fault, match="is damaged"):
            work(Kernel(root))
