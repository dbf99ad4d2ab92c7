"""Records on disk: one JSON line per trial, only ever appended."""

from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.model.fault import Fault
from dl3.record.facts import Facts


class Trial(BaseModel):
    """One sample of one program."""

    model_config = ConfigDict(frozen=True)

    at: str
    name: str
    command: list[str]
    environment: dict[str, str]
    core: int
    seconds: float
    core_share: float
    received_pps: float
    sent_pps: float
    cycles_per_packet: float
    facts: Facts


def now() -> str:
    """This moment, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def append(path: Path, trial: Trial) -> None:
    """Add one line."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(trial.model_dump_json() + "\n")
    except OSError as error:
        raise Fault(f"the record {path} cannot be written: {error.strerror}") from error
