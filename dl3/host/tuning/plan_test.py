"""Plans: laws over random machines, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from dl3.host.cpulist import cpus_of
from dl3.host.facts.read import read
from dl3.host.fixture import Machine, applied
from dl3.host.tuning.plan import Tuning, load, plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import FileStep, target
from dl3.host.tuning.strategies import machines, requests
from dl3.model.fault import UsageFault

BINDS = Request(binds=True)


def _planned(made: Machine, request: Request) -> Tuning | None:
    """The plan, or None where no core is left."""
    try:
        return plan(read(made.tree()), request)
    except UsageFault as fault:
        said = str(fault)
    assert "stay with Linux" in said
    return None


@given(machines(), requests)
@settings(max_examples=100)
def takes_whole_cores_and_never_those_of_linux(made: Machine, request: Request) -> None:
    tuning = _planned(made, request)
    if not tuning:
        return
    cpus, isolated = read(made.tree()).cpus, tuning.isolated
    assert isolated
    assert 0 not in isolated
    assert cpus.siblings_of(isolated) == isolated, "siblings are whole"
    for node in cpus.nodes:
        assert not set(cpus.cores_of(node)[0]) & isolated, "the first core of each node stays with Linux"
    for one in tuning.cores:
        assert all(cpu.node == one.node for cpu in cpus.online if cpu.number in one.isolated)
        assert one.workers <= one.isolated
    words = dict(word.split("=", 1) for word in tuning.parameters)
    sets = {cpus_of(words[key], cpus.last) for key in ("isolcpus", "nohz_full", "rcu_nocbs")}
    assert sets == {isolated}, "one consistent set"
    online = frozenset(cpu.number for cpu in cpus.online)
    assert cpus_of(words["irqaffinity"], cpus.last) == online - isolated


@given(machines(), requests)
@settings(max_examples=100)
def the_plan_of_a_machine_on_which_a_plan_was_applied_is_empty(made: Machine, request: Request) -> None:
    tuning = _planned(made, request)
    if not tuning:
        return
    after = applied(made.tree(), tuning)
    again = plan(read(after), request)
    assert [target(step) for step in again.steps] == []
    assert again.cores == tuning.cores
    assert again.parameters == tuning.parameters


@given(machines(), requests)
@settings(max_examples=30)
def a_plan_is_the_same_after_it_was_saved(made: Machine, request: Request) -> None:
    tuning = _planned(made, request)
    assert not tuning or Tuning.model_validate_json(tuning.model_dump_json()) == tuning


@given(machines())
@settings(max_examples=50)
def no_step_touches_the_management_card(made: Machine) -> None:
    if not made.routes[4] and not made.routes[6]:
        return
    tuning = _planned(made, BINDS)
    for step in tuning.steps if tuning else ():
        assert "0000:81:00.0" not in target(step)
        if isinstance(step, FileStep):
            assert "mgmt" not in step.after


def _refused(made: Machine, request: Request) -> str:
    with pytest.raises(UsageFault) as caught:
        plan(read(made.tree()), request)
    return str(caught.value)


def refuses_what_cannot_be_planned_with_a_sentence() -> None:
    made = Machine()
    assert "0000:09:00.0 is no network card" in _refused(made, Request(nics=("0000:09:00.0",)))
    assert "node 3 has no CPU" in _refused(made, Request(nodes=(3,)))
    assert "workers may have 3: 4 were requested" in _refused(made, Request(n_cores=4))
    assert "no huge pages of 1 GiB" in _refused(Machine(has_1g=False), Request(page="1G"))
    assert "has no network card on PCI" in _refused(Machine(nics=()), Request())
    made.default_route(6, "eth0")
    assert "managed through all its network cards" in _refused(made, Request())
    assert "is refused: this machine is managed through it" in _refused(made, Request(nics=("0000:03:00.0",)))
    assert "node 0 has 1 core, of which workers may have 0" in _refused(
        Machine(n_cores=1, n_threads=2), Request(nodes=(0,))
    )


def a_node_may_be_named_where_all_cards_are_for_management() -> None:
    made = Machine(n_nodes=2)
    made.default_route(4, "eth0")
    tuning = plan(read(made.tree()), Request(nodes=(1,), n_cores=2))
    assert [sorted(one.isolated) for one in tuning.cores] == [[5, 6]]
    assert set(tuning.memory_mib) == {1}


def leaves_out_parameters_that_others_set_and_says_where() -> None:
    made = Machine()
    made.texts["/etc/default/grub"] = 'GRUB_CMDLINE_LINUX="isolcpus=3"\n'
    tuning = plan(read(made.tree()), Request())
    assert not tuning.needs_reboot
    assert "isolcpus=3 in /etc/default/grub" in tuning.remarks[0]


def prints_the_words_where_no_bootloader_is_known() -> None:
    made = Machine()
    del made.texts["/boot/grub/grub.cfg"]
    tuning = plan(read(made.tree()), Request())
    assert tuning.remarks[0].startswith(
        "add these words to the kernel's command line by hand: isolcpus=managed_irq,domain,1 "
    )


def a_kernel_without_nohz_full_gets_no_such_parameter() -> None:
    made = Machine()
    made.texts["/boot/config-6.1.0-18-amd64"] = "CONFIG_CPU_ISOLATION=y\n"
    assert [word.partition("=")[0] for word in plan(read(made.tree()), Request()).parameters] == [
        "isolcpus",
        "irqaffinity",
    ]


def pages_that_somebody_reserved_are_left_as_they_are() -> None:
    made = Machine()
    made.texts["/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"] = "4096\n"
    assert not [step for step in plan(read(made.tree()), Request()).steps if "hugepages" in target(step)]


def _edited(path: Path, change: dict[str, Any], n: int) -> str:
    text = json.loads(plan(read(Machine(governor="powersave").tree()), BINDS).model_dump_json())
    text["steps"][n] |= change
    path.write_text(json.dumps(text))
    with pytest.raises(UsageFault) as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def refuses_a_plan_that_was_edited_into_a_step_that_is_not_of_the_set(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan(read(Machine(governor="powersave").tree()), BINDS).model_dump_json())
    kinds = [step.kind for step in load(path).steps]
    live, driver = kinds.index("live"), kinds.index("driver")
    assert "steps.0" in _edited(path, {"kind": "shell"}, 0)
    assert "/etc/shadow is no file of dl3" in _edited(path, {"path": "/etc/shadow"}, 0)
    assert "is no line that dl3 writes" in _edited(path, {"after": 'GRUB_CMDLINE_LINUX="init=/bin/sh"\n'}, 0)
    assert "nothing that dl3 writes" in _edited(path, {"path": "/proc/sysrq-trigger"}, live)
    assert "nothing that dl3 writes" in _edited(path, {"after": "1; reboot"}, live)
    assert "no PCI address" in _edited(path, {"address": "../../x"}, driver)
    assert "vfio-pci" in _edited(path, {"after": "evil"}, driver)
    assert "then" in _edited(path, {"then": "reboot"}, 0)
    assert "Extra inputs" in _edited(path, {"command": "x"}, 0)


def refuses_what_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for name, said in (("text", "is no plan"), ("none", "cannot read")):
        with pytest.raises(UsageFault, match=said):
            load(tmp_path / name)
