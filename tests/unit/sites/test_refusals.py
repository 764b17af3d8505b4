"""What OpenSSH and sudo say, turned into one sentence each. The words are theirs, of OpenSSH 9.2 and sudo 1.9."""

from __future__ import annotations

import pytest

from tare.sites.file import SshSpec
from tare.sites.ssh.refusals import refusal

SPEC = SshSpec(ssh="root@db", ssh_config="/etc/lab")
UNKNOWN = "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.\n"
CHANGED = (
    "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
    "Host key verification failed.\n"
)


@pytest.mark.parametrize(
    ("code", "words", "begin"),
    [
        (255, f"{UNKNOWN}Host key verification failed.\n", "the host key of db is not known here (log in once"),
        (255, CHANGED, "the host key of db has changed"),
        (255, "root@db: Permission denied (publickey).\n", "db accepts none of this user's keys (root@db"),
        (1, "sudo: a password is required\n", "sudo on db does not start tare's agent without a password (sudo: a"),
        (127, "sh: 1: exec: sudo: not found\n", "sudo on db does not start tare's agent without a password"),
        (255, "ssh: connect to host db port 22: No route to host\n", "db cannot be reached: ssh: connect to host"),
        (255, "", "db cannot be reached: ssh ended with 255 (does this work? ssh -F /etc/lab root@db true)"),
        (None, "no data arrived within 40 s", "db cannot be reached: no data arrived within 40 s"),
        (3, "tare-agent: /srv/agent cannot be made: Read-only file system\n",
         "tare's agent did not start on db: /srv/agent cannot be made: Read-only file system"),
        (126, "sh: /var/lib/tare/agent/tare-agent-0: Permission denied\n",
         "tare's agent did not start on db: sh: /var/lib/tare/agent/tare-agent-0: Permission denied"),
    ],
)  # fmt: skip
def test_each_refusal_is_one_sentence(code: int | None, words: str, begin: str) -> None:
    sentence = str(refusal(SPEC, code, words))
    assert sentence.startswith(begin)
    assert "\n" not in sentence


def test_sudo_s_refusal_has_the_line_for_sudoers() -> None:
    line = "bench ALL=(root) NOPASSWD: /home/bench/.local/share/tare/agent/tare-agent-*"
    sentence = str(refusal(SPEC, 1, "sudo: a password is required\n", line))
    assert sentence.endswith(f"(as root, add this line to /etc/sudoers.d/tare there: {line})")
