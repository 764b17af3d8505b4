"""Whoever has the link may see the page, and nobody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.unit.live.conftest import LINK, TOKEN, page_of, status

from tare.live.serving import open_listener

ADDRESSES = (
    "/",
    "/events",
    "/arm/0",
    "/charts.json",
    "/static/live.js",
    "/vega.js",
    "/report/report.html",
    "/knowledge",
    "/no-such-page",
)


def by_key(page: TestClient, name: str) -> str:
    """The address of a report, as the page leads to it."""
    answer = page.get(f"/report/{quote(name, safe='')}", follow_redirects=False)
    assert answer.status_code == 303
    return answer.headers["location"]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x", TOKEN[:-1], "\u00e4", ""])
def test_nothing_is_shown_without_the_token(store: Path, address: str, token: str | None) -> None:
    assert page_of(store, token=token).get(address).status_code == 403


@pytest.mark.parametrize("address", [f"/?token={TOKEN}", f"/#{TOKEN}", f"//{TOKEN}/", f"/x/{TOKEN}/"])
def test_the_token_opens_nothing_elsewhere_than_at_the_begin_of_the_path(store: Path, address: str) -> None:
    page = page_of(store, token=None)
    page.cookies.set("tare-live-8273", TOKEN)
    assert page.get(address).status_code in {403, 404}


def test_the_link_is_the_page_and_sets_no_cookie_which_browsers_send_to_other_ports(store: Path) -> None:
    listener = open_listener(0, TOKEN)
    with listener.socket:
        path = urlsplit(listener.link).path
    answer = page_of(store, token=None).get(path, follow_redirects=False)
    assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
    short = page_of(store, token=None).get(path.rstrip("/"), follow_redirects=False)
    assert (short.status_code, short.headers["location"]) == (303, path)


def test_all_links_of_the_pages_are_relative_so_that_none_leaves_the_token_behind(
    store: Path, visit: Callable[..., TestClient]
) -> None:
    (store / "report.html").write_text("a report")
    page = visit()
    texts = [page.get(address).text for address in ("/", "/knowledge")] + [str(status(page)[0]["reports"])]
    links = [link for text in texts for link in re.findall(r'(?:href|src)="([^"]*)"', text)]
    assert "report/report.html" in links
    assert [link for link in links if link.startswith(("/", "http"))] == []
    script = page.get("/static/live.js").text
    assert not re.search(r'(?:fetch|EventSource)\(["`]/', script)


def test_a_report_s_address_opens_that_report_and_nothing_else(
    store: Path, visit: Callable[..., TestClient]
) -> None:
    """It may tell its address to others: its own `referrer` goes before the header's."""
    for name in ("one.html", "two.html"):
        (store / name).write_text(name)
    address = by_key(visit(), "one.html")
    stranger = page_of(store, token=None)
    assert TOKEN not in address
    assert stranger.get(address).text == "one.html"
    key = address.split("/")[1]
    assert stranger.get(f"/{key}/report/two.html").status_code == 403
    assert {stranger.get(f"/{key}{each}").status_code for each in ADDRESSES} == {403}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8273", "127.0.0.1.evil.example", "", "[::1"])
def test_another_name_for_this_machine_is_refused_with_the_token_too(store: Path, host: str) -> None:
    assert page_of(store).get(LINK, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8273", "localhost:8273", "localhost", "localhost:9999"])
def test_the_machines_own_names_are_answered_by_any_port_as_through_a_tunnel(store: Path, host: str) -> None:
    assert page_of(store).get(LINK, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_asked_but_to_read(visit: Callable[..., TestClient], method: str) -> None:
    page = visit()
    assert {page.request(method, address).status_code for address in ADDRESSES} == {405}


@pytest.mark.parametrize("address", ["/", "/static/live.js", "/no-such-page"])
def test_every_answer_forbids_foreign_scripts_frames_and_referrers(
    visit: Callable[..., TestClient], address: str
) -> None:
    headers = visit().get(address).headers
    assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
