"""The file that a comparison leaves behind."""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.bench.contest import Effort
from dl3.bench.contestants import Terms
from dl3.model.comparison import Comparison
from dl3.model.fault import Fault
from dl3.record.facts import Facts
from dl3.record.journal import now


class Outcome(BaseModel):
    """All rows, with what they depend on."""

    model_config = ConfigDict(frozen=True)

    at: str
    facts: Facts
    core: int
    burst: int
    descriptors: int
    memory_mib: int
    pairs: int
    seconds_per_sample: float
    marches: dict[str, str]  # of both programs, by row
    rows: tuple[Comparison, ...]


def outcome(terms: Terms, effort: Effort, facts: Facts, rows: Sequence[tuple[Comparison, str]]) -> Outcome:
    """Put together rows, each with its -march."""
    return Outcome(
        at=now(),
        facts=facts,
        core=terms.core,
        burst=terms.burst,
        descriptors=terms.descriptors,
        memory_mib=terms.memory_mib,
        pairs=effort.pairs,
        seconds_per_sample=effort.seconds,
        marches={row.name: march for row, march in rows},
        rows=tuple(row for row, _ in rows),
    )


def write(path: Path, result: Outcome) -> None:
    """Write it whole or not at all."""
    draft = path.with_suffix(".draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(result.model_dump(), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise Fault(f"{path} cannot be written: {error.strerror}") from error
