"""What a machine lacks for a test: elsewhere than in CI that skips it."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def left_out(what: str) -> NoReturn:
    """`what`, and how it is had. In CI, which installs all of it, the test fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"in CI this is there: {what}")
    pytest.skip(what)
