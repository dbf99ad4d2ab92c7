"""Verification looks at effects."""

from pathlib import Path

from dl3.host.change import journal as journals
from dl3.host.change.apply import apply
from dl3.host.change.confirm import Settled, settle
from dl3.host.change.fixture import boot
from dl3.host.change.journal import Journal
from dl3.host.change.root import Root, no_command
from dl3.host.change.verify import Row, verify
from dl3.host.facts.read import read
from dl3.host.fixture import RELEASE, Machine
from dl3.host.tuning.plan import plan
from dl3.host.tuning.request import Request

SYS = "sys/devices/system"


def _applied(tmp_path: Path, made: Machine) -> tuple[Root, Journal]:
    made.write(tmp_path / "root")
    root = Root(tmp_path / "root", no_command)
    return root, apply(root, plan(read(root.tree), Request()))


def _boot(root: Root, isolated: str, nohz_full: str) -> Journal:
    """A trial boot that passed, and what the kernel shows later."""
    boot(root.folder)
    assert settle(root) == Settled.KEPT
    (root.folder / SYS / "cpu/isolated").write_text(f"{isolated}\n")
    (root.folder / SYS / "cpu/nohz_full").write_text(f"{nohz_full}\n")
    journal = journals.read(root)
    assert journal
    return journal


def _differing(root: Root, journal: Journal) -> list[Row]:
    return [row for row in verify(root, journal, read(root.tree)) if not row.is_met]


def parameters_wait_for_a_boot_and_nothing_else_does(tmp_path: Path) -> None:
    root, journal = _applied(tmp_path, Machine(n_cores=4, governor="powersave"))
    assert [(row.what, row.waits) for row in _differing(root, journal)] == [
        ("trial boot", True),
        ("isolcpus: in effect", True),
        ("nohz_full: in effect", True),
        ("rcu_nocbs: in effect", True),
    ]
    journal = _boot(root, "1", "1")
    assert _differing(root, journal) == []


def names_what_the_kernel_did_not_do_although_the_words_are_there(tmp_path: Path) -> None:
    root, journal = _applied(tmp_path, Machine())
    journal = _boot(root, "2", "(null)")
    assert [(row.what, row.wanted, row.found, row.waits) for row in _differing(root, journal)] == [
        ("isolcpus: in effect", "CPU 1", "CPU 2", False),
        ("nohz_full: in effect", "CPU 1", "no CPU", False),
    ]


def names_fewer_pages_a_changed_value_and_an_interrupt_on_the_core_of_a_worker(tmp_path: Path) -> None:
    made = Machine(governor="powersave")
    root, journal = _applied(tmp_path, made)
    journal = _boot(root, "1", "1")
    (root.folder / SYS / "node/node0/hugepages/hugepages-2048kB/nr_hugepages").write_text("5\n")
    (root.folder / SYS / "cpu/cpu2/cpufreq/scaling_governor").write_text("powersave\n")
    (root.folder / "etc/sysctl.d/90-dl3.conf").unlink()
    made.irq(40, "eth0-rx", "1")
    for path, text in made.texts.items():
        if "/irq/40/" in path:
            file = root.folder / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    found = {row.what: row.found for row in _differing(root, journal)}
    assert found == {
        "/etc/sysctl.d/90-dl3.conf": "no file",
        "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "powersave",
        "interrupts on cores of workers": "40 (eth0-rx)",
        "huge pages of node 0": "10 MiB",
    }


def a_kernel_without_nohz_full_is_not_asked_for_it(tmp_path: Path) -> None:
    made = Machine()
    made.texts[f"/boot/config-{RELEASE}"] = "CONFIG_CPU_ISOLATION=y\n"
    root, journal = _applied(tmp_path, made)
    journal = _boot(root, "1", "(null)")
    assert _differing(root, journal) == []
