"""The live page in a real Chromium beside others: a server on another port, a hostile report, a foreign name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.e2e.test_live_page import TOKEN, WAIT_MS, Viewer, port, served, wait_for_port
from tests.unit.live.conftest import fill, plan_of

from tare.store import resume_store

__all__ = ["port"]
REPORT = """<meta name="referrer" content="unsafe-url"><a id="out" href="http://127.0.0.1:{port}/out">out</a>
<img src="http://127.0.0.1:{port}/image"><script>document.title = "ran"</script>"""


@contextmanager
def neighbour() -> Iterator[tuple[int, list[str]]]:
    """A server on another port of this machine, and all that browsers have sent to it."""
    heard: list[str] = []

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p id=here>here</p>")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1], heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    plan = plan_of()
    with resume_store(tmp_path / "store", plan) as writer:
        fill(writer, plan, (0,))
    return tmp_path / "store"


@pytest.mark.timeout(600)
def test_a_server_on_another_port_gets_the_token_neither_from_the_page_nor_from_a_hostile_report(
    browser: Browser, store: Path, port: int
) -> None:
    viewer = Viewer(browser)
    with closing(viewer.context), neighbour() as (other, heard), served(store, port) as link:
        wait_for_port(port)
        (store / "report.html").write_text(REPORT.format(port=other))
        viewer.open(link)
        viewer.shows({"g": 1})
        viewer.page.goto(f"http://127.0.0.1:{other}/typed")
        viewer.page.go_back()
        viewer.page.reload()
        viewer.shows({"g": 1})
        viewer.page.locator("#reports a").click()
        viewer.page.wait_for_url("**/report/report.html")
        assert TOKEN not in viewer.page.url
        assert viewer.page.title() != "ran"
        viewer.page.locator("#out").click()
        expect(viewer.page.locator("#here")).to_be_visible(timeout=WAIT_MS)
    assert [each.split("\n")[0] for each in heard if "favicon" not in each] == ["/typed", "/out"]
    assert not [each for each in heard if TOKEN in each or "cookie:" in each.lower()]


@pytest.mark.timeout(600)
def test_a_foreign_name_that_leads_to_this_machine_sees_nothing(browser: Browser, store: Path, port: int) -> None:
    """DNS rebinding: the browser resolves a site's name to 127.0.0.1."""
    rebound = browser.browser_type.launch(
        executable_path="/usr/bin/chromium",
        args=["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
    )
    with closing(rebound), served(store, port):
        wait_for_port(port)
        page = rebound.new_page()
        for address in ("", f"{TOKEN}/", f"{TOKEN}/events"):
            answer = page.goto(f"http://evil.example:{port}/{address}", timeout=WAIT_MS)
            assert answer is not None
            assert (answer.status, "127.0.0.1 and localhost only" in answer.text()) == (421, True)
        answer = page.goto(f"http://127.0.0.1:{port}/{TOKEN}/", timeout=WAIT_MS)
        assert answer is not None
        assert answer.status == 200
