"""Why ssh(1) or sudo(8) did not let tare in, as one sentence with a way forward."""

from __future__ import annotations

from tare.errors import EnvironmentLacks
from tare.sites.file import SshSpec


def by_sudo(words: str) -> bool:
    """Whether sudo refused."""
    return "sudo:" in words or "sudo" in words.strip().rpartition("\n")[2]


def refusal(spec: SshSpec, code: int | None, words: str, sudoers: str | None = None) -> EnvironmentLacks:
    """Error from ssh's exit code and standard error. `sudoers`: the line that lets the agent start."""
    host = spec.display_name
    last = words.splitlines()[-1].strip() if words.strip() else f"ssh ended with {code}"
    by_hand = f"ssh {spec.ssh}" if spec.ssh_config is None else f"ssh -F {spec.ssh_config} {spec.ssh}"
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in words:
        return EnvironmentLacks(
            f"the host key of {host} has changed: the host was reinstalled, or another machine answers",
            hint="ask its administrator; if the change is intended, remove the old key with ssh-keygen -R",
        )
    if "host key is known" in words or "Host key verification failed" in words:
        return EnvironmentLacks(
            f"the host key of {host} is not known here",
            hint=f"log in once and compare the key: {by_hand}",
        )
    if "Permission denied" in words and "sudo" not in words and "agent" not in last:
        return EnvironmentLacks(
            f"{host} accepts none of this user's keys ({last})",
            hint=f"first make this command work without a prompt: {by_hand} true",
        )
    if by_sudo(words):
        line = "docs/guides/two-hosts.md has it" if sudoers is None else sudoers
        return EnvironmentLacks(
            f"sudo on {host} does not start tare's agent without a password ({last})",
            hint=f"as root, add this line to /etc/sudoers.d/tare there: {line}",
        )
    if code == 255 or code is None:
        return EnvironmentLacks(f"{host} cannot be reached: {last}", hint=f"does this work? {by_hand} true")
    return EnvironmentLacks(f"tare's agent did not start on {host}: {last.removeprefix('tare-agent: ')}")
