"""Whoever has the link may see the page, and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.unit.live.conftest import LINK, TOKEN, page_of

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


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_shown_without_the_token(store: Path, address: str) -> None:
    assert page_of(store).get(address).status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "\u00e4"])
def test_a_wrong_token_opens_nothing_even_for_who_has_the_cookie(
    visit: Callable[..., TestClient], token: str
) -> None:
    assert visit().get("/", params={"token": token}).status_code == 403


def test_the_link_gives_a_cookie_and_leaves_no_token_in_the_address(store: Path) -> None:
    answer = page_of(store).get(LINK, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert cookie.startswith("tare-live-8273=")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8273", "127.0.0.1.evil.example", "", "[::1"])
def test_another_name_for_this_machine_is_refused_with_the_token_too(store: Path, host: str) -> None:
    assert page_of(store).get(LINK, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8273", "localhost:8273", "localhost", "localhost:9999"])
def test_the_machines_own_names_are_answered_by_any_port_as_through_a_tunnel(store: Path, host: str) -> None:
    assert page_of(store).get(LINK, headers={"host": host}, follow_redirects=False).status_code == 303


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
