"""'dl3 capture': frames that pass through dl3d, with the reason of each drop."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from dl3.cli.printing import counted, err, print_json
from dl3.control.bpf import compile_filter
from dl3.control.capture import CaptureStream, capturing
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import Drops
from dl3.host.interrupts import Held
from dl3.model.fault import Fault, UsageFault
from dl3.model.frame_text import words_of
from dl3.model.pcapng import Packet, PacketReader, whole

STDOUT = "-"


@dataclass
class Tally:
    """How much was captured and written, and how much is missing."""

    captured: int = 0
    missed: int = 0
    is_complete: bool = False


def line_of(packet: Packet) -> str:
    """'12:00:01.000001 east in, 60 bytes: 10.0.0.1:5000 > 10.1.0.1:53 udp'."""
    at = datetime.fromtimestamp(packet.time_ns // 10**9).strftime("%H:%M:%S")
    micros = packet.time_ns // 1000 % 10**6
    where = packet.interface if packet.reason else f"{packet.interface} {'out' if packet.is_out else 'in'}"
    reason = f"; {packet.reason}" if packet.reason else ""
    return f"{at}.{micros:06} {where}, {counted(packet.length, 'byte')}: {words_of(packet.frame)}{reason}"


class Lines:
    """A line for each packet on standard output."""

    def __init__(self) -> None:
        self._reader = PacketReader()

    def write(self, blocks: bytes) -> None:
        """Print the packets of a chunk."""
        for packet in self._reader.packets(blocks):
            typer.echo(line_of(packet))
        sys.stdout.flush()

    def rest(self) -> int:
        """Nothing is half written."""
        return 0


class Blocks:
    """A file that was made for them, or standard output, with pcapng blocks."""

    def __init__(self, descriptor: int, is_own: bool) -> None:
        self._descriptor, self._is_own, self._whole_bytes, self._partial = descriptor, is_own, 0, b""

    def write(self, blocks: bytes) -> None:
        """Write all of them, or raise OSError."""
        at = 0
        while at < len(blocks):
            try:
                at += os.write(self._descriptor, blocks[at:])
            except OSError:
                self._partial = blocks[:at]
                raise
        self._whole_bytes += len(blocks)

    def rest(self) -> int:
        """After an error: cut the packet that is half written off an own file. The number of whole ones of the last chunk."""
        n, packets = whole(self._partial)
        if self._is_own:
            with suppress(OSError):  # a pipe: its reader sees the end
                os.ftruncate(self._descriptor, self._whole_bytes + n)
        return packets


@contextmanager
def output(file: str | None, force: bool) -> Iterator[Lines | Blocks]:
    """Where the packets go. The file must be new, unless forced."""
    if file is None:
        yield Lines()
    elif file == STDOUT:
        yield Blocks(sys.stdout.fileno(), is_own=False)
    else:
        how = os.O_TRUNC if force else os.O_EXCL
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | how, 0o600)
        except OSError as error:
            raise Fault(unwritable(file, error)) from error
        try:
            yield Blocks(descriptor, is_own=True)
        finally:
            os.close(descriptor)


def unwritable(file: str, error: OSError) -> str:
    """Why a file cannot be made."""
    if error.errno == errno.EEXIST:
        return f"{file} exists: choose another name, or replace it with --force"
    if error.errno == errno.ELOOP:
        return f"{file} is a symbolic link, and is not followed: name the file itself"
    return f"cannot write {file}: {error.strerror}"


def check_output(file: str | None, force: bool, as_json: bool) -> None:
    """Refuse what cannot be written, before the capture starts."""
    if file in (None, STDOUT) and as_json:
        raise UsageFault("--json prints the summary on standard output: write the packets to a file with -w FILE")
    if file == STDOUT and sys.stdout.isatty():
        raise UsageFault("standard output is a terminal: redirect it, or leave out -w to read the packets here")
    if file not in (None, STDOUT) and not force and os.path.lexists(str(file)):
        raise UsageFault(f"{file} exists: choose another name, or replace it with --force")


def follow(stream: CaptureStream, to: Lines | Blocks, tally: Tally) -> None:
    """Write chunks until the last one."""
    while not tally.is_complete:
        stream.wait()
        with Held():
            chunk = stream.read()
            tally.missed = chunk.missed
            try:
                to.write(chunk.blocks)
            except OSError:
                tally.captured += to.rest()
                raise
            tally.captured, tally.is_complete = chunk.captured, chunk.is_last


def run(stream: CaptureStream, to: Lines | Blocks, tally: Tally, file: str | None) -> None:
    """Capture until the end or Ctrl-C. A Fault says why it ended early; what was captured until then is kept."""
    try:
        try:
            follow(stream, to, tally)
        except KeyboardInterrupt:
            stream.end()
            follow(stream, to, tally)
    except OSError as error:
        if file is None or error.errno == errno.EPIPE:
            raise
        what = "standard output" if file == STDOUT else file
        kept = f"the {counted(tally.captured, 'packet')} captured before are kept"
        raise Fault(f"cannot write {what} any further: {error.strerror}; {kept}") from error


def report(tally: Tally, file: str | None, as_json: bool) -> None:
    """The summary."""
    if as_json:
        print_json({"captured": tally.captured, "missed": tally.missed, "file": file})
        return
    hint = "; a larger --buffer or a filter helps" if tally.missed else ""
    err.print(f"dl3: captured {counted(tally.captured, 'packet')}, missed {tally.missed:,}{hint}", highlight=False)


def wanted_verdicts(client: Client, names: list[str], drops: bool) -> list[str] | None:
    """The names of drop reasons; None: received and sent frames as well."""
    if drops and names:
        raise UsageFault("--drops captures all reasons: leave it out, or leave out --verdict")
    if not drops:
        return names or None
    return [row.name for row in client.ask(Drops, "drops").verdicts if row.name != "forward"]


Words = Annotated[list[str] | None, typer.Argument(metavar="BPF", help="Filter, as of tcpdump.", show_default=False)]
OfPort = Annotated[str | None, typer.Option("-i", "--port", metavar="PORT", help="Only frames of this port.")]
Reasons = Annotated[
    list[str] | None,
    typer.Option(metavar="REASON", help="Only packets dropped or punted for this reason; may be repeated."),
]
OnlyDrops = Annotated[bool, typer.Option("--drops", help="Only packets dropped or punted, for any reason.")]
Count = Annotated[int | None, typer.Option("-c", "--count", min=1, metavar="N", help="End after N packets.")]
Snap = Annotated[
    int, typer.Option("-s", "--snap", min=14, max=65535, metavar="BYTES", help="Bytes of each frame to keep.")
]
File = Annotated[
    str | None, typer.Option("-w", "--write", metavar="FILE", help="Write pcapng to this file, - for standard output.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
Buffer = Annotated[int, typer.Option(min=256, max=1 << 20, metavar="KIB", help="Size of the ring of each worker.")]
Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def capture(
    expression: Words = None,
    port: OfPort = None,
    verdict: Reasons = None,
    drops: OnlyDrops = False,
    count: Count = None,
    snap: Snap = 65535,
    file: File = None,
    force: Force = False,
    buffer: Buffer = 4096,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Capture frames that pass through dl3d: received, sent, and dropped or punted ones with the reason.

    Ends with Ctrl-C or after -c N packets. Without -w, prints a line for each packet.

    Example: dl3 capture -i east -w east.pcapng udp port 53

    Example: dl3 capture --verdict no_route -c 10

    Example: dl3 capture --drops -w - | tshark -r -
    """
    check_output(file, force, as_json)
    settings = {
        "port": port,
        "verdicts": wanted_verdicts(Client(socket), verdict or [], drops),
        "count": count,
        "snap": snap,
        "ring_kib": buffer,
        "program": compile_filter(" ".join(expression)) if expression else None,
    }
    tally = Tally()
    with capturing(socket, **settings) as stream, output(file, force) as to:
        try:
            run(stream, to, tally, file)
        finally:
            report(tally, file, as_json)
