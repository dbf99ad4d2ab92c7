"""Drives Chromium over a pipe: opens pages, clicks, inspects, takes screenshots, and receives saved files."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from harness.browser import FLAGS

PATIENCE_S = 60.0
HIGH = 20  # lower descriptors are not used


def high_pipe() -> tuple[int, int]:
    """A pipe that leaves the descriptors free on which a browser expects it."""
    low = os.pipe()
    ends = (fcntl(low[0], F_DUPFD_CLOEXEC, HIGH), fcntl(low[1], F_DUPFD_CLOEXEC, HIGH))
    for end in low:
        os.close(end)
    return ends


class Chromium:
    """One page in one browser; uses the DevTools protocol over file descriptors 3 and 4."""

    def __init__(self, folder: Path, width: int = 1100, height: int = 1400) -> None:
        program = shutil.which("chromium")
        assert program, "there is no chromium: run tools/install-deps test"
        self.folder, self.width, self.height = folder, width, height
        (its_in, self.write_to), (self.read_from, its_out) = high_pipe(), high_pipe()
        command = [program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'chromium'}", "about:blank"]
        shell = ["bash", "-c", f'exec "$@" 3<&{its_in} 4>&{its_out}', "bash", *command]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(shell, pass_fds=(its_in, its_out), stdout=quiet, stderr=quiet)
        os.close(its_in)
        os.close(its_out)
        self.reply, self.number, self.session = b"", 0, ""

    def say(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its reply; events in between are dropped."""
        self.number += 1
        request: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write_to, json.dumps(request).encode() + b"\0")
        while True:
            received = self.report()
            if received.get("id") == self.number:
                assert "error" not in received, received
                result: dict[str, Any] = received["result"]
                return result

    def report(self) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.reply:
            more = os.read(self.read_from, 1 << 20)
            assert more, "chromium has gone away"
            self.reply += more
        message, _, self.reply = self.reply.partition(b"\0")
        received: dict[str, Any] = json.loads(message)
        return received

    def open(self, page: Path) -> None:
        """Show a page, and wait until it is loaded."""
        target = self.say("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.say("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.say("Page.enable")
        self.size(self.width, self.height)
        self.say("Page.navigate", url=page.as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def size(self, width: int, height: int) -> None:
        """The window's size in pixels."""
        self.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def see(self, expression: str) -> Any:
        """The value of an expression in the page; the page's own policy stays in force."""
        found = self.say("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = monotonic() + PATIENCE_S
        while not self.see(expression):
            assert monotonic() < end, f"never came true: {expression}"
            sleep(0.05)

    def scroll(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view; returns its centre in window pixels."""
        script = f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
        script += "e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
        x, y = self.see(script + "return [r.left + r.width / 2, r.top + r.height / 2]; })()")
        return float(x), float(y)

    def point_at(self, selector: str) -> None:
        """Move the pointer onto an element."""
        x, y = self.scroll(selector)
        self.say("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click with the mouse."""
        x, y = self.scroll(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.say("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def prefer(self, theme: str) -> None:
        """Emulate a light or dark system theme."""
        self.say("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def saved_by(self, selector: str) -> bytes:
        """Click a link that saves a file; returns its content."""
        place = self.folder / "saved"
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        self.say("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(place))
        self.click(selector)
        end = monotonic() + PATIENCE_S
        while not (found := [path for path in place.iterdir() if path.suffix in (".svg", ".csv")]):
            assert monotonic() < end, "nothing was saved"
            sleep(0.05)
        return found[0].read_bytes()

    def picture(self, to: Path, whole: bool = False) -> None:
        """A screenshot of the visible part, or of the whole page."""
        taken = self.say("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        to.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self, to: Path) -> None:
        """The page as PDF."""
        printed = self.say("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        to.write_bytes(base64.b64decode(printed["data"]))

    def close(self) -> None:
        """Stop the browser."""
        os.close(self.write_to)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_from)


@contextmanager
def chromium_at(page: Path, folder: Path, width: int = 1100) -> Iterator[Chromium]:
    """A browser that shows a page."""
    chromium = Chromium(folder, width)
    try:
        chromium.open(page)
        yield chromium
    finally:
        chromium.close()
