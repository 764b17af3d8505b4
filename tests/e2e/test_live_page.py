"""The live page in a real Chromium: it follows a run in another process, and comes back whatever is lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect
from tests import preloaded

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-the-tests"
WAIT_MS = 60_000
PHONE = {"width": 390, "height": 844}
REPORT = '<a href="data:application/yaml;base64,YTogMQo=" download="study.yaml">the study</a>'
OFFLINE = ("net::ERR_", "Failed to load resource")
"""What the browser itself says of a server that is not there, which is what the test is about."""


@contextmanager
def program(*words: str, stdin: int | None = None, stdout: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A program of these tests, ended afterwards."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}
    with preloaded.TextPopen(
        [sys.executable, *words], env=environ, text=True, stdin=stdin, stdout=stdout
    ) as started:
        try:
            yield started
        finally:
            started.send_signal(signal.SIGINT)
            try:
                started.wait(60)
            except subprocess.TimeoutExpired:
                started.kill()


@contextmanager
def fake_run(store: Path, work: Path) -> Iterator[Callable[[str], None]]:
    """A run in another process; called with a step it takes it."""
    script = str(ROOT / "tests" / "e2e" / "fake_run.py")
    with program(script, str(store), str(work), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        stdin, stdout = run.stdin, run.stdout
        assert stdout.readline() == "ok\n"

        def take(step: str) -> None:
            stdin.write(f"{step}\n")
            stdin.flush()
            assert stdout.readline() == "ok\n"

        yield take
        stdin.close()
        run.wait(60)


@contextmanager
def served(store: Path, port: int) -> Iterator[str]:
    """The page's link, once it answers."""
    with program(str(ROOT / "tests" / "e2e" / "page_server.py"), str(store), str(port), TOKEN):
        yield f"http://127.0.0.1:{port}/{TOKEN}/"


class Viewer:
    """A browser's window of its own, and all that its console complained of."""

    def __init__(self, browser: Browser, **options: object) -> None:
        self.context = browser.new_context(**options)  # type: ignore[arg-type]  # whatever the browser's context takes
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._alerted)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(each in message.text for each in OFFLINE):
            self.complaints.append(message.text)

    def _alerted(self, dialog: Dialog) -> None:
        self.complaints.append(f"a script ran: {dialog.message}")
        dialog.dismiss()

    def open(self, link: str) -> None:
        """Until the server is up."""
        self.page.goto(link, timeout=WAIT_MS)

    def shows(self, cells: dict[str, int]) -> None:
        """So many runs in each of these states."""
        for state, count in cells.items():
            expect(self.page.locator(f"#grid .cell.{state}")).to_have_count(count, timeout=WAIT_MS)

    def fits(self) -> None:
        """Nothing sticks out to the side."""
        width = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1]


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Until somebody listens there."""
    for _ in range(int(WAIT_MS / 100)):
        with socket.socket() as trial:
            trial.settimeout(0.1)
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the page's server did not come up")


@pytest.mark.timeout(900)
def test_two_viewers_follow_a_run_through_reload_and_a_restarted_server(
    browser: Browser, tmp_path: Path, port: int
) -> None:
    store, work = tmp_path / "store", tmp_path / "work"
    with ExitStack() as stack:
        take = stack.enter_context(fake_run(store, work))
        wide = Viewer(browser)
        phone = Viewer(browser, viewport=PHONE, color_scheme="dark")
        stack.callback(wide.context.close)
        stack.callback(phone.context.close)
        with served(store, port) as link:
            wait_for_port(port)
            for viewer in (wide, phone):
                viewer.open(link)
                assert viewer.context.cookies() == []
                viewer.shows({"p": 8, "g": 0})
            for step in ("start", "figures"):
                take(step)
            for viewer in (wide, phone):
                viewer.shows({"r": 1})
                expect(viewer.page.locator("#now .phases .current")).to_have_text("measure")
                expect(viewer.page.locator("#series svg path").first).to_be_attached()
                expect(viewer.page.locator("#log summary")).to_have_count(2)
            take("end")
            for step in ("start", "fail", "start", "end", "start"):
                take(step)
            for viewer in (wide, phone):
                viewer.shows({"g": 2, "f": 1, "r": 1})
                viewer.fits()
            wide.page.reload()
            wide.shows({"g": 2, "f": 1, "r": 1})
            wide.page.locator("button.arm").first.focus()
            wide.page.keyboard.press("Enter")
            expect(wide.page.locator("#arm tbody tr").first).to_be_visible()
        expect(wide.page.locator("#connection")).to_be_visible()
        take("end")
        with served(store, port):
            for viewer in (wide, phone):
                viewer.shows({"g": 3, "f": 1})
                expect(viewer.page.locator("#connection")).to_be_hidden()
            (store / "report.html").write_text(REPORT)
            wide.page.locator("#reports a").click(timeout=WAIT_MS)
            with wide.page.expect_download(timeout=WAIT_MS) as saved:
                wide.page.locator("a[download]").click()
            assert saved.value.suggested_filename == "study.yaml"
        assert wide.complaints == []
        assert phone.complaints == []
