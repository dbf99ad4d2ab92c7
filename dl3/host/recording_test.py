"""Records: exactly what was read, and nothing that identifies the machine."""

import io
import tarfile
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.recording import open_record, record, write
from dl3.host.scrub import Scrubber
from dl3.host.tree import FolderTree, StoredTree
from dl3.model.fault import UsageFault

KEY = b"k" * 32
PRIVATE = ("router7", "aa:bb:cc:dd:ee:ff", "aa-bb-cc-dd-ee-ff", "198.51.100.77", "2001:db8:7::9", "4D6433C6", "hunter2")


def _private_machine() -> StoredTree:
    made = Machine(n_nodes=2, nics=("0000:03:00.0",))
    made.texts["/proc/sys/kernel/hostname"] = "router7.example.net\n"
    made.texts["/proc/cmdline"] = (
        "root=UUID=0a1b2c3d-0000-1111-2222-333344445555 BOOTIF=01-aa-bb-cc-dd-ee-ff ip=198.51.100.77::x:router7 "
        "isolcpus=2-3 rd.password=hunter2 nfsroot=198.51.100.77:/srv -- --token hunter2\n"
    )
    made.texts["/etc/default/grub"] = (
        'GRUB_CMDLINE_LINUX="root=/dev/mapper/router7--vg-root hugepages=8 mac=aa:bb:cc:dd:ee:ff"\n'
    )
    made.interface("enxaabbccddeeff")
    made.session("198.51.100.77", "198.51.100.1")
    made.session("2001:db8:7::9", "2001:db8:7::1")
    made.default_route(4, "enxaabbccddeeff")
    made.route(4, "198.51.100.0/24", "enxaabbccddeeff")
    return made.tree()


def a_record_contains_nothing_that_identifies_the_machine() -> None:
    found = record(_private_machine())
    everything = "\n".join([*found.texts, *found.texts.values(), *found.links.values(), *found.folders])
    for one in PRIVATE:
        assert one.lower() not in everything.lower(), one
    assert "isolcpus=2-3" in everything
    assert "hugepages=8" in everything


def a_record_says_the_same_as_the_machine_apart_from_addresses() -> None:
    tree = _private_machine()
    before, after = read(tree), read(record(tree))
    assert after.digest() == before.digest()
    for name in ("cpus", "nodes", "nics", "irqs", "system", "groups"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.network.routes
    assert {route.table for route in after.network.routes} == {route.table for route in before.network.routes or ()}
    to_peer = next(route for route in after.network.routes if not route.destination.endswith("/0"))
    peers = [ip_address(one.peer) for one in after.network.sessions]
    assert peers[0] in ip_network(to_peer.destination), "addresses that share a prefix still do"
    assert to_peer.devices == (after.interfaces[0].name,)


def a_record_is_the_same_tree_after_it_was_written(tmp_path: Path) -> None:
    made = record(_private_machine())
    n_files = write(made, tmp_path / "r.tar.gz")
    assert n_files == len(made.texts)
    assert read(open_record(tmp_path / "r.tar.gz")) == read(made)


def a_record_of_this_machine_is_read_like_the_machine(tmp_path: Path) -> None:
    write(record(FolderTree()), tmp_path / "r.tar.gz")
    live, recorded = read(FolderTree()), read(open_record(tmp_path / "r.tar.gz"))
    assert recorded.digest() == live.digest()
    assert recorded.cpus.online
    assert [one.number for one in recorded.cpus.cpus] == [one.number for one in live.cpus.cpus]


def a_folder_is_a_tree_too_and_no_link_leads_out_of_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    Machine(n_nodes=2, n_cores=3, n_threads=2).write(root)
    (root / "proc/cmdline").unlink()
    (root / "proc/cmdline").symlink_to("/proc/cmdline")
    (root / "etc/outside").symlink_to("/etc")
    tree = FolderTree(root)
    assert len(read(tree).cpus.online) == 12
    assert read(tree).kernel.words == ()
    assert tree.text("/etc/outside/passwd") is None
    assert tree.names("/etc/outside/apt") == ()


def refuses_what_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("proc/cmdline"), io.BytesIO(b""))
    for name, said in (("text", "is no archive"), ("other.tar", "is no record"), ("none", "No such file")):
        with pytest.raises(UsageFault, match=said):
            open_record(tmp_path / name)
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageFault, match="exists"):
        write(StoredTree(), tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == ""


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def addresses_keep_the_length_of_the_prefix_that_they_share(one: int, other: int) -> None:
    scrubber = Scrubber(KEY)
    before = [ip_address(number) for number in (one, other)]
    if any(address.is_loopback or address.is_multicast or address.is_unspecified for address in before):
        return
    after = [int(scrubber.address(address)) for address in before]
    if 2**32 - 1 not in (one, other):
        assert (one ^ other).bit_length() == (after[0] ^ after[1]).bit_length()


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("0000:03:00.0", True),
        ("127.0.0.1 ::1 0.0.0.0 ::", True),
        ("6.1.0-13-amd64", True),
        ("12:34:56", True),
        ("vm.stat_interval = 10", True),
        ("192.0.2.1", False),
        ("fe80::a8bb:ccff:fedd:eeff", False),
        ("02:00:00:00:00:01", False),
    ],
)
def replaces_addresses_and_nothing_that_looks_like_one(text: str, is_kept: bool) -> None:
    scrubber = Scrubber(KEY, ("vm",))
    assert (scrubber.text(text) == text) == is_kept
    assert scrubber.text(text) == scrubber.text(text)
