"""dl3 lab: what is refused with one sentence, and what is printed without starting anything."""

import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dl3.cli.lab import app
from dl3.lab import accelerator
from dl3.model.fault import UsageFault

REFUSED = {
    ("--short-queue", "br0"): "--short-queue br0: no such queue: expected vnet1, VM2, vnet3",
    ("--rates", "5,x"): "--rates 5,x: invalid rate 'x': expected frames per second, like 2000,10000,50000",
    ("--rates", "0"): "--rates 0: invalid rate '0': expected frames per second, like 2000,10000,50000",
    ("--rates", ","): "--rates ,: invalid rate '': expected frames per second, like 2000,10000,50000",
    ("--vms", "3"): "--vms 3: the lab kvm-report has 2 guests, or 0: then programs of this machine are in their place",
    ("--vms", "0"): "--vms 0 needs --switch dl3d: programs in place of guests use vhost-user",
    ("--vms", "0", "--switch", "dl3d", "--generator", "pktgen"): (
        "--vms 0 needs dl3gen: pktgen is in the kernel of a guest; omit --generator pktgen"
    ),
    ("--generator", "pktgen", "--switch", "dl3d", "--short-queue", "vnet3"): (
        "--short-queue vnet3 with --switch dl3d is the receive ring of dl3gen: omit --generator pktgen"
    ),
}


@pytest.mark.parametrize("options", REFUSED)
def refuses_with_one_sentence(options: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, ["kvm-report", *options])
    assert isinstance(found.exception, UsageFault)
    assert str(found.exception) == REFUSED[options]


OTHERS = {
    (
        "contrail",
        "--vms",
        "1",
    ): "--vms 1: the lab contrail has 2 guests, or 0: then programs of this machine are in their place",
    ("white-paper-vswitch", "--vms", "2"): (
        "--vms 2: the lab white-paper-vswitch has 1 guest, or 0: then a program of this machine is in its place"
    ),
    ("contrail", "--vms", "0", "--generator", "pktgen"): (
        "--vms 0 needs dl3gen: pktgen is in the kernel of a guest; omit --generator pktgen"
    ),
    ("contrail", "--vms", "0", "--print-qemu"): "--print-qemu needs guests: omit --vms 0",
    ("kvm-report", "--vms", "0", "--print-qemu"): "--print-qemu needs guests: omit --vms 0",
    ("kvm-report", "measure", "--switch", "dl3d"): "--switch has no effect with 'measure': it belongs to 'up'",
    ("kvm-report", "measure", "--vms", "0"): "--vms has no effect with 'measure': it belongs to 'up'",
    ("kvm-report", "up", "--rates", "5"): "--rates has no effect with 'up': it belongs to 'measure'",
    (
        "kernel-notes",
        "down",
        "--record",
        "x",
    ): "--record has no effect with 'down': it belongs to 'measure' and 'report'",
    ("router-on-a-laptop", "measure", "--lang", "zh"): "--lang has no effect with 'measure': it belongs to 'report'",
}


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def refuses_what_a_lab_has_not(words: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, [*words])
    assert isinstance(found.exception, UsageFault), found.output
    assert str(found.exception) == OTHERS[words]


@pytest.mark.parametrize(
    ("devices", "why"), [("", "this QEMU has no igb card"), ('name "igb", bus PCI', "an emulated igb")]
)
def says_why_there_is_no_lab_of_virtual_functions(monkeypatch: pytest.MonkeyPatch, devices: str, why: str) -> None:
    done = subprocess.CompletedProcess[str]([], 0, devices, "")
    monkeypatch.setattr("dl3.labs.sriov.subprocess.run", lambda *_, **__: done)
    found = CliRunner().invoke(app, ["white-paper-sriov"])
    assert str(found.exception).startswith(f"not applicable here: {why}")
    assert "'dl3 bench run white-paper'" in str(found.exception)


def appends_to_no_file_that_is_not_a_record(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("mine\n", encoding="utf-8")
    found = CliRunner().invoke(app, ["kvm-report", "--vms", "0", "--switch", "dl3d", "--record", str(notes)])
    assert str(found.exception) == f"--record {notes} is not a record: choose another file, or omit it for a new one"
    assert notes.read_text(encoding="utf-8") == "mine\n"


def refuses_a_page_that_cannot_be_written_before_it_starts(tmp_path: Path) -> None:
    record, words = tmp_path / "record", ["kvm-report", "--vms", "0", "--switch", "dl3d"]
    found = CliRunner().invoke(app, [*words, "--record", str(record), "--output", str(tmp_path)])
    assert str(found.exception) == (
        f"--output {tmp_path} cannot be written: {tmp_path} is not a file; choose another file"
    )
    assert not record.exists()


@pytest.mark.parametrize("words", [["kvm-report", "--switch", "ovs"], ["kvm-report", "sideways"], ["no-such-lab"]])
def refuses_unknown_names(words: list[str]) -> None:
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2
    assert words[-1] in found.output


def prints_the_commands_of_both_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "KVM", Path("/dev/no-such-device"))
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    monkeypatch.setattr("dl3.cli.lab_steps.need_packages", lambda _: None)
    found = CliRunner().invoke(app, ["kvm-report", "--print-qemu"])
    assert found.exit_code == 0, found.output
    commands = [shlex.split(line) for line in found.output.splitlines() if line.startswith("qemu-system-x86_64 ")]
    assert [command[command.index("-name") + 1] for command in commands] == ["VM1", "VM2"]
    assert all("tcg,thread=multi" in command for command in commands)


def says_why_guests_are_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "KVM", Path("/dev/no-such-device"))
    found, why = accelerator.accelerator(is_emulated=False)
    assert found == "tcg"
    assert why == (
        "no KVM: /dev/no-such-device cannot be opened (No such file or directory); guests are emulated, so that rates say "
        "nothing about real ones"
    )
