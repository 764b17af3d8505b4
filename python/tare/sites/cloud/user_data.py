"""Configuration for cloud-init at a machine's first start: keys, end of life, packages.

The end of life is set by `bootcmd`, which runs first (https://docs.cloud-init.io, boot stages): packages that are
missing or take forever must not keep a machine alive. The timer is persistent, so a machine that was off at that
time powers off when it is started again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tare.sites.cloud.keys import SshKey

UNIT = "tare-end-of-life"
_PLACE = "/etc/systemd/system"
_SERVICE = """[Unit]
Description=End of life of this machine, as tare was asked for

[Service]
Type=oneshot
ExecStart=/bin/systemctl poweroff
"""
_TIMER = """[Unit]
Description=End of life of this machine, as tare was asked for

[Timer]
OnCalendar={when}
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
"""
_QUIET = (
    "systemctl mask --now apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service dnf-makecache.timer "
    "man-db.timer || true"
)
"""Timers that would otherwise run during a measurement."""


@dataclass(frozen=True)
class Login:
    """The user who may log in, and the public key."""

    user: str
    public: str


def user_data(
    hostname: str, host_key: SshKey, login: Login, end_of_life: datetime, packages: Sequence[str] = ()
) -> str:
    """A cloud-config in JSON, which is YAML. It contains a private key."""
    config: dict[str, object] = {
        "hostname": hostname,
        "bootcmd": [["sh", "-c", end_of_life_script(end_of_life)]],
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": host_key.private, "ed25519_public": f"{host_key.public} {hostname}"},
        "ssh_authorized_keys": [f"{login.public} tare"],
        "ssh_pwauth": False,
        "disable_root": login.user != "root",
        "runcmd": [["sh", "-c", _QUIET]],
    }
    if packages:
        config |= {"package_update": True, "packages": list(packages)}
    return "#cloud-config\n" + json.dumps(config, indent=1) + "\n"


def end_of_life_script(when: datetime) -> str:
    """Script that writes timer and service and starts the timer; running it at each boot changes nothing."""
    timer = _TIMER.format(when=when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
    return "\n".join((
        f"printf %s {shlex.quote(_SERVICE)} >{_PLACE}/{UNIT}.service",
        f"printf %s {shlex.quote(timer)} >{_PLACE}/{UNIT}.timer",
        "systemctl daemon-reload",
        f"systemctl enable {UNIT}.timer",
        f"systemctl start --no-block {UNIT}.timer",
    ))  # fmt: skip
