"""Rejects combinations that no machine can measure, when the file is read."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from dl3.campaign.lines import Place, Tree
from dl3.campaign.parameters import PARAMETERS, UNITS_KIB
from dl3.campaign.written import WrittenCampaign, WrittenCase
from dl3.model.campaign import TestName

SMALLEST_IP6 = 84  # Ethernet, IPv6, UDP, stamp and FCS
MOST_JOBS = 10_000  # per campaign
GIB_KIB = UNITS_KIB["GiB"]


def parameters_of(case: WrittenCase, campaign: WrittenCampaign) -> dict[str, tuple[str, ...]]:
    """The parameters of a case, including the campaign's defaults."""
    return {**campaign.defaults.parameters, **case.parameters}


def frames_of(case: WrittenCase, campaign: WrittenCampaign) -> tuple[str, ...]:
    """The frames of the case, or the campaign's default."""
    return case.frames or campaign.defaults.frames or ()


def tests_of(case: WrittenCase, campaign: WrittenCampaign) -> tuple[TestName, ...]:
    """The tests of the case, or the campaign's default."""
    return case.tests or campaign.defaults.tests or ()


def combinations(parameters: dict[str, tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """All combinations of parameter values; the last parameter varies fastest."""
    for values in product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))


def fields_of(values: dict[str, str]) -> dict[str, Any]:
    """The fields of all values combined."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        fields.update(PARAMETERS[name].read(value))
    return fields


def cores_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """A processor polls either for the device or for the generator."""
    both = set(fields.get("dut_cores", ())) & set(fields.get("generator_cores", ()))
    return (
        f"processor {min(both)} is among 'lcores' and among 'generator cores': give it to one of them" if both else ""
    )


def pages_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """Memory in 1 GiB pages must be a multiple of 1 GiB."""
    memory_kib = fields.get("memory_mib", 1024) * 1024
    if fields.get("page_kib") == GIB_KIB and memory_kib % GIB_KIB:
        return f"{fields['memory_mib']} MiB of huge pages cannot be made of pages of 1 GiB: take whole GiB"
    return ""


def family_clash(fields: dict[str, Any], frames: tuple[str, ...]) -> str:
    """The headers and the stamp need more space with IPv6."""
    small = [frame for frame in frames if frame.isdigit() and int(frame) < SMALLEST_IP6]
    if fields.get("family") == "ipv6" and small:
        return f"a frame of {small[0]} bytes cannot hold IPv6, UDP and the stamp: take {SMALLEST_IP6} bytes or more"
    return ""


def routes_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """Routes and traffic must be of the same family."""
    is_ip6 = fields.get("family") == "ipv6"
    if fields.get("routes", "one") != "one" and str(fields["routes"]).startswith("v6") != is_ip6:
        return f"routes '{fields['routes']}' and family '{fields.get('family', 'ipv4')}' do not match: use one family"
    return ""


def addresses_clash(fields: dict[str, Any], _frames: tuple[str, ...]) -> str:
    """The white paper only has IPv4."""
    if fields.get("addresses") == "white-paper" and fields.get("family") == "ipv6":
        return "the addresses of the white paper are of IPv4: leave 'family' out"
    return ""


CLASHES: tuple[Callable[[dict[str, Any], tuple[str, ...]], str], ...] = (
    cores_clash,
    pages_clash,
    family_clash,
    routes_clash,
    addresses_clash,
)


def beside_streams(case: WrittenCase, campaign: WrittenCampaign) -> str:
    """The first parameter of the case that has no effect because of user-defined streams; '' if there is none."""
    given = case.streams or campaign.defaults.streams
    return next((name for name in case.parameters if given and PARAMETERS[name].where == "traffic"), "")


def rates_of(case: WrittenCase, campaign: WrittenCampaign) -> Mapping[str, tuple[float, ...]]:
    """The rates that a frame loss test offers besides its loads, by frame size."""
    own, common = case.effort.rates, campaign.defaults.effort.rates
    return (common if own is None else own) or {}


def check_rates(tree: Tree, place: Place, case: WrittenCase, campaign: WrittenCampaign) -> None:
    """Reject rates that nothing offers."""
    here = (*place, "effort", "rates") if case.effort.rates else ("defaults", "effort", "rates")
    frames, rates = frames_of(case, campaign), rates_of(case, campaign)
    other = next((frame for frame in rates if frame not in frames), "")
    if other:
        raise tree.fault(here, f"case '{case.key}' has rates for frames of {other}, but no such frames: remove them")
    if rates and "frame loss" not in tests_of(case, campaign):
        raise tree.fault(here, f"case '{case.key}' has rates, but no test 'frame loss' that offers them: add it")


def check_exceed(tree: Tree, place: Place, case: WrittenCase, campaign: WrittenCampaign) -> None:
    """Reject an exceed ratio with a search method that does not support it."""
    own, common = case.effort, campaign.defaults.effort
    exceed = common.exceed if own.exceed is None else own.exceed
    if exceed and (own.method or common.method) == "binary":
        here = (*place, "effort") if own.said() else ("defaults", "effort")
        sentence = f"case '{case.key}': 'exceed' is RFC 9971's: leave it out, or search by 'method: mlrsearch'"
        raise tree.fault(here, sentence)


def check_case(tree: Tree, place: Place, case: WrittenCase, campaign: WrittenCampaign) -> None:
    """Raise a UsageFault for the first impossible combination."""
    frames, tests, parameters = frames_of(case, campaign), tests_of(case, campaign), parameters_of(case, campaign)
    whose = f"case '{case.key}'"
    for name, found in (("frames", frames), ("tests", tests)):
        if not found:
            raise tree.fault(place, f"{whose} has no '{name}': write them there or under 'defaults'")
    if "cores" in parameters and "lcores" in parameters:
        raise tree.fault(
            (*place, "parameters"), f"{whose} has 'cores' and 'lcores': 'lcores' includes 'cores', remove one of them"
        )
    check_exceed(tree, place, case, campaign)
    check_rates(tree, place, case, campaign)
    if name := beside_streams(case, campaign):
        sentence = f"{whose}: '{name}' has no effect with 'streams': remove one of them"
        raise tree.fault((*place, "parameters", name), sentence)
    for values in combinations(parameters):
        fields = fields_of(values)
        for clash in CLASHES:
            if sentence := clash(fields, frames):
                raise tree.fault((*place, "parameters"), f"{whose}: {sentence}")


def check_amount(tree: Tree, campaign: WrittenCampaign) -> None:
    """Reject an implausible number of jobs, most likely a typing error."""
    n_jobs = 0
    for i, case in enumerate(campaign.cases):
        sets = [frames_of(case, campaign), tests_of(case, campaign), case.duts or campaign.duts]
        n_jobs += prod(len(values) for values in (*sets, *parameters_of(case, campaign).values()))
        if n_jobs > MOST_JOBS:
            sentence = f"with case '{case.key}' there are {n_jobs:,} jobs: a campaign has {MOST_JOBS:,} at most"
            raise tree.fault(("cases", i), sentence)
