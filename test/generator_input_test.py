"""Invalid input in dl3gen's file and over its socket: one-sentence errors, a status, and no change of state."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.answers import DL3GEN, PORTS, Bench, flood, generator_text, port, stream

from dl3.lab.generator import Generator
from dl3.model.fault import Fault, UsageFault

TEN = {"first": 1024, "count": 10}
LINE = "1 Gbit/s"  # of port left
# A faulty stream, and words that the error must contain.
STREAMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a size below 64": ({"size": 63}, ("size", "63", "64")),
    "a size that no frame has": ({"size": 9623}, ("size", "9623")),
    "a size above the mtu": ({"size": 1519}, ("size", "1519", "mtu")),
    "no room for the stamp": ({"dst_ip": "2001:db8::1", "size": 83}, ("size", "83", "84", "stamp")),
    "no room beside a tag": ({"vlan": 5, "size": 65}, ("size", "VLAN")),
    "a size that is a word": ({"size": "big"}, ("size", "big", "imix", "classic")),
    "an empty mix": ({"size": []}, ("size",)),
    "a rate above the line": ({"rate": "1.6 Mpps"}, ("rate", "1.6 Mpps", "left", "1 Gbit/s")),
    "more than all of the line": ({"rate": "101 %"}, ("rate", "101 %", "100")),
    "a share of an unknown line": (
        {"from_": "right", "to": "left", "rate": "10 %"},
        ("rate", "right", "line_rate"),
    ),
    "a rate below nothing": ({"rate": -1}, ("rate", "-1")),
    "a rate of words": ({"rate": "fast"}, ("rate", "fast", "Mpps")),
    "an unknown field": ({"colour": "red"}, ("colour", "unknown")),
    "a field that is misspelt": ({"sorce_ip": "198.18.0.1"}, ("sorce_ip", "src_ip")),
    "more flows than the fields make": ({"src_port": TEN, "flows": 11}, ("flows", "11", "10")),
    "counting past the last port": ({"src_port": {"first": 65_530, "count": 7}}, ("src_port", "7", "6")),
    "counting past the last address": ({"src_ip": {"first": "255.255.255.0", "count": 300}}, ("src_ip", "300")),
    "two families": ({"src_ip": "198.18.0.1", "dst_ip": "2001:db8::1"}, ("dst_ip", "IPv6", "IPv4")),
    "a port that is not there": ({"from_": "lefd"}, ("lefd", "left")),
    "no port to go to": ({"to": None}, ("to",)),
    "no address": ({"dst_mac": "x"}, ("dst_mac", "x")),
    "a tag that no frame has": ({"vlan": 4096}, ("vlan", "4096", "4095")),
    "a burst above 64": ({"burst": 65}, ("burst", "65", "64")),
    "an id above 255": ({"id": 256}, ("id", "256", "255")),
    "an unknown protocol": ({"protocol": "sctp"}, ("protocol", "sctp", "udp", "tcp")),
    "no link": ({"from_": "loose"}, ("loose", "link")),
}
PARAMETERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no end": ({"streams": [stream()]}, ("seconds", "frames")),
    "an end before the beginning": ({"seconds": -1}, ("seconds", "86400")),
    "too short": ({"seconds": 0.0001}, ("seconds",)),
    "longer than a day": ({"seconds": 86_401}, ("seconds", "86400")),
    "no streams": ({"streams": [], "seconds": 1}, ("streams",)),
    "too many streams": ({"streams": [stream() for _ in range(65)], "seconds": 1}, ("streams", "64")),
    "no list": ({"streams": "all", "seconds": 1}, ("streams",)),
    "no map": ({"streams": ["all"], "seconds": 1}, ("streams[0]",)),
    "an unknown parameter": ({"secs": 1}, ("secs",)),
    "overlapping stamps": ({"streams": [stream(id=1), stream()], "seconds": 1}, ("streams[1]", "id", "ambiguous")),
    "one name twice": ({"streams": [stream(name="a"), stream(name="a")], "seconds": 1}, ("streams[1]", "name", "a")),
    "a line that is shared": (
        {"streams": [stream(rate="60 %"), stream(rate="60 %")], "seconds": 1},
        ("streams[1]", "rate", "left"),
    ),
}
GARBAGE = [
    b"garbage\n",
    b"{}\n",
    b"[]\n",
    b'{"jsonrpc": "2.0", "id": 1, "method": "no.such.method"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "send", "params": []}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "results", "params": {"histograms": 7}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "halt", "params": {"now": true}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "send", "params": {"streams": [[[[]]]], "seconds": 1e999}}\n',
    b"\x00\xff\xfe\n",
    b"[" * 100_000 + b"\n",
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    loose = {"name": "loose", "device": "net_memif2,role=server,socket=@FOLDER@/loose,socket-abstract=no"}
    ports = [port(0, line_rate=LINE), port(1), loose]
    with Bench(tmp_path_factory.mktemp("bench"), ports=ports) as made:
        assert made.run_one(flood(frames=100))[0].received == 100
        yield made
        assert made.run_one(flood(frames=100))[0].received == 100
        assert made.dl3gen.stop() == 0, made.dl3gen.stderr


def _refusal(bench: Bench, **params: Any) -> str:
    """The error with which `send` is refused; the previous run is unchanged."""
    before = bench.dl3gen.results()
    with pytest.raises(Fault) as caught:
        bench.dl3gen.call("send", **params)
    after = bench.dl3gen.results()
    assert isinstance(caught.value, UsageFault) or "parameter" in str(caught.value)
    assert (after.run, after.state, after.streams) == (before.run, before.state, before.streams)
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1
    assert 20 < len(sentence) < 300
    return sentence


@pytest.mark.parametrize("what", STREAMS)
def a_mistake_in_a_stream_gets_one_sentence(bench: Bench, what: str) -> None:
    keys, words = STREAMS[what]
    given = {key: value for key, value in stream(**keys).items() if value is not None}
    sentence = _refusal(bench, streams=[given], seconds=1)
    for word in ("stream", *words):
        assert word in sentence


@pytest.mark.parametrize("what", PARAMETERS)
def a_mistake_in_the_parameters_gets_one_sentence(bench: Bench, what: str) -> None:
    params, words = PARAMETERS[what]
    sentence = _refusal(bench, **params)
    for word in words:
        assert word in sentence


@pytest.mark.parametrize("line", GARBAGE, ids=range(len(GARBAGE)))
def garbage_is_answered_with_an_error(bench: Bench, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60.0)
        client.connect(str(bench.dl3gen.socket))
        client.sendall(line)
        with client.makefile("rb") as replies:
            assert "error" in json.loads(replies.readline())
    assert bench.dl3gen.call("status")


FILES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "an impossible size": ({"streams": [stream(size=63)]}, ("streams[0]", "size", "63")),
    "an unknown field": ({"streams": [stream(colour="red")]}, ("streams[0]", "colour")),
    "overlapping stamps": ({"streams": [stream(id=1), stream()]}, ("streams[1]", "id")),
    "more flows than can be": ({"streams": [stream(flows=2)]}, ("streams[0]", "flows", "2", "1")),
    "a port that is not there": ({"streams": [stream(to="up")]}, ("streams[0]", "up")),
    "a rate above the line": (
        {"streams": [stream(rate="2 Mpps")], "ports": [port(0, line_rate="1 Gbit/s"), port(1)]},
        ("streams[0]", "rate", "left"),
    ),
    "a line rate of nothing": ({"ports": [port(0, line_rate="0 Gbit/s"), port(1)]}, ("line_rate", "ports[0]")),
    "a line rate of words": ({"ports": [port(0, line_rate="fast"), port(1)]}, ("line_rate", "fast")),
    "an unknown key": ({"stream": []}, ("stream", "streams")),
    "a key of the forwarder": ({"routes": ["10.2.0.0/16 dev right"]}, ("routes",)),
    "a forwarding port": ({"ports": [port(0, mode="xconnect", to="right"), port(1)]}, ("ports[0]",)),
    "no ports": ({"ports": []}, ("ports",)),
    "a core twice": ({"workers": [{"core": 0}, {"core": 0}]}, ("workers[1]", "core 0")),
}


def _error(folder: Path, text: str | None, *options: str) -> str:
    """dl3gen's error for a rejected file; the exit status is the one for invalid configurations."""
    file = folder / "dl3gen.yaml"
    if text is not None:
        file.write_text(text.replace("@SOCKET@", str(folder / "dl3gen.sock")))
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ANSWERS")}
    done = subprocess.run([DL3GEN, *options, file], capture_output=True, text=True, timeout=120, env=clean)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("dl3gen: ")
    assert not (folder / "dl3gen.sock").exists()
    return sentence


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["started", "checked"])
@pytest.mark.parametrize("what", FILES)
def a_mistake_in_the_file_gets_one_sentence(tmp_path: Path, what: str, options: tuple[str, ...]) -> None:
    keys, words = FILES[what]
    sentence = _error(tmp_path, generator_text(**({"streams": [stream()], "eal": {}} | keys)), *options)
    for word in words:
        assert word in sentence


def a_missing_file_gets_one_sentence(tmp_path: Path) -> None:
    assert "dl3gen.yaml" in _error(tmp_path, None)


def check_finds_no_mistake_in_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "dl3gen.yaml"
    file.write_text(generator_text([stream()], eal={}))
    done = subprocess.run([DL3GEN, "--check", file], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "configuration OK" in done.stdout


def a_second_one_on_the_same_socket_is_refused(bench: Bench) -> None:
    text = generator_text([stream()], eal={}).replace("@SOCKET@", str(bench.dl3gen.socket))
    with Generator(DL3GEN, text) as second:
        assert second.process.wait(60) == 1
        assert len(second.stderr.splitlines()) == 1
        assert str(bench.dl3gen.socket) in second.stderr
    assert len(bench.dl3gen.ports().ports) == len(PORTS) + 1


def a_socket_left_behind_by_a_program_that_died_is_named(tmp_path: Path) -> None:
    left = tmp_path / "left"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    device = f"net_memif0,role=server,socket={left},socket-abstract=no"
    with Generator(DL3GEN, generator_text([stream()], ports=[port(0, device=device), port(1)], eal={})) as second:
        assert second.process.wait(60) == 1
        (sentence,) = second.stderr.splitlines()
        assert f"if no other program uses {left}, remove that file" in sentence


def streams_of_the_file_are_sent_when_none_are_given(bench: Bench) -> None:
    assert [each["to"] for each in bench.dl3gen.call("streams")["streams"]] == ["right"]
    results = bench.run(seconds=0.05)
    assert results.streams[0].sent + results.streams[0].late == 5_000
    assert results.streams[0].lost == 0
