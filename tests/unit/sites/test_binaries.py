"""Where tare's own programs are looked for."""

from __future__ import annotations

from tare.sites.binaries import LOAD, candidates


def test_what_setup_installs_in_a_checkout_comes_before_what_cargo_last_built() -> None:
    places = [path.split("/")[-3:] for path in candidates(LOAD)]
    assert places.index([".venv", "bin", "tare-load"]) < places.index(["target", "release", "tare-load"])
    assert places[-1] == ["target", "debug", "tare-load"]
