"""The static knowledge site in a real browser, opened as files."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tare.knowledge.claim import load_claims
from tare.knowledge.site.pages import write_site
from tare.sites.layout import Layout


def test_facets_choose_claims_and_the_address_keeps_the_choice(browser: Browser, tmp_path: Path) -> None:
    claims = load_claims()
    write_site(tmp_path / "site", claims, Layout(tmp_path / "home"))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
    page.goto((tmp_path / "site" / "index.html").as_uri())
    expect(page.locator("#shown")).to_have_text(f"{len(claims)} of {len(claims)} claims")
    page.select_option("select[name=database]", "redis")
    of_redis = sum(
        known.claim.context is not None and known.claim.context.database.name == "redis" for known in claims
    )
    expect(page.locator("tbody tr:visible")).to_have_count(of_redis)
    page.reload()
    expect(page.locator("#shown")).to_have_text(f"{of_redis} of {len(claims)} claims")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("tbody tr:visible a").first.click()
    expect(page.locator("h1")).to_contain_text("redis")
    assert faults == []
