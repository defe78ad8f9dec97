"""A headless Chromium, driven by its DevTools protocol over a pipe.

Messages are JSON, each ended by a NUL: https://chromedevtools.github.io/devtools-protocol/. The browser reads from file
descriptor 3 and writes to 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Page", "open_page"]

_PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)
_PATIENCE = 60
"""Seconds until something that a page should show counts as missing."""

_CONTRASTS = r"""
  (selector) => {
    const part = (value) => value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
    const light = (color) => {
      const [r, g, b] = color.match(/[\d.]+/g).map((value) => part(value / 255));
      return .2126 * r + .7152 * g + .0722 * b;
    };
    const ground = (node) => {
      for (; node; node = node.parentElement) {
        const color = getComputedStyle(node).backgroundColor;
        if (!/, 0\)$/.test(color)) return color;
      }
      return 'rgb(255, 255, 255)';
    };
    return Array.from(document.querySelectorAll(selector)).map((node) => {
      const pair = [light(getComputedStyle(node).color), light(ground(node))];
      return (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
    });
  }
"""


class Page:
    """A page of the browser; what it asked for and what it complained of is kept."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._last = 0
        self._session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def visit(self, url: str, *, width: int, height: int = 900) -> None:
        """Load a page in a window of ``width`` CSS pixels, and wait until it is loaded."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._loaded = False
        self._call("Page.navigate", url=url)
        deadline = time.monotonic() + _PATIENCE
        while not self._loaded:
            assert time.monotonic() < deadline, f"{url} is not loaded after {_PATIENCE} s"
            self._take(self._receive())

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression, awaited if it is a promise."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Return the value of an expression as soon as it is true."""
        deadline = time.monotonic() + _PATIENCE
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, f"still not so after {_PATIENCE} s: {script}"
            time.sleep(0.1)
        return value

    def contrasts(self, selector: str) -> list[float]:
        """Return how much the text of each element stands out from its ground, from 1 to 21 (WCAG 2.2, 1.4.3)."""
        ratios: list[float] = self.run(f"({_CONTRASTS})({selector!r})")
        return ratios

    def allow_scripts(self, *, allowed: bool) -> None:
        """Let the pages that are loaded from now on run their scripts, or not; `run` works in either case."""
        self._call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def show_as(self, medium: str = "", **features: str) -> None:
        """Show pages as on a medium (``print``) or for users who prefer something (``prefers_color_scheme="dark"``)."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._call("Emulation.setEmulatedMedia", media=medium, features=wanted)

    def allow_clipboard(self, origin: str) -> None:
        """Let pages of an origin read and write the clipboard."""
        self._call(
            "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"], origin=origin
        )

    def press_tab(self) -> str:
        """Press the tabulator, and return what has the focus then: its element, and its address, id or label."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        label = "at.getAttribute('href') || at.id || at.getAttribute('aria-label') || ''"
        told: str = self.run(f"(at => `${{at.localName}} ${{{label}}}`.trim())(document.activeElement)")
        return told

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window, in CSS pixels from its upper left corner."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def heard(self) -> list[tuple[str, str]]:
        """Return the role and the name of all that a screen reader comes by, in order."""
        nodes = self._call("Accessibility.getFullAXTree")["nodes"]
        spoken = [node for node in nodes if not node.get("ignored")]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in spoken]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._last += 1
        message: dict[str, object] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while (answer := self._receive()).get("id") != self._last:
            assert time.monotonic() < deadline, f"the browser has not answered {method} for {_PATIENCE} s"
            self._take(answer)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"the browser has said nothing for {_PATIENCE} s"
            read = os.read(self._from, 1 << 16)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        received: dict[str, Any] = json.loads(message)
        return received

    def _take(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(str(parameters["entry"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in {"error", "warning", "assert"}:
            self.complaints.append(str(parameters["args"]))


@contextmanager
def open_page(profile: Path) -> Iterator[Page | None]:
    """Start a browser with a new profile and yield a page of it; None where no browser is installed."""
    if _PROGRAM is None:
        yield None
        return
    read_by_browser, to_browser = _pipe()
    from_browser, written_by_browser = _pipe()
    redirected = f'exec "$0" "$@" 3<&{read_by_browser} 4>&{written_by_browser}'
    command = ["bash", "-c", redirected, _PROGRAM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    ends = (read_by_browser, written_by_browser)
    browser = subprocess.Popen(command, pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for end in ends:
        os.close(end)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        browser.terminate()
        browser.wait(timeout=_PATIENCE)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are neither 3 nor 4, which the browser's ends become."""
    ends = os.pipe()
    far = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return far[0], far[1]
