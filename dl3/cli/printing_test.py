"""Output is printed literally: addresses and names are not interpreted as markup or emoji."""

import io

import pytest
from rich.console import Console, Group

from dl3.cli.printing import err, out, table
from dl3.cli.progress import Bar

ADDRESSES = "2001:db8:a:b::1 fd00:a:abc:cd::/64"
NAMES = "eth[0] [red]left[/red] [/b] :x:"


def prints_addresses_and_names_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    out.print(table(NAMES, ("name", "~where"), [(ADDRESSES, NAMES)]))
    out.print(Group(f"More: --after {ADDRESSES}"))
    out.print(NAMES)
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0].strip(), lines[-1]] == [NAMES, NAMES]
    assert ADDRESSES in lines[2]
    assert NAMES in lines[2]
    assert ADDRESSES in lines[3]


def complains_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    err.print(f"dl3: {ADDRESSES} {NAMES}", highlight=False, soft_wrap=True)
    assert capsys.readouterr().err == f"dl3: {ADDRESSES} {NAMES}\n"


def draws_a_device_with_brackets_in_its_name() -> None:
    class Named(Bar):
        def words(self, frame: str) -> str:
            return f"{NAMES} {frame}"

    terminal = io.StringIO()
    with Named(Console(file=terminal, force_terminal=True, no_color=True, width=200)) as bar:
        bar.on_left("64", 1.0)
    assert NAMES in terminal.getvalue()


@pytest.mark.parametrize("width", [200, 80, 40])
def cuts_nothing_off_where_the_terminal_is_narrow(width: int) -> None:
    columns = ("port", "~device", "MAC", "link", ">received", ">packets/s in", ">sent", ">packets/s out", ">wire loss")
    device = "net_af_packet0,iface=enp129s0f1np1"
    row = ("left", device, "02:00:00:00:00:01", "up", 1599019584, "12,345,678", 1599019583, "12,345,677", 1)
    terminal = io.StringIO()
    Console(file=terminal, width=width).print(table("Ports", columns, [row, row]))
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    printed = "".join("".join(lines).split())
    assert printed.count("1,599,019,584") == printed.count("02:00:00:00:00:01") == printed.count("12,345,677") == 2
    assert printed.count(device) == 2
    assert ("receivedpackets/sin" in printed) == (width == 200), "a table where there is room"


def folds_a_sentence_to_keep_the_table() -> None:
    terminal = io.StringIO()
    Console(file=terminal, width=60).print(table("", ("name", ">n", "~meaning"), [("a" * 20, 10**9, "word " * 30)]))
    assert f"{'a' * 20}  1,000,000,000  word word word" in terminal.getvalue()


def folds_headings_before_it_gives_up_the_table() -> None:
    terminal = io.StringIO()
    columns = ("class", ">over limit", ">ring full", "~what it is")
    Console(file=terminal, width=45).print(table("", columns, [("neighbour", 12345678, 7, "ARP and all else")]))
    lines = [" ".join(line.split()) for line in terminal.getvalue().splitlines()]
    assert lines[:3] == ["what", "over ring it", "class limit full is"]
    assert "neighbour 12,345,678 7 ARP" in " ".join(lines)


def two_columns_that_are_folded_cut_no_other_one() -> None:
    cells = ("10.0.0.1 10.1.0.1 udp 5000 53", "via 10.9.0.2 dev east dscp 46", 1234, 99999, "1.2 s", "idle 30 s")
    screen = io.StringIO()
    Console(file=screen, width=80).print(table("", ("~a", "~b", ">packets", ">bytes", ">idle for", "ends"), [cells]))
    assert "idle 30 s" in screen.getvalue()
