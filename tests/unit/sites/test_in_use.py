"""The lock that says that a tare is at work with a TARE_HOME."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks
from tare.sites.in_use import alone, in_use

HOLD = """
import sys, time
from pathlib import Path
from tare.sites.in_use import in_use
with in_use(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_several_may_use_a_home_and_none_cleans_it_meanwhile(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        in_use(home),
        in_use(home),
        pytest.raises(EnvironmentLacks, match=rf"a running tare \(process {os.getpid()}, {os.getpid()}\) is using"),
        alone(home),
    ):
        pass
    with alone(home):
        pass


def test_nothing_is_begun_while_a_home_is_cleaned(tmp_path: Path) -> None:
    with (
        alone(tmp_path),
        pytest.raises(EnvironmentLacks, match=r"is being cleaned by another tare \(process \d+\) .*repeat"),
        in_use(tmp_path),
    ):
        pass


def test_a_killed_tare_uses_nothing_any_more(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentLacks, match=f"process {holder.pid}"), alone(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=10)
        with alone(tmp_path):
            pass


def test_a_home_that_is_not_there_is_not_made_by_cleaning_it(tmp_path: Path) -> None:
    with alone(tmp_path / "home"):
        pass
    assert not (tmp_path / "home").exists()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in-use").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentLacks, match="cannot be opened"), in_use(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
