"""The result file of a comparison."""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.bench.contest import PAIRS_PER_START, Effort, Found
from dl3.bench.sides import PairSettings
from dl3.model.comparison import Comparison
from dl3.model.fault import Fault
from dl3.record.facts import Facts
from dl3.record.journal import now


class Outcome(BaseModel):
    """All rows, with the conditions they depend on."""

    model_config = ConfigDict(frozen=True)

    at: str
    facts: Facts
    core: int
    burst: int
    descriptors: int
    memory_mib: int
    starts: int  # of both programs, by row
    pairs_per_start: int
    seconds_per_sample: float
    marches: dict[str, str]  # of both programs, by row
    rows: tuple[Comparison, ...]
    missing: dict[str, str]  # rows that could not be measured here, with the reason


def outcome(terms: PairSettings, effort: Effort, facts: Facts, found: Sequence[Found]) -> Outcome:
    """Combine the results, with the -march of each row."""
    return Outcome(
        at=now(),
        facts=facts,
        core=terms.core,
        burst=terms.burst,
        descriptors=terms.descriptors,
        memory_mib=terms.memory_mib,
        starts=effort.starts,
        pairs_per_start=PAIRS_PER_START,
        seconds_per_sample=effort.seconds,
        marches={one.row.name: one.march for one in found if one.comparison},
        rows=tuple(one.comparison for one in found if one.comparison),
        missing={one.row.name: one.reason for one in found if not one.comparison},
    )


def write(path: Path, result: Outcome) -> None:
    """Write the file atomically."""
    draft = path.with_suffix(".draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(result.model_dump(), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise Fault(f"{path} cannot be written: {error.strerror}") from error
