"""Names a campaign may use that are defined in higher-level packages, which pass them in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dl3.campaign.lines import Place, Tree, shown
from dl3.campaign.parameters import PARAMETERS
from dl3.campaign.sense import frames_of, parameters_of, tests_of
from dl3.campaign.written import WrittenCampaign, WrittenCase, WrittenDut
from dl3.model.campaign import Ability, Setup, Traffic
from dl3.model.fault import UsageFault

DEFAULTS = {**Setup.model_fields, **Traffic.model_fields}


@dataclass(frozen=True)
class Vocabulary:
    """Kinds of devices that can be tested, and published cases: 'white-paper', 'white-paper 1.1'."""

    kinds: Mapping[str, Ability]
    published: frozenset[str]
    wrong: Callable[[str, str, object], str] = lambda *_: ""  # the error in a free-text option of a kind, or ''


def check_kind(tree: Tree, i: int, dut: WrittenDut, vocabulary: Vocabulary) -> None:
    """Check that the kind, its options and their values exist."""
    if dut.kind not in vocabulary.kinds:
        known = ", ".join(vocabulary.kinds)
        raise tree.fault(("duts", i, "kind"), f"the kind {shown(dut.kind)} is unknown: expected one of {known}")
    choices = vocabulary.kinds[dut.kind].choices
    for name, value in dut.options.items():
        place: Place = ("duts", i, "options", name)
        if name not in choices:
            known = f"one of {', '.join(choices)}" if choices else "none"
            raise tree.fault(place, f"the option {shown(name)} of the kind '{dut.kind}' is unknown: expected {known}")
        if choices[name] and value not in choices[name]:
            wanted = f"one of {', '.join(choices[name])}" if len(choices[name]) > 1 else f"'{choices[name][0]}'"
            raise tree.fault(place, f"'{name}' of the kind '{dut.kind}': found {shown(value)}, expected {wanted}")
        if sentence := vocabulary.wrong(dut.kind, name, value):
            raise tree.fault(place, f"'{name}' of the kind '{dut.kind}': {sentence}")


def can_be_given(name: str, value: str, ability: Ability) -> bool:
    """Whether a kind supports a parameter value, or the value is the default."""
    return all(
        field in ability.honours or given == DEFAULTS[field].default
        for field, given in PARAMETERS[name].read(value).items()
        if field in DEFAULTS
    )


def check_given(tree: Tree, i: int, case: WrittenCase, campaign: WrittenCampaign, vocabulary: Vocabulary) -> None:
    """Check that each device of a case supports each value or excludes the parameter with `without`."""
    for dut in campaign.duts:
        if case.duts is not None and dut.name not in case.duts:
            continue
        for name, values in parameters_of(case, campaign).items():
            for j, value in enumerate(values):
                if name not in dut.without and not can_be_given(name, value, vocabulary.kinds[dut.kind]):
                    above: Place = ("cases", i) if name in case.parameters else ("defaults",)
                    raise not_given(tree, (*above, "parameters", name, j), value, dut)


def not_given(tree: Tree, place: Place, value: str, dut: WrittenDut) -> UsageFault:
    """Error for an unsupported value, with the remedy."""
    name = place[-2]
    return tree.fault(
        place,
        f"'{name}': found {shown(value)}, but '{dut.name}', a device of the kind '{dut.kind}', cannot be given it: "
        f"leave it out, or write 'without: [{name}]' at that device",
    )


def wire_of(dut: WrittenDut, ability: Ability) -> str:
    """The kind of wire to dl3gen; '' if it cannot be chosen."""
    return str(dut.options.get("wire") or (ability.choices.get("wire") or ("",))[0])


def not_reset(dut: WrittenDut, ability: Ability) -> str:
    """Why a device cannot be reset, with the remedy; '' if it can."""
    wire = wire_of(dut, ability)
    if wire in ability.resets_over:
        return ""
    where = f"'{dut.name}', a device of the kind '{dut.kind}'{f' over {wire}' if wire else ''}, cannot be reset"
    for other in ability.choices.get("wire", ()):
        if other in ability.resets_over:
            return f"{where}: give it 'options: {{wire: {other}}}', or leave the test out"
    return f"{where} from here: leave the test out, or use 'dl3 bench reset' with commands of your own"


def check_tests(tree: Tree, i: int, case: WrittenCase, campaign: WrittenCampaign, vocabulary: Vocabulary) -> None:
    """Check that each device of a case supports each test, and its wires each frame size."""
    for dut in (dut for dut in campaign.duts if case.duts is None or dut.name in case.duts):
        ability, tests = vocabulary.kinds[dut.kind], tests_of(case, campaign)
        if "reset" in tests and (sentence := not_reset(dut, ability)):
            place: Place = ("cases", i, "tests") if case.tests else ("defaults", "tests")
            raise tree.fault((*place, tests.index("reset")), f"'tests': found 'reset', but {sentence}")
        given = case.streams or campaign.defaults.streams  # dl3gen checks those, for example with a VLAN tag
        for j, frame in enumerate(() if given else frames_of(case, campaign)):
            if sentence := not_carried(dut, ability, frame):
                place = ("cases", i, "frames") if case.frames else ("defaults", "frames")
                raise tree.fault((*place, j), f"'frames': found {shown(frame)}, but {sentence}")


def not_carried(dut: WrittenDut, ability: Ability, frame: str) -> str:
    """Error for a frame that is too large for the wires to a device; '' if it is not."""
    mode = str(dut.options.get("mode", ""))
    most, whose = ability.most_in_mode.get(mode), f"'{dut.name}', a device of the kind '{dut.kind}'"
    if most and (not frame.isdigit() or int(frame) > most):
        return f"{whose} with 'mode: {mode}' takes sizes of up to {most} bytes, and no mixes: take such a size"
    if not frame.isdigit() or int(frame) <= ability.most_bytes:
        return ""
    return (
        f"the wires to {whose}, carry frames of up to {ability.most_bytes} bytes: leave it out, or measure the device "
        "between real ports as 'external'"
    )


def check_published(tree: Tree, i: int, case: WrittenCase, vocabulary: Vocabulary) -> None:
    """Check that each published case exists."""
    for j, name in enumerate(case.published):
        if name not in vocabulary.published:
            source = name.partition(" ")[0]
            near = [one for one in vocabulary.published if source in vocabulary.published and one.startswith(source)]
            known = near or [one for one in vocabulary.published if " " not in one]
            sentence = f"'published': found {shown(name)}, expected one of {', '.join(sorted(known))}"
            raise tree.fault(("cases", i, "published", j), sentence)
