"""dl3 host plan, apply, verify and undo, on a machine below a folder."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.host.change.fixture import boot
from dl3.host.fixture import Machine
from dl3.model.fault import UsageFault


def _dl3(*words: str) -> Result:
    return CliRunner().invoke(app, ["host", *words], prog_name="dl3")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine."""
    Machine(n_nodes=2, n_cores=2, n_threads=2, governor="powersave").write(tmp_path / "root")
    return tmp_path / "root"


def _planned(root: Path) -> str:
    file = str(root.parent / "plan.json")
    done = _dl3("plan", "--for", str(root), "--output", file)
    assert done.exit_code == 0, done.exception
    assert "nothing is changed yet" in done.stdout
    return file


def plans_applies_verifies_and_undoes(root: Path) -> None:
    file = _planned(root)
    at = ("--root", str(root))
    done = _dl3("apply", file, *at)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (
        0,
        "reboot: the next boot tries the kernel parameters, and keeps them if they have the wanted effect",
    )
    assert "1 step, nothing is changed yet" in _dl3("plan", "--for", str(root)).stdout, "the parameters do not stay yet"
    verified = _dl3("verify", *at, "--json")
    rows = json.loads(verified.stdout)
    assert verified.exit_code == 1
    assert {row["waits"] for row in rows if not row["is_met"]} == {True}, "only the kernel parameters wait for a boot"
    assert "nothing waits to be confirmed" in _dl3("confirm", *at).stdout
    boot(root)
    kept = _dl3("confirm", "--booted", *at)
    assert kept.stdout == "the kernel parameters have the wanted effect and stay\n"
    assert _dl3("verify", *at).exit_code == 0
    assert "nothing to change" in _dl3("plan", "--for", str(root)).stdout
    assert "everything is as before" in _dl3("undo", *at).stdout
    assert "nothing to undo" in _dl3("undo", *at).stdout
    assert not (root / "etc/default/grub.d").exists()


def says_why_a_trial_boot_failed(root: Path) -> None:
    at = ("--root", str(root))
    assert _dl3("apply", _planned(root), *at).exit_code == 0
    boot(root)
    boot(root)
    said = "the boot with the new kernel parameters did not come up"
    assert _dl3("confirm", "--booted", *at).stdout == f"{said}: the kernel parameters are those before\n"
    rows = json.loads(_dl3("verify", *at, "--json").stdout)
    assert [row["found"] for row in rows if row["what"] == "trial boot"] == [said]
    assert json.loads(_dl3("confirm", "--booted", "--json", *at).stdout) == {"trial": "nothing"}


def a_row_stands_for_the_same_step_of_several_cpus(root: Path) -> None:
    text = "".join(_dl3("plan", "--for", str(root)).stdout.split())
    assert "(8files)" in text


def the_plan_as_json_is_the_plan_that_is_saved(root: Path) -> None:
    file = _planned(root)
    done = _dl3("plan", "--for", str(root), "--json")
    assert json.loads(done.stdout) == json.loads(Path(file).read_text())


def says_what_undo_could_not_put_back_and_exits_with_1(root: Path) -> None:
    file = _planned(root)
    at = ("--root", str(root))
    assert _dl3("apply", file, *at).exit_code == 0
    sysctl = root / "etc/sysctl.d/90-dl3.conf"
    sysctl.write_text("mine\n")
    watchdog = root / "proc/sys/kernel/watchdog"
    watchdog.unlink()
    watchdog.mkdir()  # cannot be read or written, even by root
    done = _dl3("undo", *at)
    assert done.exit_code == 1
    assert "/etc/sysctl.d/90-dl3.conf was changed since and is left as it is" in done.stdout
    assert "/proc/sys/kernel/watchdog could not be put back: " in done.stdout
    assert done.stdout.endswith("1 step is still in place: remove the cause, then run 'dl3 host undo' again\n")
    assert not (root / "etc/default/grub.d").exists()
    watchdog.rmdir()
    watchdog.write_text("0\n")
    done = _dl3("undo", *at, "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"undone": True, "left": []})
    assert watchdog.read_text() == "1\n"


def refuses_with_a_sentence_and_changes_nothing(root: Path) -> None:
    file = _planned(root)
    other = Path(file).with_name("other.json")
    other.write_text(Path(file).read_text().replace('"facts_digest": "', '"facts_digest": "0'))
    edited = Path(file).with_name("edited.json")
    edited.write_text(Path(file).read_text().replace('"kind": "live"', '"kind": "shell"'))
    at = ("--root", str(root))
    for words, said in (
        (("apply", str(other), *at), "for another machine"),
        (("apply", str(edited), *at), "is no plan of 'dl3 host plan'"),
        (("verify", *at), "no plan is applied"),
        (("plan", "--for", str(root), "--nic", "0000:99:00.0"), "is no network card of this machine"),
        (("plan", "--for", str(root), "--cores", "5"), "5 were requested"),
    ):
        fault = _dl3(*words).exception
        assert isinstance(fault, UsageFault), words
        assert said in str(fault)
        assert len(str(fault).splitlines()) == 1
    assert not (root / "var/lib/dl3-host").exists()
    assert not (root / "etc/default/grub.d").exists()


def names_a_folder_that_is_not_there(root: Path) -> None:
    file, missing = _planned(root), str(root.parent / "missing")
    for words in (("apply", file), ("confirm",), ("verify",), ("undo",)):
        done = _dl3(*words, "--root", missing)
        assert done.exit_code != 0
        assert str(done.exception).startswith(f"there is no folder {missing}: "), done.exception
