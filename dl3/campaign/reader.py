"""Reads a campaign file. An error is one sentence with file, line, the value found and what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dl3.campaign.lines import MOST_BYTES, Place, Tree, parse, shown
from dl3.campaign.parameters import PARAMETERS, Unfit
from dl3.campaign.sense import check_amount, check_case
from dl3.campaign.streams import stream_of
from dl3.campaign.vocabulary import Vocabulary, check_given, check_kind, check_published, check_tests
from dl3.campaign.written import A_FRAME, A_NAME, A_WORD, WrittenCampaign, WrittenCase, typed
from dl3.model.campaign import MOST_FRAME_BYTES
from dl3.model.fault import UsageFault
from dl3.model.files import read_bounded
from dl3.model.noun import Noun
from dl3.model.stream import MIXES

# What was expected, by pydantic's error type; {} are filled in from the error's context.
WANTED = {
    "missing": "it is missing",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a number",
    "string_type": "a word",
    "dict_type": "a map",
    "model_type": "a map",
    "tuple_type": "a list",
    "too_short": "at least {min_length}",
    "literal_error": "one of {expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}
FRAMES = f"a frame of 64 to 9622 bytes (with FCS), {', '.join(map(repr, MIXES))} or 'capture'"
PATTERNS = {
    A_FRAME: FRAMES,
    A_NAME: "1 to 41 letters, digits, '-', '_' or '.', starting with a letter or a digit",
    A_WORD: "1 to 80 characters without '|'",
}


class Campaign(Noun):
    """A campaign file, checked as far as possible without a machine."""

    path: Path
    source: str  # contents of the file
    written: WrittenCampaign


def wanted(error: Mapping[str, Any]) -> str:
    """What was expected instead."""
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS[error["ctx"]["pattern"]]
    known = WANTED.get(error["type"])
    return known.format(**error.get("ctx", {})) if known else str(error["msg"])


def name_of(place: Place) -> str:
    """The key of a place in the file."""
    keys = [word for word in place if isinstance(word, str)]
    return shown(keys[-1]) if keys else "the file"


def keys_at(place: Place) -> Sequence[str]:
    """The keys that are valid in a map at this place."""
    model: Any = WrittenCampaign
    for word in place:
        if isinstance(word, str):
            model = model.model_fields[word].annotation
        while not hasattr(model, "model_fields"):
            inner = [arg for arg in getattr(model, "__args__", ()) if arg not in (type(None), Ellipsis)]
            if not inner:
                return ()
            model = inner[0]
    return tuple(model.model_fields)


def usage_fault(tree: Tree, error: ValidationError) -> UsageFault:
    """The first mistake as a sentence; unknown keys are reported before missing ones."""
    errors: list[Any] = list(error.errors(include_url=False))
    deeper = [each["loc"][:i] for each in errors for i in range(len(each["loc"]))]
    errors = [each for each in errors if each["loc"] not in deeper]  # 'too short' also occurs for lists with mistakes
    first = min(errors, key=lambda each: (each["type"] != "extra_forbidden", tree.line(each["loc"])))
    place: Place = tuple(first["loc"])
    if first["type"] == "extra_forbidden":
        known = ", ".join(keys_at(place[:-1]))
        return tree.fault(place, f"the key {shown(place[-1])} is unknown: expected one of {known}")
    if first["type"] == "missing":
        whose = f" of {name_of(place[:-1])}" if len(place) > 1 else ""
        return tree.fault(place, f"the key {name_of(place)}{whose} is missing: add it")
    return tree.fault(place, f"{name_of(place)}: found {shown(first['input'])}, expected {wanted(first)}")


def twice(names: Sequence[str]) -> int | None:
    """The index of the first name that already occurred."""
    return next((i for i, name in enumerate(names) if name in names[:i]), None)


def check_duts(tree: Tree, written: WrittenCampaign, vocabulary: Vocabulary) -> None:
    """Check that kinds and the parameters in `without` exist."""
    for i, dut in enumerate(written.duts):
        check_kind(tree, i, dut, vocabulary)
        for j, name in enumerate(dut.without):
            if name not in PARAMETERS:
                raise unknown(tree, ("duts", i, "without", j), name)


def check_names(tree: Tree, written: WrittenCampaign) -> None:
    """Check that names of devices and cases are unique, and that cases refer to existing devices."""
    duts = [dut.name for dut in written.duts]
    if (i := twice(duts)) is not None:
        raise tree.fault(("duts", i), f"the device {shown(duts[i])} appears twice: give one another name")
    if (i := twice([case.key for case in written.cases])) is not None:
        key = written.cases[i].key
        raise tree.fault(("cases", i, "key"), f"the case {shown(key)} appears twice: give one another key")
    for i, case in enumerate(written.cases):
        for j, name in enumerate(case.duts or ()):
            if name not in duts:
                place = ("cases", i, "duts", j)
                raise tree.fault(
                    place, f"the device {shown(name)} is not among 'duts': expected one of {', '.join(duts)}"
                )


def unknown(tree: Tree, place: Place, name: str) -> UsageFault:
    """Error for an unknown parameter."""
    return tree.fault(place, f"the parameter {shown(name)} is unknown: expected one of {', '.join(PARAMETERS)}")


def check_parameters(tree: Tree, place: Place, parameters: Mapping[str, Sequence[str]]) -> None:
    """Check that all parameters and their values are valid."""
    for name, values in parameters.items():
        here: Place = (*place, "parameters", name)
        if name not in PARAMETERS:
            raise unknown(tree, here, name)
        check_values(tree, here, name, values)
        check_twice(tree, here, values)


def check_values(tree: Tree, place: Place, name: str, values: Sequence[str]) -> None:
    """Check that the values of a parameter are valid."""
    for i, value in enumerate(values):
        try:
            PARAMETERS[name].read(value)
        except Unfit as unfit:
            raise tree.fault((*place, i), f"'{name}': found {shown(value)}, expected {unfit}") from unfit


def check_twice(tree: Tree, place: Place, values: Sequence[str]) -> None:
    """Check that no value occurs twice."""
    if (i := twice(values)) is not None:
        raise tree.fault((*place, i), f"{name_of(place)}: {shown(values[i])} appears twice, leave one out")


def check_instead(tree: Tree, i: int, case: WrittenCase) -> None:
    """Check that alternatives are for values of the case, valid, and not measured already."""
    for name, of in case.instead.items():
        here: Place = ("cases", i, "instead", name)
        if name not in case.parameters:
            known = ", ".join(case.parameters) or "none"
            raise tree.fault(
                here, f"'instead': {shown(name)} is not among the case's parameters: expected one of {known}"
            )
        seen = list(case.parameters[name])
        for value, others in of.items():
            if value not in case.parameters[name]:
                known = ", ".join(case.parameters[name])
                raise tree.fault((*here, value), f"'instead': found {shown(value)}, expected one of {known}")
            check_values(tree, (*here, value), name, others)
            if (j := twice([*seen, *others])) is not None:
                other = [*seen, *others][j]
                raise tree.fault((*here, value), f"'instead': {shown(other)} is measured already, leave it out")
            seen += others


def with_alternatives(case: WrittenCase) -> WrittenCase:
    """The case with the alternatives among its values, to check them alike."""
    more = {name: tuple(one for others in of.values() for one in others) for name, of in case.instead.items()}
    parameters = {name: (*values, *more.get(name, ())) for name, values in case.parameters.items()}
    return case.model_copy(update={"parameters": parameters})


def check_frames(tree: Tree, place: Place, frames: Sequence[str] | None) -> None:
    """Check that frame sizes can be sent and are unique."""
    for i, frame in enumerate(frames or ()):
        if frame.isdigit() and not 64 <= int(frame) <= MOST_FRAME_BYTES:
            raise tree.fault((*place, "frames", i), f"'frames': found {shown(frame)}, expected {FRAMES}")
    check_twice(tree, (*place, "frames"), frames or ())


def check_streams(tree: Tree, place: Place, streams: Sequence[Mapping[str, object]]) -> None:
    """Check the keys of the streams that a measurement uses; dl3gen validates the rest."""
    for i, written in enumerate(streams):
        here: Place = (*place, "streams", i)
        stream_of({key: typed(value) for key, value in written.items()}, f"{tree.path}, line {tree.line(here)}")


def places(written: WrittenCampaign) -> Iterator[tuple[Place, Any]]:
    """All maps that have parameters and frames."""
    yield ("defaults",), written.defaults
    yield from ((("cases", i), case) for i, case in enumerate(written.cases))


def parsed(path: Path, content: bytes, vocabulary: Vocabulary) -> Campaign:
    """Parse the contents of a campaign file. Pure; raises only UsageFault."""
    tree = parse(path, content)
    if not isinstance(tree.value, dict):
        raise tree.fault((), f"found {shown(tree.value)}, expected a map with 'name', 'title', 'duts' and 'cases'")
    try:
        written = WrittenCampaign.model_validate(tree.value)
    except ValidationError as error:
        raise usage_fault(tree, error) from error
    check_duts(tree, written, vocabulary)
    check_names(tree, written)
    for place, shared in places(written):
        check_parameters(tree, place, shared.parameters)
        check_frames(tree, place, shared.frames)
        check_streams(tree, place, shared.streams or ())
    check_amount(tree, written)
    for i, case in enumerate(written.cases):
        check_instead(tree, i, case)
        check_case(tree, ("cases", i), with_alternatives(case), written)
        check_given(tree, i, with_alternatives(case), written, vocabulary)
        check_tests(tree, i, case, written, vocabulary)
        check_published(tree, i, case, vocabulary)
    return Campaign(path=path, source=content.decode("utf-8"), written=written)


def read(path: Path, vocabulary: Vocabulary) -> Campaign:
    """Read a campaign file."""
    try:
        return parsed(path, read_bounded(path, MOST_BYTES, "a campaign"), vocabulary)
    except OSError as error:
        raise UsageFault(f"the campaign {path} cannot be read: {error.strerror}") from error
