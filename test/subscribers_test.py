"""Subscribers in a running dl3d: from the file, by RPC and command, over reloads, with mistakes, and policed beside dl3gen."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.answers import CORES, DL3GEN
from harness.frames import Packet, ip4, ip6, on
from harness.subscribers import run_job
from harness.wire import wait_until
from harness.wired import DL3D, TOP, Account, Port, WiredForwarder, config_text

from dl3.control.generator import Results
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from dl3.model.fault import Fault

ADDRESSES = [["10.0.1.1/24", "2001:db8:a::1/64"], ["10.0.2.1/24", "2001:db8:b::1/64"]]
PORTS = [Port(name, keys={"addresses": ADDRESSES[i]}) for i, name in enumerate("ab")]
SETTINGS: dict[str, Any] = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b", "2001:db8:2::/48 via 2001:db8:b::2 dev b"],
    "neighbours": ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b", "2001:db8:b::2 lladdr 02:00:00:00:01:02 dev b"],
}
# Its burst is all that passes: 8 kbit/s are a packet of 1500 bytes in 1.5 s.
BURST = 4000
QOS: dict[str, Any] = {
    "profiles": [f"slow rate 8kbit/s burst {BURST}B counts ip", "fast rate 1Gbit/s burst 1MB"],
    "subscribers": ["alice down slow address 10.2.1.1 address 2001:db8:2:1::/64", "bob up fast interface a"],
}
DOUBLE = [ip4("10.2.1.1"), ip6("2001:db8:2:1::9")]
SENT, PATIENCE_S = 300, 120.0


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, qos=QOS, **SETTINGS) as made:
        yield made


def _counts(wired: WiredForwarder, name: str, way: str = "down") -> dict[str, tuple[int, int]]:
    found = wired.dl3d.call("subscribers.find", name=name)[way]["counts"]
    return {colour: (count["packets"], count["bytes"]) for colour, count in found.items()}


def _drops(wired: WiredForwarder, packets: list[Packet], n: int = 1) -> dict[str, int]:
    """What becomes of packets from a; the account closes."""
    before = wired.account()
    for _ in range(n):
        for packet in packets:
            wired.wires["a"].send(on(0, packet))
    return dict(wired.settle(before.received + n * len(packets)).since(before).drops)


def _write(wired: WiredForwarder, qos: dict[str, Any]) -> None:
    text = config_text(PORTS, qos=qos, **SETTINGS).replace("@SOCKET@", str(wired.dl3d.socket))
    wired.dl3d.file.write_text(text.replace("@FOLDER@", str(wired.dl3d.folder)))


def _dl3(wired: WiredForwarder, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(TOP / "bin" / "dl3"), *words, "--socket", str(wired.dl3d.socket)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def both_families_share_one_policer(wired: WiredForwarder) -> None:
    began_s = time.monotonic()
    drops = _drops(wired, DOUBLE, SENT)
    most = BURST + 1000 * (time.monotonic() - began_s) + 1500
    counts = _counts(wired, "alice")
    assert counts["green"][0] + counts["red"][0] == 2 * SENT
    assert counts["red"][0] == drops.get("police_red", 0) > 0
    assert set(drops) == {"police_red"}
    assert BURST - 100 <= counts["green"][1] <= most
    assert _counts(wired, "bob", "up")["green"][0] == 2 * SENT  # all came in by a


def a_change_is_in_force_at_once_and_adds_no_tokens(wired: WiredForwarder) -> None:
    _drops(wired, DOUBLE, SENT)
    wired.dl3d.call("subscribers.change", changes=["set alice down fast"])
    wired.dl3d.call("subscribers.change", changes=["set alice down slow"])
    before = _counts(wired, "alice")["red"][0]
    assert _drops(wired, [ip4("10.2.1.1", 1400)], 20).get("police_red", 0) >= 10
    assert _counts(wired, "alice")["red"][0] > before
    wired.dl3d.call("subscribers.change", changes=["set alice without 10.2.1.1 address 10.2.9.0/24"])
    green = _counts(wired, "alice")["green"][0]
    assert _drops(wired, [ip4("10.2.1.1")], 20) == {}
    assert _counts(wired, "alice")["green"][0] == green


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["remove bob", "add c address 10.2.1.1"], r"changes\[1\]: subscriber 'c': address 10.2.1.1/32 overlaps"),
        (["remove bob", "add c up gold"], r"changes\[1\]: subscriber 'c': up: there is no profile \"gold\""),
        (["remove bob", "remove slow"], r"changes\[1\]: there is no subscriber 'slow'"),
        (["remove bob", "no-profile slow"], r"changes\[1\]: profile 'slow': subscribers have it"),
        (["remove bob", "profile x rate 5Gbit/s peak_rate 4Gbit/s"], "rate is above peak_rate"),
        (["remove bob", 5], r"changes\[1\]: expected text"),
    ],
)
def a_mistake_in_a_batch_changes_nothing(wired: WiredForwarder, changes: list[Any], sentence: str) -> None:
    with pytest.raises(Fault, match=sentence) as caught:
        wired.dl3d.call("subscribers.change", changes=changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("nothing was changed")
    assert wired.dl3d.call("subscribers.find", name="bob")["number"] == 2
    assert wired.dl3d.call("subscribers")["subscribers"] == 2


def a_reload_replaces_those_of_the_file_or_nothing(wired: WiredForwarder) -> None:
    _drops(wired, DOUBLE, SENT)
    red = _counts(wired, "alice")["red"][0]
    wired.dl3d.call("subscribers.change", changes=["add carol address 10.2.7.0/24 down slow"])
    _write(wired, QOS | {"subscribers": ["dave address 10.2.7.5"]})
    with pytest.raises(
        Fault, match=r"qos: subscriber 'dave': address 10.2.7.5/32 overlaps with one of subscriber 'carol'"
    ):
        wired.dl3d.call("reload")
    assert _counts(wired, "alice")["red"][0] == red
    _write(wired, QOS | {"subscribers": [QOS["subscribers"][0], "dave address 10.2.6.5"]})
    wired.dl3d.call("reload")
    names = [one["name"] for one in wired.dl3d.call("subscribers.list")["subscribers"]]
    assert sorted(names) == ["alice", "carol", "dave"]
    assert _counts(wired, "alice")["red"][0] == red  # it goes on
    assert _drops(wired, [ip4("10.2.1.1", 1400)], 20).get("police_red", 0) >= 10


def a_file_is_loaded_whole_or_not_at_all(wired: WiredForwarder) -> None:
    file = wired.dl3d.folder / "customers"
    lines = [f"c{i} down slow address 100.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(20_000)]
    file.write_text("\n".join([*lines[:12_345], "c12345 down slov address 100.0.0.1", *lines[12_346:]]))
    with pytest.raises(
        Fault, match=r"customers:12346: subscriber 'c12345': down: there is no profile \"slov\"; add it"
    ):
        run_job(wired.dl3d, "subscribers.load", path=str(file))
    assert wired.dl3d.call("subscribers")["subscribers"] == 2
    file.write_text("\n".join(lines))
    assert _dl3(wired, "subscriber", "load", str(file)).stdout.endswith(": 20,002 subscribers\n")
    refused = _dl3(wired, "subscriber", "export", str(file))
    assert refused.returncode != 0
    assert "exists and is not an export of subscribers" in refused.stderr
    assert file.read_text() == "\n".join(lines)
    assert _dl3(wired, "subscriber", "export", "--overwrite", str(file)).stdout.endswith(": 20,002 subscribers\n")
    written = file.read_text()
    assert "c7 number 10 down slow address 100.0.0.7/32 # up 0/0 0/0 0/0 down 0/0 0/0 0/0\n" in written
    assert run_job(wired.dl3d, "subscribers.load", path=str(file))["subscribers"] == 20_002
    run_job(wired.dl3d, "subscribers.export", path=str(file))  # one export replaces another
    with pytest.raises(Fault, match="expected a regular file"):
        wired.dl3d.call("subscribers.load", path=str(wired.dl3d.folder))
    os.mkfifo(wired.dl3d.folder / "fifo")  # nobody writes
    with pytest.raises(Fault, match="expected a regular file"):
        wired.dl3d.call("subscribers.load", path=str(wired.dl3d.folder / "fifo"))


def an_export_replaces_nothing_but_a_file(wired: WiredForwarder) -> None:
    fifo, link, file = (wired.dl3d.folder / name for name in ("fifo", "link", "file"))
    os.mkfifo(fifo)
    file.write_text("kept")
    link.symlink_to(file)
    for path in (fifo, link):
        with pytest.raises(Fault, match="it exists and is not a regular file; name another one"):
            wired.dl3d.call("subscribers.export", path=str(path), overwrite=True)
    with pytest.raises(Fault, match='expected another "path", or "overwrite": true'):
        wired.dl3d.call("subscribers.export", path=str(file))
    with pytest.raises(Fault, match="expected an absolute path"):
        wired.dl3d.call("subscribers.export", path="file")
    assert fifo.is_fifo()
    assert link.is_symlink()
    assert file.read_text() == "kept"
    assert not list(wired.dl3d.folder.glob("*.new"))
    run_job(wired.dl3d, "subscribers.export", path=str(file), overwrite=True)
    assert file.read_text().startswith("# ")


def the_command_changes_and_shows(wired: WiredForwarder) -> None:
    assert _dl3(wired, "subscriber", "add", "eve", "up", "fast", "address", "10.2.3.0/24").returncode == 0
    shown = _dl3(wired, "show", "subscriber", "eve").stdout
    assert "10.2.3.0/24" in shown
    assert "fast" in shown
    refused = _dl3(wired, "subscriber", "add", "eve")
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "exists already" in refused.stderr
    assert _dl3(wired, "subscriber", "remove", "eve").returncode == 0
    assert "eve" not in _dl3(wired, "subscriber", "list").stdout
    assert "slow rate 8kbit/s burst 4000B" in _dl3(wired, "show", "subscribers").stdout


def without_the_key_there_are_none() -> None:
    with WiredForwarder(PORTS, **SETTINGS) as wired, pytest.raises(Fault, match='has no key "qos"'):
        wired.dl3d.call("subscribers")


def the_file_is_checked_with_lines(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("# more\n\nalice address 10.0.0.0/8\nbob address 10.1.0.0/16\n")
    file = tmp_path / "dl3.yaml"
    ports = [Port(name, device=f"net_ring{i}") for i, name in enumerate("ab")]
    file.write_text(config_text(ports, qos={"file": "more"}).replace("@SOCKET@", str(tmp_path / "socket")))
    done = subprocess.run([DL3D, "--check", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{tmp_path}/more:4: subscriber 'bob': address 10.1.0.0/16 overlaps with one of" in done.stderr
    assert len(done.stderr.splitlines()) == 1


RATE_BITS, SIZE, PPS = 20_000_000, 500, 5000  # each of three streams has this rate
MEMIF_PORTS = ("a", "b")


def _memif(folder: Path, role: str, core: int, **keys: Any) -> str:
    end = int(role == "client")
    ports = [
        {
            "name": port,
            "device": f"net_memif{i},role={role},id=0,rsize=12,socket={folder}/{port}.memif,socket-abstract=no",
            "mac": f"02:00:00:00:0{end}:0{i + 1}",
            **({} if end else {"addresses": ADDRESSES[i], "queues": 1}),
        }
        for i, port in enumerate(MEMIF_PORTS)
    ]
    whole = {"ports": ports, "workers": [{"core": core}], "memory": {"hugepages": "never"}, **keys}
    text: str = yaml.safe_dump({**whole, "control": {"socket": "@SOCKET@"}}, sort_keys=False)
    return text


def _stream(name: str, dst: str) -> dict[str, Any]:
    src = "2001:db8:a::7" if ":" in dst else "10.0.1.7"
    ends = {"name": name, "from": "a", "to": "b", "dst_mac": "02:00:00:00:00:01"}
    return {**ends, "src_ip": src, "dst_ip": dst, "size": SIZE, "rate": f"{PPS} pps"}


def _all_arrived(dl3gen: Generator, dl3d: Forwarder) -> bool:
    lost = sum(each.lost - each.refused for each in dl3gen.results().streams)
    return lost == Account.of(dl3d.call("drops")).dropped


def three_prefixes_at_three_times_the_rate_get_the_rate(tmp_path: Path) -> None:
    """dl3gen offers IPv4, a /64 and a /56 of one subscriber; what it receives is the rate, and the counters say so."""
    qos = {
        "profiles": [f"p rate {RATE_BITS}bit/s burst 20ms"],
        "subscribers": ["a down p address 10.2.1.1 address 2001:db8:2:1::/64 address 2001:db8:2:200::/56"],
    }
    neighbours = [f"{hop} lladdr 02:00:00:00:01:02 dev b" for hop in ("10.0.2.2", "2001:db8:b::2")]
    text = _memif(tmp_path, "server", CORES[0], qos=qos, routes=SETTINGS["routes"], neighbours=neighbours)
    with ExitStack() as stack:
        dl3d = stack.enter_context(Forwarder(DL3D, text))
        dl3d.wait_ready(PATIENCE_S)  # before the other end looks for its sockets
        dl3gen = stack.enter_context(Generator(DL3GEN, _memif(tmp_path, "client", CORES[-1])))
        dl3gen.wait_ready()
        wait_until(lambda: all(port.link_up for port in dl3gen.ports().ports), "the links were up")
        began_s = time.monotonic()
        streams = [_stream("four", "10.2.1.1"), _stream("wan", "2001:db8:2:1::5"), _stream("lan", "2001:db8:2:2ff::5")]
        dl3gen.send(streams=streams, seconds=2)
        dl3gen.finish(0.0, PATIENCE_S)
        took_s = time.monotonic() - began_s
        wait_until(lambda: _all_arrived(dl3gen, dl3d), "all frames had arrived", PATIENCE_S)
        results: Results = dl3gen.results()
        counts = dl3d.call("subscribers.find", name="a")["down"]["counts"]
        drops = Account.of(dl3d.call("drops")).drops
        assert drops["police_red"] == counts["red"]["packets"] > 0
        beyond = sum(drops.values()) - drops["police_red"]  # of a busy machine: full rings
        assert sum(each.received for each in results.streams) + beyond == counts["green"]["packets"]
        assert counts["green"]["bytes"] == SIZE * counts["green"]["packets"]
        assert counts["green"]["bytes"] <= RATE_BITS / 8 * (took_s + 0.02) + SIZE
        assert counts["green"]["bytes"] >= RATE_BITS / 8 * 0.02 - SIZE
        assert all(each.received for each in results.streams)
        dl3gen.stop()  # before the other end: memif may crash if its peer goes away
