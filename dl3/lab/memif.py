"""dl3gen and a device under test over two memif links, on one core each."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dl3.host.hugepages import reserved
from dl3.host.interrupts import Held
from dl3.host.root import need_root
from dl3.lab.endpoint import Endpoint, Wire
from dl3.lab.links import Flows, Links
from dl3.lab.pair import TOP, Pair, Tester, distance_ns, pair
from dl3.lab.single import Dut, started

MemifLab = Pair
PAGE_MIB = 2


@dataclass(frozen=True)
class MemifSettings:
    """Parameters of the lab."""

    dut: Dut
    flows: Flows = field(default_factory=Flows)
    generator_core: int = 0
    dut_cores: tuple[int, ...] = (1,)
    ring_bits: int = 14  # 16,384 frames: on shared cores, a ring must absorb a pause
    is_zero_copy: bool = True  # of dl3gen's ends
    burst: int = 64  # maximum burst size of the forwarder, in frames
    generator_burst: int = 64
    generator_idle: str = ""  # '': default
    dut_mib: int = 256  # EAL's memory
    generator_mib: int = 512  # reserved for dl3gen, which allocates what it needs
    build: Path = TOP / "build"

    @property
    def pages(self) -> int:
        """Huge pages of 2 MiB for both programs."""
        return (self.dut_mib + self.generator_mib) // PAGE_MIB

    @property
    def tester(self) -> Tester:
        """dl3gen's settings."""
        return Tester((self.generator_core,), self.generator_burst, self.flows, self.generator_idle, self.build)

    def links(self, folder: Path) -> Wire:
        """The links, whose files are in the folder."""
        return Links(folder, self.ring_bits, self.is_zero_copy)

    def endpoint(self, folder: Path) -> Endpoint:
        """The device's settings."""
        return Endpoint(self.links(folder), self.dut_cores, self.burst, self.dut_mib, descriptors=1 << self.ring_bits)


@contextmanager
def memif_lab(terms: MemifSettings) -> Iterator[MemifLab]:
    """The lab, ready to send; everything is removed afterwards, including huge pages."""
    need_root("the lab")
    cores = terms.generator_core, terms.dut_cores[0]
    found_ns = [distance_ns(terms.build, *cores)]
    with reserved(terms.pages):
        with Held():
            folder = tempfile.TemporaryDirectory(prefix="dl3-memif-")
        with (
            folder as name,
            pair(partial(started, terms.dut), terms.endpoint(Path(name)), terms.tester, found_ns) as lab,
        ):
            yield lab
        found_ns.append(distance_ns(terms.build, *cores))
