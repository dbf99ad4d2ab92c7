"""Ports by vhost-user: either side may be killed and started again at any time, in either mode."""

import contextlib
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.vhost import NAMES, SLOTS, VhostBed
from harness.wire import wait_until
from harness.wired import DL3D, TOP

from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault

FRAMES = 500
# Messages of vhost-user: request, flags (version 1), bytes, payload.
SET_OWNER = struct.pack("=III", 3, 1, 0)
SET_FEATURES = struct.pack("=IIIQ", 2, 1, 8, 1 << 32)
MODES = pytest.mark.parametrize("mode", ["client", "server"])
LEFT = {"checksum", "tso4", "tso6", "ufo", "indirect", "packed"}
LOST_WITH_A_PEER = {"port_down", "tx_refused"}


@pytest.fixture(scope="module")
def bed() -> Iterator[VhostBed]:
    """One for all tests after which both guests are connected, and no other port is there."""
    with VhostBed() as made:
        made.wait_connected()
        yield made
        assert made.dl3d.stop() == 0, made.dl3d.stderr


@contextlib.contextmanager
def _added(bed: VhostBed, vhost: dict[str, object]) -> Iterator[None]:
    """A third port, which is removed."""
    bed.dl3d.call("ports.add", name="new", vhost=vhost)
    try:
        yield
    finally:
        bed.dl3d.call("ports.remove", name="new")


def _check_forwards(bed: VhostBed) -> None:
    bed.send(FRAMES)
    result = bed.finish(FRAMES)
    assert (result.sent, result.lost, result.corrupted, result.duplicated) == (FRAMES, 0, 0, 0), result


def _features(bed: VhostBed) -> tuple[str, ...]:
    vhost = bed.port("vm1").vhost
    assert vhost
    return vhost.features


@MODES
def guests_reach_each_other_and_send_finished_frames(mode: str) -> None:
    with VhostBed(mode) as bed:
        bed.wait_connected()
        _check_forwards(bed)
        account = bed.wait_balanced()
        assert (account.received, account.sent, account.drops) == (FRAMES, FRAMES, {})
        assert "virtio1" in _features(bed)
        assert not set(_features(bed)) & {"mergeable", *LEFT}
        vhost = bed.port("vm2").vhost
        assert vhost
        assert (vhost.mode, vhost.remark) == (mode, None)
        (queue,) = vhost.queues
        assert (queue.receives, queue.sends, queue.rx_slots, queue.tx_slots) == (True, True, SLOTS, SLOTS)
        shown = _shown(bed, "vm2")
        assert f"vm2   {bed.socket('vm2')}  {mode}  connected" in " ".join(shown.split(" ")), shown
        assert bed.dl3d.stop() == 0, bed.dl3d.stderr


def _shown(bed: VhostBed, name: str) -> str:
    command = [str(TOP / "bin" / "dl3"), "show", "ports", name, "--socket", str(bed.dl3d.socket)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env={"COLUMNS": "200"})
    return done.stdout


def _n_files(bed: VhostBed) -> int:
    return sum(1 for _ in Path(f"/proc/{bed.dl3d.call('status')['pid']}/fd").iterdir())


def _free_buffers(bed: VhostBed) -> int:
    return int(bed.dl3d.call("status")["memory"]["mbufs_free"])


def _lose_the_guests(bed: VhostBed) -> None:
    """Kill them while they send."""
    bed.send(10**6, "50 kpps")
    before = bed.account().sent
    wait_until(lambda: bed.account().sent > before, "frames were under way")
    bed.guests.kill()
    wait_until(lambda: not any(bed.port(name).link_up for name in NAMES), "dl3d had noticed")
    bed.guests.start_again()
    bed.guests.wait_ready()
    bed.wait_connected()


@MODES
def guests_that_are_killed_come_back(mode: str, is_long: bool) -> None:
    """Their frames in flight are counted, and neither descriptors nor buffers are lost."""
    with VhostBed(mode) as bed:
        bed.wait_connected()
        _check_forwards(bed)
        features, files = _features(bed), _n_files(bed)
        for _ in range(100 if is_long else 3):
            _lose_the_guests(bed)
            _check_forwards(bed)
            assert _features(bed) == features
        account = bed.wait_balanced()
        assert set(account.drops) <= LOST_WITH_A_PEER
        wait_until(lambda: _n_files(bed) <= files, "no descriptor was left behind")
        assert bed.dl3d.stop() == 0, bed.dl3d.stderr


def _lose_the_forwarder(bed: VhostBed) -> None:
    bed.send(10**6, "50 kpps")
    before = bed.account().sent
    wait_until(lambda: bed.account().sent > before, "frames were under way")
    bed.dl3d.kill()
    bed.dl3d.start_again()
    bed.dl3d.wait_ready()
    bed.wait_connected()
    bed.guests.call("halt")
    bed.guests.finish()


def guests_keep_running_while_the_forwarder_is_killed(bed: VhostBed, is_long: bool) -> None:
    features, buffers = _features(bed), _free_buffers(bed)
    for _ in range(100 if is_long else 3):
        _lose_the_forwarder(bed)
        _check_forwards(bed)
        assert _features(bed) == features
    bed.wait_balanced()
    wait_until(lambda: _free_buffers(bed) > buffers - 2 * SLOTS, "the buffers were back")


def a_socket_that_a_killed_forwarder_left_is_replaced() -> None:
    with VhostBed("server") as bed:
        bed.wait_connected()
        bed.guests.stop()
        bed.dl3d.kill()
        assert bed.socket("vm1").is_socket()
        bed.dl3d.start_again()
        bed.dl3d.wait_ready()
        bed.guests.start_again()
        bed.guests.wait_ready()
        bed.wait_connected()
        _check_forwards(bed)
        assert bed.dl3d.stop() == 0, bed.dl3d.stderr
        assert not bed.socket("vm1").exists()


def workers_send_on_queues_that_the_guest_has_enabled() -> None:
    """The second worker has everything that comes in, and would send it on the second queue."""
    workers = [[f"{name}/{queue}" for queue in range(2)] for name in reversed(NAMES)]
    with VhostBed(queues=2, workers=workers) as bed:
        bed.wait_connected()
        vhost = bed.port("vm2").vhost
        assert vhost
        assert [(queue.receives, queue.sends) for queue in vhost.queues] == [(True, True), (False, False)]
        _check_forwards(bed)
        account = bed.wait_balanced()
        assert (account.received, account.sent, account.drops) == (FRAMES, FRAMES, {})


def a_port_is_added_and_removed_while_the_other_runs(bed: VhostBed) -> None:
    files = _n_files(bed)
    for _ in range(3):
        assert bed.dl3d.call("ports.remove", name="vm2")["removed"] == "vm2"
        wait_until(lambda: not bed.guests.results().ports[1].link_up, "the guest had noticed")
        bed.dl3d.call("ports.add", **bed.row(1))
        bed.wait_connected()
        _check_forwards(bed)
    bed.wait_balanced()
    wait_until(lambda: _n_files(bed) <= files, "no descriptor was left behind")


def _refuse(bed: VhostBed, words: str, vhost: dict[str, object]) -> None:
    with pytest.raises(Fault) as fault:
        bed.dl3d.call("ports.add", name="new", vhost=vhost)
    assert words in str(fault.value)
    assert "\n" not in str(fault.value)


def a_socket_that_cannot_be_used_is_refused_in_one_sentence(bed: VhostBed) -> None:
    folder = bed.folder
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(folder / "taken"))
        other.listen()
        taken: dict[str, object] = {"socket": str(folder / "taken"), "mode": "server"}
        _refuse(bed, f"another program is listening on {folder}/taken; stop it or specify another path", taken)
        assert (folder / "taken").is_socket()
    _refuse(bed, f"already has the socket {bed.socket('vm1')}", {"socket": str(bed.socket("vm1"))})
    _refuse(bed, "expected text of 1 to 107 characters", {"socket": "/" + 107 * "x"})
    _refuse(bed, "/no/such, which is not a folder; create it", {"socket": "/no/such/socket"})
    _refuse(bed, "expected a number from 1 to 64", {"socket": str(folder / "many"), "queues": 65})
    (folder / "file").touch()
    _refuse(bed, "where a file or folder exists", {"socket": str(folder / "file")})
    _check_forwards(bed)


def a_peer_that_sets_up_no_queue_is_named(bed: VhostBed) -> None:
    path = bed.folder / "silent.sock"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as silent:
        silent.bind(str(path))
        silent.listen()
        with _added(bed, {"socket": str(path)}):
            peer, _ = silent.accept()
            with peer:
                words = "port new: its peer is connected, but has set up no queue"
                wait_until(lambda: words in bed.dl3d.stderr, "it was named")
                port = bed.port("new")
                assert not port.link_up
                assert port.vhost
                assert port.vhost.state == "starting"
                assert port.vhost.remark
                assert port.vhost.remark in _shown(bed, "new")
                _check_forwards(bed)


def a_peer_that_shares_no_memory_is_named(bed: VhostBed) -> None:
    """As QEMU without share=on does: it negotiates and then gives up."""
    path = bed.folder / "private.sock"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as private:
        private.bind(str(path))
        private.listen()
        with _added(bed, {"socket": str(path)}):
            peer, _ = private.accept()
            with peer:
                peer.sendall(SET_OWNER + SET_FEATURES)
                words = "port new: guest memory is not shared; give QEMU's memory backend share=on"
                wait_until(lambda: words in bed.dl3d.stderr, "it was named")
                vhost = bed.port("new").vhost
                assert vhost
                assert (vhost.state, vhost.features) == ("starting", ("virtio1",))
            _check_forwards(bed)


def a_file_with_a_socket_in_use_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    text = f"ports: [{{name: a, vhost: {{socket: {path}, mode: server}}}}]\nmemory: {{hugepages: never}}\n"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(path))
        other.listen()
        with (
            Forwarder(DL3D, text + "control: {socket: '@SOCKET@'}\n") as dl3d,
            pytest.raises(Fault, match="ports\\[0\\] \\(a\\): another program is listening on"),
        ):
            dl3d.wait_ready()
