"""Reads records back: keeps all complete lines and reports the ones it skipped."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from dl3.model.campaign import Finished, Plan, Skipped
from dl3.model.fault import Fault, UsageFault
from dl3.model.files import read_bounded
from dl3.model.lab import LabRun
from dl3.model.results import BackToBack, Forwarding, FrameLoss, Idle, Proof, Recovery, Reset, Versus
from dl3.model.shaping import Shaping
from dl3.model.trial import Throughput, Trial
from dl3.record.journal import OF_SAMPLES

MOST_BYTES = 1 << 30
MOST_OF_START = 4096
KNOWN_MISTAKES = {
    "json_invalid": "invalid JSON",
    "union_tag_not_found": "'kind' is missing",
    "union_tag_invalid": "unknown 'kind'",
    "missing": "'{place}' is missing",
    "model_attributes_type": "not a JSON object",
    "model_type": "not a JSON object",
    "dict_type": "not a JSON object",
}
NAMED_LINES = 10  # maximum number of broken lines listed by number

OtherResult = FrameLoss | BackToBack | Recovery | Reset | Forwarding | Versus
AnyEntry = Trial | Throughput | OtherResult | Proof | Idle | Shaping | Plan | Finished | Skipped | LabRun
Entry = Annotated[AnyEntry, Field(discriminator="kind")]
ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Entry)


@dataclass(frozen=True)
class Record:
    """Contents of a record in file order, with one sentence for everything that was skipped."""

    path: Path
    trials: tuple[Trial, ...]
    results: tuple[Throughput, ...]
    others: tuple[OtherResult, ...]
    proofs: tuple[Proof, ...]
    plans: tuple[Plan, ...]  # more than one if the budget changed the plan during the run
    skipped: tuple[Skipped, ...]
    left_out: tuple[str, ...]
    finished: tuple[Finished, ...] = ()
    idles: tuple[Idle, ...] = ()
    lines: tuple[tuple[int, AnyEntry], ...] = ()  # all entries with their line numbers, in file order


def mistake(line: bytes) -> str:
    """Why a line is not a valid record entry, or ''."""
    try:
        ENTRY.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(word) for word in first["loc"])
        return KNOWN_MISTAKES.get(first["type"], "'{place}' is invalid").format(place=place)
    return ""


def written_by(content: bytes) -> str:
    """The command that wrote a file of dl3 that is not a record of trials, or ''."""
    first = content[:MOST_OF_START]
    if first.startswith(OF_SAMPLES):
        return "'dl3 bench onecore'"
    if first.startswith(b"{\n") and b'"at":' in first:
        return "'make bench BASE=REV'" if b'"base_commit":' in first else "'dl3 bench peers'"
    return ""


def refuse_other(path: Path, content: bytes) -> None:
    """UsageFault for a file written by a different dl3 command."""
    if program := written_by(content):
        raise UsageFault(
            f"{path} was written by {program}, which prints its own table; reports are made of the records of the other "
            "commands of 'dl3 bench'"
        )


def errors(path: Path, broken: dict[int, bytes], is_cut: bool, n_lines: int) -> Iterator[str]:
    """One sentence for a truncated last line, and one for all other broken lines."""
    if is_cut and n_lines in broken:
        size = len(broken.pop(n_lines))
        yield f"{path}:{n_lines}: ignored: the line is incomplete, cut off after {size} bytes"
    if not broken:
        return
    numbers = [str(number) for number in broken]
    more = f" and {len(numbers) - NAMED_LINES} more" if len(numbers) > NAMED_LINES else ""
    why = mistake(next(iter(broken.values())))
    if len(numbers) == 1:
        yield f"{path}:{numbers[0]}: ignored: {why}"
        return
    yield f"{path}: ignored lines {', '.join(numbers[:NAMED_LINES])}{more}; line {numbers[0]}: {why}"


def parse(path: Path, content: bytes) -> Record:
    """Parse the contents of a file. Pure; never fails."""
    is_cut = not content.endswith(b"\n")
    lines: list[tuple[int, AnyEntry]] = []
    broken: dict[int, bytes] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            lines.append((number, ENTRY.validate_json(line)))
        except ValidationError:
            broken[number] = line
    entries = [entry for _, entry in lines]
    return Record(
        path=path,
        trials=tuple(entry for entry in entries if isinstance(entry, Trial)),
        results=tuple(entry for entry in entries if isinstance(entry, Throughput)),
        others=tuple(entry for entry in entries if isinstance(entry, OtherResult)),
        proofs=tuple(entry for entry in entries if isinstance(entry, Proof)),
        plans=tuple(entry for entry in entries if isinstance(entry, Plan)),
        skipped=tuple(entry for entry in entries if isinstance(entry, Skipped)),
        finished=tuple(entry for entry in entries if isinstance(entry, Finished)),
        idles=tuple(entry for entry in entries if isinstance(entry, Idle)),
        left_out=tuple(errors(path, broken, is_cut, content.count(b"\n") + 1)),
        lines=tuple(lines),
    )


def read(path: Path) -> Record:
    """Read a record; Fault if the file cannot be read."""
    try:
        content = read_bounded(path, MOST_BYTES, "a record")
    except FileNotFoundError as error:
        raise UsageFault(f"{path}: no such file; expected a record written by 'dl3 bench'") from error
    except OSError as error:
        raise Fault(f"the record {path} cannot be read: {error.strerror}") from error
    refuse_other(path, content)
    return parse(path, content)
