"""Observes cores and programs over an interval, on this machine or another one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dl3.host.diagnosis import evidence_of
from dl3.host.seen import Seen
from dl3.model.evidence import Evidence
from dl3.model.fault import Fault

SOURCE = Path(__file__).with_name("watch.py")
LONGEST_S = 60.0

STATE = TypeAdapter(dict[str, Any])  # as printed by watch.py
RunPython = Callable[..., str]  # source, arguments -> output of the script, or a Fault


def run_here(source: str, *arguments: str) -> str:
    """Run a script and return its output. It may only use Python's standard library."""
    command = [sys.executable, "-I", "-", *arguments]
    try:
        return subprocess.run(
            command, input=source, capture_output=True, text=True, timeout=LONGEST_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        reported = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise Fault(
            f"the machine cannot be observed: {reported[-1] if reported else error}; look at dl3/host/watch.py"
        ) from error


@dataclass
class MachineWatch:
    """Records with the kernel's trace ring; no code of ours runs between start and stop."""

    run_python: RunPython = field(default=run_here)
    owner: int = field(default_factory=os.getpid)  # orphaned when this process exits; 0: on another machine
    _state: dict[str, Any] = field(default_factory=dict)

    def start(self, cores: Sequence[int], processes: Mapping[str, int]) -> None:
        """Start recording; processes by name."""
        words = [word for name, pid in processes.items() for word in ("--program", f"{name}={pid}")]
        words += ["--owner", str(self.owner)]
        on = ",".join(str(core) for core in sorted(set(cores)))
        self._state = self.ask("begin", "--cores", on, *words)

    def seen(self) -> Seen:
        """Stop and return what was recorded."""
        known = {key: value for key, value in self._state.items() if key != "before"}
        reported = self._state | self.ask("end", json.dumps(known))
        try:
            return Seen.model_validate_json(json.dumps(reported))
        except ValidationError as error:
            raise Fault(not_understood(error)) from error

    def stop(self) -> Evidence:
        """Stop and return the evidence. Errors become missing evidence: a trial is valid without it."""
        try:
            return evidence_of(self.seen())
        except Fault as fault:
            return Evidence(missing=(str(fault),))

    def ask(self, *words: str) -> dict[str, Any]:
        """Run watch.py and parse its output."""
        reported = self.run_python(SOURCE.read_text(encoding="utf-8"), *words)
        try:
            return STATE.validate_json(reported)
        except ValidationError as error:
            raise Fault(not_understood(error)) from error


def not_understood(error: ValidationError) -> str:
    """Error message for invalid output of watch.py."""
    return f"the observations of the machine cannot be parsed: {error.errors()[0]['msg']}; look at dl3/host/watch.py"
