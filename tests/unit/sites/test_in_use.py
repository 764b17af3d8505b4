"""The lock that says that a tare is at work with a TARE_HOME."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests import preloaded

from tare.errors import EnvironmentLacks
from tare.sites import in_use as module
from tare.sites.in_use import exclusive_use, in_use, only_user
from tare.sites.layout import make_home

HOLD_SESSION = """
import sys, time
from tare.sites.in_use import only_user
with only_user("a study", sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""
HOLD = """
import sys, time
from pathlib import Path
from tare.sites.in_use import in_use
with in_use(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_several_may_use_a_home_and_none_cleans_it_meanwhile(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        in_use(home),
        in_use(home),
        pytest.raises(EnvironmentLacks, match=rf"a running tare \(process {os.getpid()}, {os.getpid()}\) is using"),
        exclusive_use(home),
    ):
        pass
    with exclusive_use(home):
        pass


def test_nothing_is_begun_while_a_home_is_cleaned(tmp_path: Path) -> None:
    with (
        exclusive_use(tmp_path),
        pytest.raises(EnvironmentLacks, match=r"is being cleaned by another tare \(process \d+\) .*repeat"),
        in_use(tmp_path),
    ):
        pass


def test_a_killed_tare_uses_nothing_any_more(tmp_path: Path) -> None:
    with preloaded.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentLacks, match=f"process {holder.pid}"), exclusive_use(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=60)
        with exclusive_use(tmp_path):
            pass


def test_a_home_that_is_not_there_is_not_made_by_cleaning_it(tmp_path: Path) -> None:
    with exclusive_use(tmp_path / "home"):
        pass
    assert not (tmp_path / "home").exists()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "in-use").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentLacks, match="cannot be opened"), in_use(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_second_tare_of_a_session_is_refused_until_the_first_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ENDING_S", 0.3)
    with preloaded.Popen([sys.executable, "-c", HOLD_SESSION, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with only_user("another study", f"{tmp_path} else"):
            pass
        with (
            pytest.raises(EnvironmentLacks, match=r"another tare is working for my study .*wait until it ends"),
            only_user("my study", str(tmp_path)),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=60)
    with only_user("my study", str(tmp_path)):
        pass


def test_a_tare_of_a_session_that_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    with preloaded.Popen([sys.executable, "-c", HOLD_SESSION, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        killer = threading.Timer(0.3, holder.kill)
        killer.start()
        with only_user("my study", str(tmp_path)):
            assert holder.wait(timeout=60) == -signal.SIGKILL
