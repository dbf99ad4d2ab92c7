"""Combinations that no machine could measure, found when the file is read."""

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

from dl3.campaign.lines import Place, Tree
from dl3.campaign.parameters import PARAMETERS, UNITS_KIB
from dl3.campaign.written import WrittenCampaign, WrittenCase
from dl3.model.campaign import TestName

SMALLEST_IP6 = 84  # Ethernet, IPv6, UDP, stamp and FCS
MOST_JOBS = 10_000  # of one campaign
GIB_KIB = UNITS_KIB["GiB"]


def parameters_of(case: WrittenCase, campaign: WrittenCampaign) -> dict[str, tuple[str, ...]]:
    """The case's own and the campaign's."""
    return {**campaign.defaults.parameters, **case.parameters}


def frames_of(case: WrittenCase, campaign: WrittenCampaign) -> tuple[str, ...]:
    """The case's own or the campaign's."""
    return case.frames or campaign.defaults.frames or ()


def tests_of(case: WrittenCase, campaign: WrittenCampaign) -> tuple[TestName, ...]:
    """The case's own or the campaign's."""
    return case.tests or campaign.defaults.tests or ()


def combinations(parameters: dict[str, tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """Each value of each parameter with each of all others; the last one changes fastest."""
    for values in product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))


def fields_of(values: dict[str, str]) -> dict[str, Any]:
    """What they mean, taken together."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        fields.update(PARAMETERS[name].read(value))
    return fields


def cores_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """A processor polls for the device or for the generator."""
    both = set(fields.get("dut_cores", ())) & set(fields.get("generator_cores", ()))
    return (
        f"processor {min(both)} is among 'lcores' and among 'generator cores': give it to one of them" if both else ""
    )


def pages_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """Pages of 1 GiB come whole."""
    memory_kib = fields.get("memory_mib", 1024) * 1024
    if fields.get("page_kib") == GIB_KIB and memory_kib % GIB_KIB:
        return f"{fields['memory_mib']} MiB of huge pages cannot be made of pages of 1 GiB: take whole GiB"
    return ""


def family_clash(fields: dict[str, Any], frames: tuple[str, ...]) -> str:
    """Headers and stamp of IPv6 need more room."""
    small = [frame for frame in frames if frame.isdigit() and int(frame) < SMALLEST_IP6]
    if fields.get("family") == "ipv6" and small:
        return f"a frame of {small[0]} bytes cannot hold IPv6, UDP and the stamp: take {SMALLEST_IP6} bytes or more"
    return ""


def routes_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """Routes and traffic are of one family."""
    is_ip6 = fields.get("family") == "ipv6"
    if fields.get("routes", "one") != "one" and str(fields["routes"]).startswith("v6") != is_ip6:
        return f"routes '{fields['routes']}' and family '{fields.get('family', 'ipv4')}' do not fit: take those of one"
    return ""


CLASHES: tuple[Callable[[dict[str, Any], tuple[str, ...]], str], ...] = (
    cores_clash,
    pages_clash,
    family_clash,
    routes_clash,
)


def beside_streams(case: WrittenCase, campaign: WrittenCampaign) -> str:
    """The first parameter of the case that streams of a person's own leave without a meaning, '' when there is none."""
    given = case.streams or campaign.defaults.streams
    return next((name for name in case.parameters if given and PARAMETERS[name].where == "traffic"), "")


def check_exceed(tree: Tree, place: Place, case: WrittenCase, campaign: WrittenCampaign) -> None:
    """No exceed ratio is asked of a search that knows none."""
    own, common = case.effort, campaign.defaults.effort
    exceed = common.exceed if own.exceed is None else own.exceed
    if exceed and (own.method or common.method) == "binary":
        here = (*place, "effort") if own.said() else ("defaults", "effort")
        sentence = f"case '{case.key}': 'exceed' is RFC 9971's: leave it out, or search by 'method: mlrsearch'"
        raise tree.fault(here, sentence)


def check_case(tree: Tree, place: Place, case: WrittenCase, campaign: WrittenCampaign) -> None:
    """Raise the UsageFault for the first thing that cannot be."""
    frames, tests, parameters = frames_of(case, campaign), tests_of(case, campaign), parameters_of(case, campaign)
    whose = f"case '{case.key}'"
    for name, found in (("frames", frames), ("tests", tests)):
        if not found:
            raise tree.fault(place, f"{whose} has no '{name}': write them there or under 'defaults'")
    if "cores" in parameters and "lcores" in parameters:
        raise tree.fault(
            (*place, "parameters"), f"{whose} has 'cores' and 'lcores': the second says both, leave one out"
        )
    check_exceed(tree, place, case, campaign)
    if name := beside_streams(case, campaign):
        sentence = f"{whose}: '{name}' means nothing beside 'streams': leave one of both out"
        raise tree.fault((*place, "parameters", name), sentence)
    for values in combinations(parameters):
        fields = fields_of(values)
        for clash in CLASHES:
            if sentence := clash(fields, frames):
                raise tree.fault((*place, "parameters"), f"{whose}: {sentence}")


def check_amount(tree: Tree, campaign: WrittenCampaign) -> None:
    """So many jobs that nobody can want them are a slip of the pen."""
    n_jobs = 0
    for i, case in enumerate(campaign.cases):
        sets = [frames_of(case, campaign), tests_of(case, campaign), case.duts or campaign.duts]
        n_jobs += prod(len(values) for values in (*sets, *parameters_of(case, campaign).values()))
        if n_jobs > MOST_JOBS:
            sentence = f"with case '{case.key}' there are {n_jobs:,} jobs: a campaign has {MOST_JOBS:,} at most"
            raise tree.fault(("cases", i), sentence)
