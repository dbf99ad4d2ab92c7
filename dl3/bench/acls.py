"""Access lists: those of dl3d beside l3fwd's, with the same rules and the same frames, each of which a rule permits."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address
from pathlib import Path

from dl3.bench.forwarder import Settings, config, write_file
from dl3.bench.sides import MAKER, Contestant, Entry, PairSettings, eal, job_of, march_of_build, march_of_peer
from dl3.bench.workplace import DL3D, PEERS, TABLES, Workplace, built
from dl3.lab.prefixes import SEED
from dl3.lab.tables import VERSION, TableFiles, Tuple4, kept, table_of_flows

N_FRAMES = 1 << 16
WELL_KNOWN_PORTS, ALL_PORTS = 1024, 65536
SOURCES, DESTINATIONS = 10 << 24, 48 << 24
SOURCE_LENGTHS, DESTINATION_LENGTHS = (16, 20, 24, 28), (16, 20, 24, 32)
LIST, PORT_IN = "bench", "in"

ROW_OF_RULES = (
    "half of the rules permit UDP between two prefixes to the ports from 1,024 on, the other half deny some ports below "
    "between the same prefixes; each of 65,536 frames is permitted by one of them, the rest is denied; dl3d counts by "
    "rule and finds one of 256 next hops by route, l3fwd-acl has one port and no other lookup"
)


@dataclass(frozen=True)
class Rule:
    """UDP between two prefixes to a range of ports."""

    src: int
    src_length: int
    dst: int
    dst_length: int
    first_port: int
    last_port: int
    is_permitted: bool

    @property
    def source(self) -> str:
        """As text."""
        return f"{IPv4Address(self.src)}/{self.src_length}"

    @property
    def destination(self) -> str:
        """As text."""
        return f"{IPv4Address(self.dst)}/{self.dst_length}"

    def a_flow(self, dice: random.Random) -> Tuple4:
        """A packet that this rule matches."""
        return Tuple4(
            self.src | dice.getrandbits(32 - self.src_length),
            self.dst | (dice.getrandbits(32 - self.dst_length) if self.dst_length < 32 else 0),
            dice.randrange(ALL_PORTS),
            dice.randint(self.first_port, self.last_port),
        )


def prefix(dice: random.Random, network: int, lengths: Sequence[int]) -> tuple[int, int]:
    """A random prefix in a /8, which is longer than that."""
    length = dice.choice(lengths)
    return network | dice.getrandbits(length - 8) << (32 - length), length


@lru_cache(maxsize=2)
def make_rules(number: int) -> tuple[Rule, ...]:
    """The rules in order: of each pair the first denies, the second permits. Identical on every machine and run."""
    dice, rules = random.Random(SEED), list[Rule]()
    for _ in range(number // 2):
        src, dst = prefix(dice, SOURCES, SOURCE_LENGTHS), prefix(dice, DESTINATIONS, DESTINATION_LENGTHS)
        first = dice.randrange(1, WELL_KNOWN_PORTS)
        last = min(first + dice.choice((0, 0, 0, 9, 99)), WELL_KNOWN_PORTS - 1)
        rules.append(Rule(*src, *dst, first, last, is_permitted=False))
        rules.append(Rule(*src, *dst, WELL_KNOWN_PORTS, ALL_PORTS - 1, is_permitted=True))
    return tuple(rules)


def make_frames(rules: Sequence[Rule]) -> list[Tuple4]:
    """Frames, uniformly distributed over the rules that permit them."""
    dice = random.Random(SEED + 1)
    permitting = [rule for rule in rules if rule.is_permitted]
    return [dice.choice(permitting).a_flow(dice) for _ in range(N_FRAMES)]


def rules_of_dl3d(rules: Iterable[Rule]) -> list[dict[str, str]]:
    """Rules of an access list in dl3d's file."""
    return [
        {
            "name": f"rule-{number}",
            "protocol": "udp",
            "from": rule.source,
            "to": rule.destination,
            "to_port": f"{rule.first_port}-{rule.last_port}",
            "do": "permit" if rule.is_permitted else "deny",
        }
        for number, rule in enumerate(rules)
    ]


def rules_of_l3fwd(rules: Iterable[Rule]) -> str:
    """'RSRC DST 0 : 65535 FIRST : LAST 0x11/0xff PORT' forwards, '@...' without PORT denies; no rule: denied, too."""
    return "".join(
        f"{'R' if rule.is_permitted else '@'}{rule.source} {rule.destination} 0 : 65535 "
        f"{rule.first_port} : {rule.last_port} 0x11/0xff{' 1' if rule.is_permitted else ''}\n"
        for rule in rules
    )


RULES_6 = "R0:0:0:0:0:0:0:0/0 0:0:0:0:0:0:0:0/0 0 : 65535 0 : 65535 0x00/0x00 1\n"


def table_of(number: int) -> Path:
    """The plugin's input."""
    path = TABLES / f"acl-{number}.{VERSION}.table"
    return kept(path, lambda: table_of_flows(make_frames(make_rules(number))))


def make_acl_dl3d(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d with an access list on the interface that receives."""
    lists = {LIST: [*rules_of_dl3d(make_rules(entry.rules)), {"name": "rest", "do": "deny"}]}
    acl = {"lists": lists, "use": [{"interface": PORT_IN, "direction": "in", "list": LIST}]}
    settings = Settings(
        terms.core, terms.burst, entry.n_hops, terms.descriptors, entry.mode, terms.memory_mib, {"acl": acl}
    )
    path = write_file(config(settings, TableFiles(entry.routes, TABLES), place), place)
    job = replace(job_of(entry, terms, (str(built(DL3D, "make")), str(path))), table=table_of(entry.rules))
    return Contestant(job, march_of_build("."))


def make_l3fwd_acl(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """l3fwd with access lists; its table of IPv6, which must not be empty, is not used."""
    program = built(PEERS / "l3fwd" / "program", MAKER)
    rules = kept(
        TABLES / f"acl-{entry.rules}.{VERSION}.rules", lambda: rules_of_l3fwd(make_rules(entry.rules)).encode("ascii")
    )
    rules6 = kept(TABLES / f"acl-v6.{VERSION}.rules", lambda: RULES_6.encode("ascii"))
    command = (
        *(str(program), *eal(terms, place, f"0@{terms.core}")),
        *("-p", "0x3", "-P", "--no-numa", "--config=(0,0,0)", "--parse-ptype", "--lookup=acl"),
        *(f"--rx-queue-size={terms.descriptors}", f"--tx-queue-size={terms.descriptors}"),
        *(f"--rule_ipv4={rules}", f"--rule_ipv6={rules6}"),
    )
    job = replace(job_of(entry, terms, command), table=table_of(entry.rules))
    return Contestant(job, march_of_peer("l3fwd"))
