"""A private dl3gen."""

import time

from dl3.control.generator import GeneratorPorts, Results, Started
from dl3.lab.program import Program
from dl3.model.fault import Fault

LONGEST_REST_S = 0.01


class Generator(Program):
    """dl3gen with a configuration text, in its own folder, which is removed when the object is closed."""

    NAME = "dl3gen"

    def send(self, **params: object) -> Started:
        """Start a run; `params` are those of the method."""
        return Started.model_validate(self.call("send", **params))

    def results(self) -> Results:
        """Results of the latest run so far."""
        return Results.model_validate(self.call("results"))

    def ports(self) -> GeneratorPorts:
        """Current state of the ports."""
        return GeneratorPorts.model_validate(self.call("ports"))

    def finish(self, stragglers_s: float = 0.1, timeout_s: float = 60.0) -> Results:
        """Wait until sending ends, and `stragglers_s` more for frames in flight; then return the results."""
        deadline = time.monotonic() + timeout_s
        while self.results().state == "sending":
            if time.monotonic() > deadline:
                raise Fault(f"dl3gen is still sending after {timeout_s:.0f} s")
            time.sleep(LONGEST_REST_S)
        time.sleep(stragglers_s)
        return self.results()
