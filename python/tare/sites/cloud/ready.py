"""Wait until tare can log in to a new machine by its host key, and the machine has set itself up."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from tare.errors import EnvironmentLacks
from tare.sites.cloud.waits import Waits
from tare.sites.file import SshSpec
from tare.sites.ssh.dialing import ssh_argv
from tare.sites.ssh.refusals import refusal

Ready = Callable[[SshSpec, Waits, float], None]
"""Function of a host, how to wait, and the deadline in seconds since the epoch."""
_ASK = "cloud-init status --wait >/dev/null"
_DONE = (0, 2)
"""2: done, with warnings (https://docs.cloud-init.io, return codes)."""
_OF_SSH = 255
_ONCE_S = 20.0


def ready(spec: SshSpec, waits: Waits, deadline: float) -> None:
    """Return once cloud-init is done. Raises `EnvironmentLacks` if it fails or `deadline` passes."""
    while True:
        code, words = _cloud_init_status(spec)
        if code in _DONE:
            return
        if code not in (_OF_SSH, None):
            raise EnvironmentLacks(
                f"cloud-init did not set up {spec.display_name} (it ended with {code})",
                hint=f"read /var/log/cloud-init-output.log: ssh -F {spec.ssh_config} {spec.ssh}",
            )
        if waits.now() >= deadline:
            raise refusal(spec, code, words)
        waits.pause(waits.poll_s)


def _cloud_init_status(spec: SshSpec) -> tuple[int | None, str]:
    """Exit code and message; `None` if there is no exit code in time.

    The limit is short, as the call cannot be interrupted.
    """
    argv = [*ssh_argv(spec), "--", spec.ssh, _ASK]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_ONCE_S,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return None, "cloud-init has not finished there"
    return done.returncode, done.stderr.decode(errors="replace").strip()
