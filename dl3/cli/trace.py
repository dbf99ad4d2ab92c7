"""'dl3 trace': what dl3d would do with a packet, step by step, without sending it."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from dl3.cli.printing import counted, err, out, print_json
from dl3.cli.trace_lines import draw
from dl3.cli.trace_live import MOST_FRAME_BYTES, arrivals
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import Decision, Port, Ports
from dl3.control.trace_replies import Trace
from dl3.model.fault import UsageFault
from dl3.model.files import read_bounded
from dl3.model.flow_text import address_text
from dl3.model.frame_text import words_of
from dl3.model.packet_text import frame_of, parse_packet
from dl3.model.pcap import captured
from dl3.model.pcapng import Packet as Arrival

MOST_FILE_BYTES = 64 << 20
SENDER = bytes.fromhex("0200000000fe")


def port_of(client: Client, name: str | None, source: str | None) -> Port:
    """The port by which the packet comes in: the only one, or that to which the route to the source leads."""
    ports = client.ask(Ports, "ports").ports
    wanted = name
    if wanted is None and len(ports) > 1 and source is not None:
        decision = client.ask(Decision, "route", address=source)
        wanted = decision.port or next((member.port for member in decision.members), None)
        if wanted is None:
            raise UsageFault(f"no route leads to {source}: give the port by which the packet comes in with -i PORT")
    if wanted is None and len(ports) != 1:
        raise UsageFault("give the port by which the packet comes in with -i PORT: 'dl3 show ports' lists them")
    for port in ports:
        if wanted in (None, port.name):
            return port
    raise UsageFault(f"there is no port '{wanted}': 'dl3 show ports' lists them")


def mac_of(text: str) -> bytes:
    """Six bytes."""
    try:
        found = bytes.fromhex(text.replace(":", " ").replace("-", " "))
    except ValueError:
        found = b""
    if len(found) != 6:
        raise UsageFault(f"invalid MAC address '{text}': expected one such as 02:00:00:00:00:01")
    return found


def bytes_of(text: str) -> bytes:
    """A frame in hex, with or without blanks and colons."""
    try:
        found = bytes.fromhex(text.replace(":", " "))
    except ValueError as error:
        raise UsageFault("--hex: expected the bytes of a frame in hex, two digits each") from error
    return checked(found, "--hex")


def checked(frame: bytes, what: str) -> bytes:
    """A frame that dl3d takes."""
    if not 1 <= len(frame) <= MOST_FRAME_BYTES:
        raise UsageFault(f"{what}: expected a frame of 1 to {MOST_FRAME_BYTES:,} bytes, not {len(frame):,}")
    return frame


def frames_of(path: Path, count: int) -> tuple[list[bytes], bool]:
    """The first frames of a capture file, and whether there are more."""
    try:
        data = read_bounded(path, MOST_FILE_BYTES, "a capture file")
    except OSError as error:
        raise UsageFault(f"{path} cannot be read: {error.strerror or error}; choose another file") from error
    frames = []
    packets = captured(data, str(path))
    for number, packet in enumerate(islice(packets, count), 1):
        what = f"packet {number} of {path}"
        if len(packet.frame) < packet.length:
            raise UsageFault(f"{what} has only {len(packet.frame):,} of {packet.length:,} bytes: capture whole frames")
        frames.append(checked(packet.frame, what))
    if not frames:
        raise UsageFault(f"{path} has no packets: choose another capture")
    return frames, next(packets, None) is not None


def check_sources(words: list[str] | None, hexed: str | None, file: Path | None, mac: str | None, live: bool) -> None:
    """Exactly one of them; a filter beside --live."""
    if live and (hexed is not None or file is not None or mac is not None):
        raise UsageFault("--live traces frames as they are received: leave out --hex, --pcap and --mac")
    if live:
        return
    if sum((bool(words), hexed is not None, file is not None)) != 1:
        raise UsageFault("expected one of PACKET, --hex and --pcap; a PACKET is quoted: 'udp 10.0.0.1 > 203.0.113.7'")
    if mac is not None and not words:
        raise UsageFault("--mac is for a PACKET: a frame of --hex or --pcap has its own MAC addresses")


def traces(client: Client, port: Port, frames: list[bytes]) -> Iterator[tuple[bytes, Trace]]:
    """Ask for one after the other."""
    for frame in frames:
        yield frame, client.ask(Trace, "trace", port=port.name, frame=frame.hex())


def as_json_of(frame: bytes, trace: Trace) -> dict[str, Any]:
    """The reply with the frame that was given."""
    return {"frame": frame.hex(), **trace.model_dump(by_alias=True)}


def show_one(number: int, frame: bytes, trace: Trace, which: str) -> None:
    """Print one of several."""
    if number > 1:
        out.print()
    out.print(draw(f"{which}{words_of(frame)}, {counted(len(frame), 'byte')}", trace), highlight=False)
    sys.stdout.flush()


def show(client: Client, port: Port, frames: list[bytes], as_json: bool) -> None:
    """Print all."""
    if as_json:
        print_json({"traces": [as_json_of(frame, trace) for frame, trace in traces(client, port, frames)]})
        return
    for number, (frame, trace) in enumerate(traces(client, port, frames), 1):
        show_one(number, frame, trace, f"packet {number}: " if len(frames) > 1 else "")


def show_live(client: Client, arriving: Iterator[Arrival], as_json: bool) -> None:
    """Print them as they come; Ctrl-C ends it."""
    told = []
    try:
        for number, arrival in enumerate(arriving, 1):
            traced = client.ask(Trace, "trace", port=arrival.interface, frame=arrival.frame.hex())
            if as_json:
                told.append({"port": arrival.interface, **as_json_of(arrival.frame, traced)})
            else:
                show_one(number, arrival.frame, traced, f"{arrival.interface}: ")
    except KeyboardInterrupt:
        if not as_json:
            raise
    if as_json:
        print_json({"traces": told})


Packet = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PACKET",
        help="[vlan N] udp|tcp|icmp SOURCE[:PORT] > DESTINATION[:PORT] [ttl N] [dscp N] [length N] [df]; "
        "IPv6 with a port: [2001:db8::1]:53; length: of the IP packet in bytes.",
        show_default=False,
    ),
]
OfPort = Annotated[
    str | None,
    typer.Option(
        "-i", "--port", metavar="PORT", help="Port by which it comes in; default: as the route to the source leads."
    ),
]
Hexed = Annotated[str | None, typer.Option("--hex", metavar="HEX", help="A frame, from its MAC addresses on.")]
File = Annotated[Path | None, typer.Option("--pcap", metavar="FILE", help="The frames of a pcap or pcapng file.")]
Live = Annotated[
    bool, typer.Option("--live", help="Frames as they are received; PACKET is then a filter, as of tcpdump, or absent.")
]
Count = Annotated[
    int, typer.Option("-c", "--count", min=1, max=10000, metavar="N", help="At most N frames of --pcap or --live.")
]
Mac = Annotated[
    str | None, typer.Option("--mac", metavar="MAC", help="Destination MAC of PACKET; default: that of the port.")
]
Socket = Annotated[Path, typer.Option(metavar="PATH", help="Control socket of dl3d.", readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def trace(
    words: Packet = None,
    port: OfPort = None,
    hexed: Hexed = None,
    file: File = None,
    live: Live = False,
    count: Count = 100,
    mac: Mac = None,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Tell what dl3d would do with a packet now, step by step, and the bytes that it would send.

    The packet is not sent, not counted, and changes nothing: flows, MAC addresses and tokens stay as they are.

    Example: dl3 trace 'udp 10.0.0.1:1000 > 203.0.113.7:53' -i east

    Example: dl3 trace 'vlan 10 tcp [2001:db8::1]:4000 > [2001:db8:1::2]:443'

    Example: dl3 trace --pcap east.pcapng -i east

    Example: dl3 trace --live -i east -c 3 udp port 53
    """
    check_sources(words, hexed, file, mac, live)
    client, more = Client(socket), False
    if live:
        show_live(client, arrivals(socket, port, " ".join(words or ()), count), as_json)
        return
    if words:
        packet = parse_packet(" ".join(words))
        to_mac = mac_of(mac) if mac is not None else None
        at = port_of(client, port, address_text(packet.src))
        frames = [frame_of(packet, to_mac or mac_of(at.mac), SENDER)]
    else:
        frames, more = frames_of(file, count) if file else ([bytes_of(hexed or "")], False)
        at = port_of(client, port, None)
    show(client, at, frames, as_json)
    if more:
        err.print(f"dl3: {file} has more frames: -c N traces N of them", highlight=False)
