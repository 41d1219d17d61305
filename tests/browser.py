"""Chromium without a window, steered through two pipes by its DevTools protocol; skipped where it is not installed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, BinaryIO

import pytest

_COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(_COMMAND is None, reason="needs Chromium")
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--remote-debugging-pipe")  # fmt: skip
_LIMIT = 600.0  # seconds, after which a browser that says no more is stopped
_START = """
import os, sys
asked, said, *command = sys.argv[1:]
os.dup2(int(asked), 3), os.dup2(int(said), 4)  # where Chromium looks for its pipes
os.execv(command[0], command)
"""


class Browser:
    """One page of one browser, which other pages are loaded into."""

    def __init__(self, sent: BinaryIO, heard: BinaryIO) -> None:
        self._sent, self._heard = sent, heard
        self._count = 0
        self._loaded = False
        self._session: str | None = None
        self.said: list[str] = []  # on the console, and what the browser complains of
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._sent.write(json.dumps(message).encode() + b"\0")
        self._sent.flush()
        while (answer := self._message()).get("id") != self._count:
            self._note(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def show(self, page: Path, width: int, dark: bool = False, printed: bool = False) -> None:
        """Loads a file into a window of a width, of a reader who likes it dark, or on paper."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media="print" if printed else "screen", features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self._loaded = False
        self.ask("Page.navigate", url=page.as_uri())
        while not self._loaded:
            self._note(self._message())

    def run(self, script: str) -> Any:
        """What a script returns that runs in the page."""
        answer = self.ask("Runtime.evaluate", expression=f"(() => {{{script}}})()", returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _note(self, message: dict[str, Any]) -> None:
        match message.get("method"), message.get("params"):
            case "Page.loadEventFired", _:
                self._loaded = True
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded", said:
                self.said.append(json.dumps(said))
            case "Network.requestWillBeSent", {"request": {"url": url}} if not url.startswith(("file:", "data:")):
                self.said.append(f"asks for {url}")

    def _message(self) -> dict[str, Any]:
        read = bytearray()
        while (byte := self._heard.read(1)) != b"\0":
            assert byte, "the browser has ended"
            read += byte
        return json.loads(read)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser that lives as long as the block, and keeps its files in the folder."""
    assert _COMMAND is not None
    asked, sent = os.pipe()
    heard, said = os.pipe()
    there = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (asked, said)]  # out of the way of 3 and 4
    start = [sys.executable, "-c", _START, *map(str, there)]
    command = [*start, _COMMAND, *_OPTIONS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    with subprocess.Popen(command, pass_fds=there, stderr=subprocess.DEVNULL) as process:
        for end in (asked, said, *there):
            os.close(end)
        limit = Timer(_LIMIT, process.kill)
        limit.start()
        try:
            with open(sent, "wb") as pipe, open(heard, "rb") as answers:  # a browser whose pipes are closed ends
                yield Browser(pipe, answers)
        finally:
            limit.cancel()
