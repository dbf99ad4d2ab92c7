"""Runs one trial. While frames are in flight it only sleeps, so as not to disturb the measurement."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dl3.control.generator import Results, Started, StreamResult
from dl3.control.replies import Drops, Reply
from dl3.model.fault import Fault
from dl3.model.trial import Trial
from dl3.record.journal import now
from dl3.trial.account import account_of, jitter_of, last_lost_s, merged, total
from dl3.trial.accounting import pacing_error, reasons
from dl3.trial.order import Order, Site
from dl3.trial.passage import Passage
from dl3.trial.seen import Watch, watching, with_evidence, with_longest_gaps
from dl3.trial.work import working

DELAY_S = 0.01  # until the first frame is due
POLL_S = 0.05
QUIET_S = 0.15  # quiet time after which no frame is considered to be in flight
LONGEST_DRAIN_S = 3.0
ACT_SHARE = 0.25  # fraction of the trial's duration after which an action on the device is started
LONGEST_OVERRUN_S = 10.0  # maximum time the generator may continue to send after the end of the trial

Sleep = Callable[[float], None]
Act = Callable[[], None]


@dataclass(frozen=True)
class Runner:
    """Runs trials with the programs of one site."""

    site: Site
    sleep: Sleep = field(default=time.sleep)
    watch: Watch | None = None  # observes the machine during the trial

    def run(self, order: Order, act: Act | None = None) -> Trial:
        """Warm up, send, wait for the last frame, read both sides. `act` is called after a quarter of the duration."""
        if order.warm_up_s:
            self._send(replace(order, frames=0), order.warm_up_s)
            self.drain()
        with working(self.site) as worked, watching(self.watch, self.site) as seen:
            before = self._dut_account()
            run = self._send(order, order.seconds, act)
            self.drain()
            after = self._dut_account()
        wanted = True if len(order.written()) > 1 else None  # the percentiles of a single stream are used as reported
        results = self.site.generator.ask(Results, "results", histograms=wanted, timeline=True)
        if results.run != run:
            raise Fault(
                f"run {run} of dl3gen was replaced by run {results.run}: another program uses the same generator; "
                "measure with one at a time"
            )
        passage = Passage.between(before, after, worked.round_s) if before and after else None
        trial = trial_of(self.site, order, results, passage)
        if trial.account.lost > 0 or trial.invalid or order.is_explained:
            return worked.beside(with_evidence(trial, self.site, results, seen.evidence))
        return worked.beside(with_longest_gaps(trial, self.site, results))

    def _dut_account(self) -> Drops | None:
        return self.site.dut.ask(Drops, "drops") if self.site.dut else None

    def _send(self, order: Order, seconds: float, act: Act | None = None) -> int:
        """Start a run, sleep until it ends, and return its number. On any exception the run is halted."""
        ends = {} if order.frames else {"seconds": round(seconds, 3)}
        started = self.site.generator.ask(Started, "send", streams=order.written(), delay=DELAY_S, **ends)
        try:
            self._sleep(DELAY_S + seconds, act)
            self._wait_for_the_end()
        except BaseException:
            with suppress(Fault):
                self.site.generator.ask(Reply, "halt")
            raise
        return started.run

    def _sleep(self, seconds: float, act: Act | None) -> None:
        if act:
            self.sleep(seconds * ACT_SHARE)
            began_s = time.monotonic()
            act()
            acted_s = time.monotonic() - began_s
            seconds = max(0.0, seconds * (1 - ACT_SHARE) - acted_s)
        self.sleep(seconds)

    def _wait_for_the_end(self) -> None:
        """Wait for the end of sending."""
        waited_s = 0.0
        while self.site.generator.ask(Results, "results").state == "sending":
            if waited_s > LONGEST_OVERRUN_S:
                raise Fault(
                    f"dl3gen was still sending {LONGEST_OVERRUN_S:.0f} s after the end of its run and was halted: restart it"
                )
            self.sleep(POLL_S)
            waited_s += POLL_S

    def drain(self) -> None:
        """Return once all frames are accounted for, or nothing was received for a while and dl3d has none in flight."""
        before, waited_s = None, 0.0
        while waited_s < LONGEST_DRAIN_S:
            results, account = self.site.generator.ask(Results, "results"), self._dut_account()
            came = sum(total(results.streams, field) for field in ("received", "duplicated", "corrupted", "too_old"))
            seen = (came, account.received if account else 0)
            is_closed = account is None or account.in_flight == 0
            if is_closed and (seen == before or has_all(results)):
                return
            before = seen
            self.sleep(QUIET_S)
            waited_s += QUIET_S


def has_all(results: Results) -> bool:
    """Whether every frame sent was received or is known to be lost."""
    fields = ("received", "refused", "corrupted")
    return sum(total(results.streams, field) for field in fields) == total(results.streams, "sent")


def evidence(results: Results) -> dict[str, object]:
    """Self-diagnostics of the generator, stored with the facts of the machine."""
    return {
        "tsc_offset_ns": results.tsc_offset_ns,
        "longest_lag_us": max((stream.longest_lag_us for stream in results.streams), default=0.0),
        "late_polls": sum(port.late_polls for port in results.ports),
        "longest_gap_us": max((worker.longest_gap_us for worker in results.workers), default=0.0),
        "foreign": sum(port.foreign for port in results.ports),
        "flows": total(results.streams, "flows"),
    }


def times_of(streams: Sequence[StreamResult]) -> dict[str, Any]:
    """Latency, jitter and interruption times, as fields of a trial."""
    jitter_mean, jitter_max = jitter_of([stream.jitter for stream in streams])
    return {
        "latency": merged([stream.latency for stream in streams]),
        "latency_from_sending": merged([stream.latency_from_sending for stream in streams]),
        "jitter_mean": jitter_mean,
        "jitter_max": jitter_max,
        "last_lost_s": last_lost_s(streams),
        "longest_silence_s": max((stream.longest_silence_us for stream in streams), default=0.0) / 1e6,
        "longest_outage_s": max((stream.longest_outage_us for stream in streams), default=0.0) / 1e6,
    }


def trial_of(site: Site, order: Order, results: Results, passage: Passage | None) -> Trial:
    """Build the trial record of a run."""
    n_frames = total(results.streams, "sent") + total(results.streams, "unstamped")
    found, account = reasons(results, passage, order.frames), account_of(results, passage)
    offered_pps = sum(stream.offered_pps for stream in results.streams)
    return Trial(
        at=now(),
        campaign=site.campaign,
        test=order.test,
        dut=site.dut_name,
        frame=order.frame,
        mean_bytes=account.sent_bytes / n_frames if n_frames else 0.0,
        asked_pps=order.asked_pps,
        offered_pps=offered_pps,
        received_pps=offered_pps * account.received / account.sent if account.sent else 0.0,
        seconds=results.seconds,
        pacing_error=0.0 if order.surplus else pacing_error(order.pps, offered_pps),
        invalid=tuple(reason.text for reason in found),
        is_behind=any(reason.is_behind for reason in found),
        account=account,
        **times_of(results.streams),
        load=order.load,
        job=order.job,
        streams=tuple(order.written()),
        facts={**site.facts, "run": evidence(results)},
    )
