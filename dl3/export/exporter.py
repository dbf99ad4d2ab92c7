"""The exporter: reads samples from dl3d's workers, and sends datagrams to a collector."""

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

from dl3.control.capture import CaptureStream
from dl3.control.client import Client
from dl3.control.replies import Port, Ports
from dl3.export.flows import Flows
from dl3.export.ipfix import Messages
from dl3.export.sample import Sample, samples
from dl3.export.sflow import Address, Datagrams
from dl3.host.interrupts import Held
from dl3.model.fault import Fault
from dl3.model.pcapng import PacketReader

BETWEEN_TICKS_S = 1.0
DESCRIBE_S = 30.0  # templates of IPFIX over UDP are sent again


class Format:
    """What makes datagrams of samples."""

    missed = 0  # samples that were lost so far
    ports: Sequence[Port] = ()  # with their counters of the latest second

    def take(self, sample: Sample) -> Iterable[bytes]:
        """A frame."""
        raise NotImplementedError

    def tick(self) -> Iterable[bytes]:
        """Called once a second, and before the first frame."""
        raise NotImplementedError

    def finish(self) -> Iterable[bytes]:
        """What is left at the end."""
        raise NotImplementedError


class SflowFormat(Format):
    """Each sample as it is, and the counters of all ports at times."""

    def __init__(self, agent: Address, sample: int, counters_s: float) -> None:
        self._made = Datagrams(agent, sample, time.monotonic())
        self._counters_s, self._counted_s = counters_s, -counters_s

    def take(self, sample: Sample) -> Iterable[bytes]:
        """A flow sample or a dropped packet."""
        pool = sum(port.rx_packets for port in self.ports if port.port + 1 == sample.port)
        return self._made.add(sample, pool, self.missed, time.monotonic())

    def tick(self) -> Iterable[bytes]:
        """Nothing waits longer than a second."""
        now_s = time.monotonic()
        full = []
        if now_s - self._counted_s >= self._counters_s:
            self._counted_s = now_s
            full = self._made.add_counters(self.ports, now_s)
        return [*full, *self._made.rest(now_s)]

    def finish(self) -> Iterable[bytes]:
        """The last datagram."""
        return self._made.rest(time.monotonic())


class IpfixFormat(Format):
    """Flows of samples, told when they end or have been active for long."""

    def __init__(self, flows: Flows, messages: Messages) -> None:
        self._flows, self._messages = flows, messages
        self._described_s = -DESCRIBE_S

    def take(self, sample: Sample) -> Iterable[bytes]:
        """Count it to its flow."""
        ended = self._flows.add(sample)
        return () if ended is None else self._messages.add(ended, time.time())

    def tick(self) -> Iterable[bytes]:
        """The flows that have ended."""
        now_s = time.time()
        if time.monotonic() - self._described_s >= DESCRIBE_S:
            self._described_s = time.monotonic()
            yield from self._messages.described(now_s)
        for flow in self._flows.expire(int(now_s * 1000)):
            yield from self._messages.add(flow, now_s)
        yield from self._messages.rest(now_s)

    def finish(self) -> Iterable[bytes]:
        """All flows."""
        now_s = time.time()
        for flow in self._flows.expire(0, everything=True):
            yield from self._messages.add(flow, now_s)
        yield from self._messages.rest(now_s)


@dataclass
class Tally:
    """What was done."""

    samples: int = 0  # received frames
    drops: int = 0  # dropped ones
    missed: int = 0  # samples for which a ring had no space
    datagrams: int = 0
    unsent: int = 0  # datagrams that the system did not take, or that the collector's host refused


class Collector:
    """Where datagrams go."""

    def __init__(self, host: str, port: int) -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            self._socket = socket.socket(found[0], socket.SOCK_DGRAM)
            self._socket.connect(found[4])
            self.name = f"{host} port {port}"
        except OSError as error:
            raise Fault(f"cannot send to the collector {host} port {port}: {error.strerror or error}") from error

    @property
    def own_address(self) -> Address:
        """The address from which it is reached."""
        return ip_address(self._socket.getsockname()[0].partition("%")[0])

    def send(self, datagrams: Iterable[bytes], tally: Tally) -> None:
        """An error counts. That of an earlier datagram, which ICMP told of, takes another attempt."""
        for datagram in datagrams:
            for _ in range(2):
                try:
                    self._socket.send(datagram)
                except OSError:
                    tally.unsent += 1
                    continue
                tally.datagrams += 1
                break

    def close(self) -> None:
        """Release the socket."""
        with suppress(OSError):
            self._socket.close()


def named(ports: Sequence[Port]) -> dict[str, int]:
    """Numbers of ports, from 1 on, by name; a port that was added since has 'port N' for a name in the stream."""
    return {f"port {port.port}": port.port + 1 for port in ports} | {port.name: port.port + 1 for port in ports}


class Exporter:
    """Runs until dl3d ends the stream."""

    def __init__(self, client: Client, made: Format, collector: Collector, began: Callable[[], None]) -> None:
        """`began` is called when all workers take samples."""
        self._client, self._made, self._collector, self._began = client, made, collector, began
        self._reader = PacketReader()
        self._names: dict[str, int] = {}
        self._next_s = 0.0
        self.tally = Tally()
        self._is_complete = self._has_begun = False

    def follow(self, stream: CaptureStream) -> None:
        """Until the last chunk. May be interrupted, and go on."""
        while not self._is_complete:
            self._tick()
            if not stream.wait(max(self._next_s - time.monotonic(), 0.0)):
                continue
            with Held():
                chunk = stream.read()
                self._say_that_it_began()
                self.tally.missed = self._made.missed = chunk.missed
                self._is_complete = chunk.is_last
                for sample in samples(self._reader.packets(chunk.blocks), self._names):
                    self._count(sample)
                    self._collector.send(self._made.take(sample), self.tally)

    def finish(self) -> None:
        """Send what is left."""
        self._collector.send(self._made.finish(), self.tally)

    def _count(self, sample: Sample) -> None:
        if sample.verdict is None:
            self.tally.samples += 1
        else:
            self.tally.drops += 1

    def _say_that_it_began(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._began()

    def _tick(self) -> None:
        if time.monotonic() < self._next_s:
            return
        ports = self._client.ask(Ports, "ports").ports
        self._names, self._made.ports = named(ports), ports
        self._collector.send(self._made.tick(), self.tally)
        self._next_s = time.monotonic() + BETWEEN_TICKS_S
