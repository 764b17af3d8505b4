"""The browser of these tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"in CI the page must be looked at: there is no {CHROMIUM}")
        pytest.skip(f"there is no {CHROMIUM}; Debian's package chromium has it")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*sandbox, "--disable-dev-shm-usage"], timeout=WAIT_MS
        )
        try:
            yield started
        finally:
            started.close()
