"""What a machine is told at its first start."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tare.sites.cloud.keys import new_key
from tare.sites.cloud.user_data import Login, end_of_life_script, user_data

WHEN = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)


def config(text: str) -> dict[str, object]:
    head, _, body = text.partition("\n")
    assert head == "#cloud-config"
    loaded: dict[str, object] = json.loads(body)
    return loaded


def test_host_key_and_login_key_are_handed_over() -> None:
    host, login = new_key(), new_key()
    given = config(user_data("s1-sut", host, Login("root", login.public), WHEN))
    assert given["ssh_keys"] == {"ed25519_private": host.private, "ed25519_public": f"{host.public} s1-sut"}
    assert given["ssh_authorized_keys"] == [f"{login.public} tare"]
    assert (given["ssh_deletekeys"], given["ssh_pwauth"], given["disable_root"]) == (True, False, False)
    assert login.private not in json.dumps(given)


def test_root_stays_closed_to_whoever_logs_in_as_another_user() -> None:
    assert config(user_data("h", new_key(), Login("admin", "k"), WHEN))["disable_root"] is True


def test_packages_are_installed_only_if_there_are_any() -> None:
    assert "packages" not in config(user_data("h", new_key(), Login("root", "k"), WHEN))
    given = config(user_data("h", new_key(), Login("root", "k"), WHEN, ["docker.io"]))
    assert (given["packages"], given["package_update"]) == (["docker.io"], True)


def test_it_fits_what_ec2_takes() -> None:
    text = user_data("s256-node64", new_key(), Login("root", new_key().public), WHEN, ["docker.io"] * 20)
    assert len(text) < 16 * 1024


def test_a_key_shows_nothing_of_its_private_half() -> None:
    key = new_key()
    assert key.private.splitlines()[1] not in repr(key)
    assert key.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")


def test_ssh_keygen_reads_the_keys(tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "key").write_text(key.private)
    (tmp_path / "key").chmod(0o600)
    argv = ["ssh-keygen", "-y", "-f", str(tmp_path / "key")]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.strip() == key.public


def units_in(place: Path, when: datetime) -> dict[str, str]:
    """What the script writes, with `place` as its root and a systemctl that only says what it was asked."""
    (place / "etc/systemd/system").mkdir(parents=True)
    (place / "bin").mkdir()
    (place / "bin/systemctl").write_text(f'#!/bin/sh\necho "$*" >>{place}/asked\n')
    (place / "bin/systemctl").chmod(0o755)
    script = end_of_life_script(when).replace("/etc/systemd", f"{place}/etc/systemd")
    env = {"PATH": f"{place}/bin:/usr/bin:/bin"}
    for _ in range(2):  # it comes at each start of the machine
        subprocess.run(["sh", "-eu", "-c", script], env=env, timeout=60, check=True)
    return {path.name: path.read_text() for path in (place / "etc/systemd/system").iterdir()}


def test_a_timer_powers_off_at_the_end_of_life_in_utc(tmp_path: Path) -> None:
    units = units_in(tmp_path, WHEN.astimezone(timezone(timedelta(hours=2))))
    assert "OnCalendar=2026-11-26 09:30:00 UTC\n" in units["tare-end-of-life.timer"]
    assert "Persistent=true\n" in units["tare-end-of-life.timer"]
    assert "ExecStart=/bin/systemctl poweroff\n" in units["tare-end-of-life.service"]
    assert (tmp_path / "asked").read_text().splitlines()[:3] == [
        "daemon-reload", "enable tare-end-of-life.timer", "start --no-block tare-end-of-life.timer",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    units_in(tmp_path, WHEN)
    argv = ["systemd-analyze", "verify", str(tmp_path / "etc/systemd/system/tare-end-of-life.timer")]
    checked = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert "tare-end-of-life" not in checked.stderr
    calendar = subprocess.run(
        ["systemd-analyze", "calendar", "2026-11-26 09:30:00 UTC"], capture_output=True, timeout=60, check=False
    )
    assert calendar.returncode == 0
