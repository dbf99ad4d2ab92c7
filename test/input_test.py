"""Invalid input: an exit status, one clear sentence, and no change of state."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.plugins import plugin
from harness.wired import DL3D

GOOD = """\
ports:
  - {name: a, device: net_null0}
  - {name: b, device: net_null1}
routes:
  - 10.2.0.0/16 via 10.0.2.2 dev b
neighbours:
  - 10.0.2.2 lladdr 02:00:00:00:01:02 dev b
control: {socket: SOCKET}
memory: {hugepages: never}
"""
MEMORY_MIB = int(Path("/proc/meminfo").read_text().split(maxsplit=2)[1]) // 1024  # never all in huge pages


@dataclass(frozen=True)
class Row:
    """The change to the valid file, and words that the error must contain."""

    name: str
    old: str
    new: str
    words: tuple[str, ...]


ROWS = [
    Row("unknown_key", "routes:", "rutes:", ("dl3d.yaml:4", "unknown key", '"rutes"', '"routes"')),
    Row("wrong_type", "ports:\n", "burst: many\nports:\n", ("dl3d.yaml:1", "burst", "many", "number")),
    Row("port_twice", "name: b", "name: a", ("dl3d.yaml:3", '"a"', "line 2")),
    Row("device_twice", "net_null1", "net_null0", ("dl3d.yaml:3", "net_null0", "line 2")),
    Row("missing_device", "net_null1", "'net_af_packet1,iface=nowhere'", ("ports[1] (b)", "nowhere")),
    Row("small_slots", "net_null1", "'net_af_packet1,iface=lo', mtu: 9000", ("ports[1] (b)", "framesz=12288")),
    Row("unknown_driver", "net_null1", "'net_foo1,size=64'", ("ports[1] (b)", 'no driver for device "net_foo1"')),
    Row(
        "device_argument",
        "net_null1",
        "'net_null1,siez=9'",
        ("ports[1] (b)", "net_null1", "the arguments of the device"),
    ),
    Row("bridge_of_an_unknown_port", "routes:", "bridges: [{name: x, ports: [q]}]\nroutes:", ("dl3d.yaml:4", '"q"')),
    Row(
        "port_in_two_bridges",
        "routes:",
        "bridges: [{name: x, ports: [a]}, {name: y, ports: [a]}]\nroutes:",
        ("dl3d.yaml:4", '"a"', 'bridge "x"'),
    ),
    Row(
        "port_cross_connected_and_in_a_bridge",
        "net_null1}\nroutes:",
        "net_null1, mode: xconnect, to: a}\nbridges: [{name: x, ports: [b]}]\nroutes:",
        ("dl3d.yaml:4", '"b"', "xconnect"),
    ),
    Row(
        "group_mac_in_a_bridge",
        "routes:",
        "bridges: [{name: x, ports: [a], macs: [{mac: 01:00:5e:00:00:01, port: a}]}]\nroutes:",
        ("dl3d.yaml:4", "multicast address 01:00:5e:00:00:01"),
    ),
    Row("missing_pci_device", "net_null1", "'0000:ff:1f.7'", ("0000:ff:1f.7",)),
    Row("unknown_port", "10.0.2.2 dev b\nn", "10.0.2.2 dev x\nn", ("dl3d.yaml:5", '"x"', "a, b")),
    Row("host_bits", "10.2.0.0/16", "10.2.0.1/16", ("dl3d.yaml:5", "10.2.0.1/16", "host bits", "10.2.0.0/16")),
    Row("route_twice", "routes:\n", "routes:\n  - 10.2.0.0/16 dev a\n", ("dl3d.yaml:6", "10.2.0.0/16")),
    Row("core_not_there", "ports:\n", "workers: [{core: 4000}]\nports:\n", ("core 4000",)),
    Row(
        "no_hugepages",
        "hugepages: never",
        f"hugepages: require, mib: {MEMORY_MIB}",
        ("huge pages", "free"),
    ),
    Row("no_such_memory", "never}", "never, mib: 1000000}", ("memory: mib", "1000000 MiB", "machine has", "less")),
    Row(
        "no_such_huge_memory", "hugepages: never", "mib: 1000000", ("memory: mib", "1000000 MiB", "machine has", "less")
    ),
    Row("missing_plugin", "memory:", "eal: {plugins: [/nowhere/plugin.so]}\nmemory:", ("/nowhere/plugin.so",)),
    Row("no_plugin", "memory:", "eal: {plugins: [/etc/passwd]}\nmemory:", ("/etc/passwd", "not a shared library")),
    Row(
        "unknown_eal_argument",
        "memory:",
        "eal: {args: [--foo]}\nmemory:",
        ("eal: args", '"--foo"', "correct or remove it"),
    ),
    Row("unknown_eal_letter", "memory:", "eal: {args: [-n4, -Zq]}\nmemory:", ("eal: args", '"-Zq"')),
    Row("eal_main_lcore", "memory:", "eal: {args: [--main-lcore=1]}\nmemory:", ("eal: args", "remove --main-lcore")),
    Row("eal_value", "memory:", "eal: {args: [--socket-mem=x, -n4]}\nmemory:", ('"--socket-mem=x": ', "invalid")),
    Row("eal_value_apart", "memory:", "eal: {args: [-n4, --socket-mem, x]}\nmemory:", ('"--socket-mem x"', "invalid")),
    Row("eal_value_missing", "memory:", "eal: {args: [-n]}\nmemory:", ("eal: args", '"-n"')),
    Row("eal_word", "memory:", "eal: {args: [-n4, four]}\nmemory:", ("eal: args", '"four"')),
    Row("eal_arguments_at_odds", "memory:", "eal: {args: [--huge-unlink]}\nmemory:", ("eal: args", "huge-unlink")),
    Row("eal_help", "memory:", "eal: {args: [--help]}\nmemory:", ("eal: args", '"--help"')),
    Row("missing_route_file", "routes:", "route_files: [/nowhere/routes]\nroutes:", ("/nowhere/routes",)),
    Row("not_yaml", "ports:", "ports: [", ("dl3d.yaml:",)),
    Row("socket_in_no_folder", "SOCKET}", "/proc/nowhere/dl3d.sock}", ("/proc/nowhere",)),
]


@dataclass(frozen=True)
class Ended:
    """The output of a dl3d that exited by itself."""

    pid: int
    status: int
    stdout: str
    stderr: str


def _run(*arguments: str | Path) -> Ended:
    with subprocess.Popen([DL3D, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()
    return Ended(process.pid, process.returncode, stdout, stderr)


def _run_on(tmp_path: Path, text: str, *options: str) -> Ended:
    file = tmp_path / "dl3d.yaml"
    file.write_text(text.replace("SOCKET", str(tmp_path / "dl3d.sock")))
    return _run(*options, file)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def a_mistake_gets_one_sentence(tmp_path: Path, row: Row) -> None:
    assert row.old in GOOD
    run = _run_on(tmp_path, GOOD.replace(row.old, row.new))
    _is_one_sentence(run)
    for word in row.words:
        assert word in run.stderr
    assert not (tmp_path / "dl3d.sock").exists()
    assert not Path(f"/run/dpdk/dl3d-{run.pid}").exists()


def _is_one_sentence(run: Ended) -> None:
    assert run.status in (1, 2), run.stderr
    assert run.stdout == ""
    assert len(run.stderr.splitlines()) == 1, run.stderr
    assert run.stderr.startswith("dl3d: ")


def a_missing_file_gets_one_sentence(tmp_path: Path) -> None:
    run = _run(tmp_path / "none.yaml")
    _is_one_sentence(run)
    assert "none.yaml" in run.stderr


def a_folder_instead_of_a_file_gets_one_sentence(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _is_one_sentence(run)
    assert str(tmp_path) in run.stderr
    _is_one_sentence(_run_on(tmp_path, f"route_files: [{tmp_path}]\n{GOOD}"))


def a_core_that_is_not_allowed_gets_one_sentence(tmp_path: Path) -> None:
    cores = os.sched_getaffinity(0)
    first, *others = sorted(cores)
    if not others:
        return
    os.sched_setaffinity(0, {first})
    try:
        run = _run_on(tmp_path, f"workers: [{{core: {others[0]}}}]\n{GOOD}")
    finally:
        os.sched_setaffinity(0, cores)
    _is_one_sentence(run)
    assert f"core {others[0]}" in run.stderr


def check_accepts_the_example(tmp_path: Path) -> None:
    example = _run("--example")
    assert example.status == 0
    text = example.stdout.replace("0000:01:00.0", "net_null0").replace("0000:01:00.1", "net_null1")
    check = _run_on(tmp_path, text, "--check")
    assert (check.status, check.stderr) == (0, "")
    assert "configuration OK" in check.stdout


def check_warns_of_what_will_not_work(tmp_path: Path) -> None:
    text = GOOD.replace("device: net_null1", "device: net_nul1, addresses: [10.0.3.1/24]")
    text = text.replace("routes:\n", "routes:\n  - 10.3.0.0/16 via 10.0.3.9 dev b\n")
    check = _run_on(tmp_path, text, "--check")
    assert check.status == 0
    assert "warning: ports[1] (b): DPDK has no driver (PMD) for net_nul1" in check.stderr
    assert "warning: next hop 10.0.2.2 dev b is not in a connected network of that port" in check.stderr
    assert "warning: next hop 10.0.3.9 dev b has no MAC address" in check.stderr
    assert len(check.stderr.splitlines()) == 3


def check_warns_of_lists_that_do_not_do_what_was_meant(tmp_path: Path) -> None:
    rules = "[{do: deny, to: 10.0.0.0/8}, deny local, permit, permit icmp local, {do: deny, to: 10.0.0.0/9}]"
    uses = "[{interface: a, direction: in, list: edge}, {interface: eest, direction: out, list: edge}]"
    check = _run_on(tmp_path, f"acl: {{lists: {{edge: {rules}}}, use: {uses}}}\n{GOOD}", "--check")
    assert check.status == 0
    assert check.stderr.splitlines() == [
        "dl3d: warning: acl.lists.edge: rule 4 never matches, since rule 2 matches all of its packets; change their order",
        "dl3d: warning: acl.use[1]: there is no port eest; list edge has no effect there",
    ]


def check_finds_a_mistake_without_touching_a_device(tmp_path: Path) -> None:
    _is_one_sentence(_run_on(tmp_path, GOOD.replace("10.2.0.0/16", "10.2.0.1/16"), "--check"))


def an_end_inside_dpdk_is_reported(tmp_path: Path) -> None:
    run = _run_on(tmp_path, GOOD.replace("memory:", f"eal: {{plugins: [{plugin('leave')}]}}\nmemory:"))
    _is_one_sentence(run)
    assert "DPDK terminated the process during its start" in run.stderr
    assert not Path(f"/run/dpdk/dl3d-{run.pid}").exists()


def another_release_of_dpdk_than_the_one_it_was_built_with_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, library = tmp_path / "next.c", tmp_path / "next.so"
    source.write_text('const char *rte_version(void) { return "DPDK 99.11.2"; }')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")
    run = _run_on(tmp_path, GOOD)
    _is_one_sentence(run)
    assert "found DPDK 99.11.2: rebuild it" in run.stderr


def check_detects_how_much_memory_the_machine_has(tmp_path: Path) -> None:
    run = _run_on(tmp_path, GOOD.replace("never}", "never, mib: 1000000}"), "--check")
    _is_one_sentence(run)
    assert "memory: mib requests 1000000 MiB" in run.stderr


@pytest.mark.parametrize("limit", [8, 14, 20, 26, 127])
def too_few_open_files_are_refused_in_one_sentence(limit: int, tmp_path: Path) -> None:
    config = tmp_path / "dl3d.yaml"
    config.write_text(GOOD.replace("SOCKET", str(tmp_path / "s")))
    words = ("prlimit", f"--nofile={limit}:{limit}", str(DL3D), str(config))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"error: this process may open {limit} files but needs 128: raise the limit" in done.stderr
    assert len(done.stderr.splitlines()) == 1
