"""Debian's chromium without a window, driven through its DevTools protocol over two pipes: no package, no port."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """Return where the browser is: as CHROMIUM says, or one that the PATH has."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab, and everything that it has asked for or complained about."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb", 0)
        self._number, self._session, self._rest = 0, None, b""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._commands.write(
            json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, expression: str) -> Any:
        """Return what an expression of JavaScript gives; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, f"{expression}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Become a screen of so many pixels, with a finger if it is narrow."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale}
        self.call("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)

    def prefer(self, scheme: str) -> None:
        """Become dark, or light."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for; left out: data inside the page, and what its security policy held back."""
        failed = self._parameters("Network.loadingFailed")
        held = {each["requestId"] for each in failed if each.get("blockedReason") == "csp"}
        sent = [each for each in self._parameters("Network.requestWillBeSent") if each["requestId"] not in held]
        return [url for each in sent if not (url := each["request"]["url"]).startswith("data:")]

    @property
    def complaints(self) -> list[str]:
        """Uncaught exceptions, console errors and refusals of the page's security policy."""
        thrown = [str(each["exceptionDetails"]) for each in self._parameters("Runtime.exceptionThrown")]
        logged = [each["entry"]["text"] for each in self._parameters("Log.entryAdded")]
        printed = [str(each["args"]) for each in self._parameters("Runtime.consoleAPICalled")]
        return thrown + logged + printed

    def _parameters(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._answers.fileno(), 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def close(self) -> None:
        """Let go of the pipes, at which the browser ends."""
        self._commands.close()
        self._answers.close()


@contextmanager
def opened_browser(program: str, profile: Path) -> Iterator[Page]:
    """Start a browser with an empty profile; it ends with the block."""
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
    flags += ["--hide-scrollbars", "--disable-background-networking", f"--user-data-dir={profile}", "about:blank"]
    # The browser wants its pipes at descriptors 3 and 4.
    shell = f'exec 8<&{their_in} 9>&{their_out}; exec "$0" "$@" 3<&8 4>&9 8<&- 9>&-'
    process = subprocess.Popen(
        ["bash", "-c", shell, program, *flags],
        pass_fds=(their_in, their_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(their_in)
    os.close(their_out)
    page = None
    try:
        page = Page(our_out, our_in)
        yield page
    finally:
        if page is not None:
            page.close()
        process.terminate()
        process.wait(timeout=30)
