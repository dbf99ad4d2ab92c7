"""Watches some cores and programs from one moment to the next, on this machine or on another one."""

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

STATE = TypeAdapter(dict[str, Any])  # as watch.py prints it
RunPython = Callable[..., str]  # source, arguments -> what the script prints, or a Fault


def run_here(source: str, *arguments: str) -> str:
    """What a script prints; it may use nothing but Python's own library."""
    command = [sys.executable, "-I", "-", *arguments]
    try:
        return subprocess.run(
            command, input=source, capture_output=True, text=True, timeout=LONGEST_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        reported = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise Fault(
            f"the machine cannot be watched: {reported[-1] if reported else error}; look at dl3/host/watch.py"
        ) from error


@dataclass
class MachineWatch:
    """Between start and stop nothing of it runs; what happens is noted by the kernel itself."""

    run_python: RunPython = field(default=run_here)
    owner: int = field(default_factory=os.getpid)  # without this process nobody stops it; 0: it is on another machine
    _state: dict[str, Any] = field(default_factory=dict)

    def start(self, cores: Sequence[int], processes: Mapping[str, int]) -> None:
        """From now on; processes by name."""
        words = [word for name, pid in processes.items() for word in ("--program", f"{name}={pid}")]
        words += ["--owner", str(self.owner)]
        on = ",".join(str(core) for core in sorted(set(cores)))
        self._state = self.ask("begin", "--cores", on, *words)

    def stop(self) -> Evidence:
        """Until now: what the machine did. Where it does not tell, that is missing: a trial is good without it."""
        known = {key: value for key, value in self._state.items() if key != "before"}
        try:
            reported = self._state | self.ask("end", json.dumps(known))
            return evidence_of(Seen.model_validate_json(json.dumps(reported)))
        except ValidationError as error:
            return Evidence(missing=(not_understood(error),))
        except Fault as fault:
            return Evidence(missing=(str(fault),))

    def ask(self, *words: str) -> dict[str, Any]:
        """What watch.py says."""
        reported = self.run_python(SOURCE.read_text(encoding="utf-8"), *words)
        try:
            return STATE.validate_json(reported)
        except ValidationError as error:
            raise Fault(not_understood(error)) from error


def not_understood(error: ValidationError) -> str:
    """A sentence."""
    return f"what was seen of the machine is not understood: {error.errors()[0]['msg']}; look at dl3/host/watch.py"
