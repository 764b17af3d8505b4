"""What other programs have on a machine, one of each kind: no fault and no clearing up may touch it."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.chaos.ground import OnTestHost
from tools.chaos.processes import text
from tools.chaos.session import Ground
from tools.chaos.tally import BrokenOff
from tools.lab import GROUPS

_NAME = "tare-canary"
"""Near to tare's own names: nothing may be found by those."""
_SLEEP, _HOSTS_SLEEP = "100000", "3600"
_FORMS: Mapping[str, Sequence[str]] = {
    "container": (
        "docker",
        "inspect",
        "--format",
        "{{.Id}} {{.Config.Labels}} {{.HostConfig.RestartPolicy.Name}}",
        _NAME,
    ),
    "volume": ("docker", "volume", "inspect", "--format", "{{.CreatedAt}} {{.Mountpoint}}", _NAME),
    "file in a volume": ("cat", f"/var/lib/docker/volumes/{_NAME}/_data/file"),
    "network": ("docker", "network", "inspect", "--format", "{{.Id}}", _NAME),
    "iptables rule": ("iptables", "-C", "OUTPUT", "-d", "192.0.2.7", "-j", "ACCEPT"),
    "nftables table": ("nft", "list", "table", "inet", "canary"),
    "network namespace": ("test", "-e", f"/run/netns/{_NAME}"),
    "file in /run": ("cat", f"/run/{_NAME}/file"),
}
_TABLES = "nft list tables | grep -v '^table ip6 nat$'; nft list table ip6 nat 2>/dev/null | grep -w chain"
_HEX = re.compile(r"[0-9a-f]{12,64}")


@dataclass
class Canaries:
    """Files, a link and a process of somebody else's; with `also`, what `extended` made beside them."""

    directory: Path
    also: Callable[[], Mapping[str, str]] = dict
    process: subprocess.Popen[bytes] = field(init=False)
    before: str = field(init=False)
    others: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.others = self.also()
        if lacking := missing(self.others):  # one that was never there would be the same after each fault
            raise BrokenOff(f"nothing was played, as canaries are missing: {', '.join(lacking)}")
        (self.directory / "tare").mkdir(parents=True)
        (self.directory / "tare" / "store.sqlite").write_bytes(b"not tare's")
        (self.directory / "link").symlink_to("tare")
        self.process = subprocess.Popen(["sleep", _SLEEP], start_new_session=True)
        self.before = self._listing()

    def _listing(self) -> str:
        paths = sorted(self.directory.rglob("*"))
        answers = [
            (str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, path.is_file() and path.read_bytes())
            for path in paths
        ]
        return hashlib.sha256(repr(answers).encode()).hexdigest()

    def problems(self) -> list[str]:
        """What was touched."""
        problems = [] if self.process.poll() is None else ["a process of somebody else's was ended"]
        if self._listing() != self.before:
            problems.append("files of somebody else's were changed")
        now = self.also()
        problems += [f"{what} of somebody else's was {self.others[what]!r} and is {now.get(what)!r}"
                     for what in self.others if now.get(what) != self.others[what]]  # fmt: skip
        return problems

    def end(self) -> None:
        """The process alone is not removed with its directory."""
        self.process.kill()
        self.process.wait()


def missing(answers: Mapping[str, str]) -> list[str]:
    """The kinds, of what `on_engine` returns, that are not there."""
    return [what for what, how in answers.items() if how != "True" and not how.startswith("0 ")]


def on_engine(ground: OnTestHost) -> Callable[[], Mapping[str, str]]:
    """Make one of each kind on a test host; what is returned tells how they are."""
    for words in _making(ground.place):
        ground.inside(words)
    ground.spared = ground.inside(["docker", "inspect", "--format", "{{.Id}}", _NAME]).stdout.strip()
    tops = [top for pattern in ("tare-hosts", "*/tare-hosts") for top in GROUPS.glob(pattern)]
    group = next(top / ground.host.name for top in sorted(tops) if (top / ground.host.name).is_dir()) / _NAME
    group.mkdir()
    script = 'echo $$ >"$1"; exec sleep "$2"'
    inside = subprocess.Popen(
        ["sh", "-c", script, "sh", str(group / "cgroup.procs"), _SLEEP], start_new_session=True
    )

    def answers() -> Mapping[str, str]:
        states = {what: _answer(ground, words) for what, words in _FORMS.items()}
        mounts = ground.inside(["cat", "/proc/self/mountinfo"]).stdout
        states["mount"] = str(f" {ground.place}/canary-mount " in mounts)
        device = f"{ground.place}/canary.img"
        states["loop device"] = str(device in ground.inside(["losetup", "--list", "--noheadings"]).stdout)
        states["process in a control group"] = str(str(inside.pid) in text(str(group / "cgroup.procs")).split())
        return states

    return answers


def _making(place: Path) -> Iterator[Sequence[str]]:
    pack = 'cd /tmp && mkdir -p root/bin && cp "$(command -v busybox)" root/bin/sleep && '
    pack += "tar -C root -c . | docker import - canary"
    yield ("sh", "-c", pack)
    yield ("docker", "run", "--detach", "--name", _NAME, "--restart", "always", "--network", "none", "canary",
           "/bin/sleep", _SLEEP)  # fmt: skip
    # The first container on the host's network has the engine make a mount that it keeps.
    yield ("docker", "run", "--rm", "--network", "host", "canary", "/bin/sleep", "0")
    yield ("docker", "volume", "create", _NAME)
    yield ("sh", "-c", f"echo canary >/var/lib/docker/volumes/{_NAME}/_data/file")
    yield ("docker", "network", "create", _NAME)
    yield ("iptables", "-A", "OUTPUT", "-d", "192.0.2.7", "-j", "ACCEPT")
    yield ("nft", "add", "table", "inet", "canary")
    yield ("ip", "netns", "add", _NAME)
    yield ("sh", "-c", f"mkdir -p /run/{_NAME} && echo canary >/run/{_NAME}/file")
    yield ("sh", "-c", f"mkdir -p {place}/canary-mount && mount -t tmpfs canary {place}/canary-mount")
    yield ("sh", "-c", f"truncate -s 1M {place}/canary.img && losetup --find {place}/canary.img")


def _answer(ground: Ground, words: Sequence[str]) -> str:
    done = ground.inside(words, check=False)
    return f"{done.returncode} {done.stdout.strip()}"


def footprint(ground: OnTestHost) -> Mapping[str, Counter[str]]:
    """All that there is on a test host, by kind; but for what is new with each start of an engine."""
    shown: Mapping[str, Sequence[str]] = {
        "container": ("docker", "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Names}}"),
        "volume": ("docker", "volume", "ls", "--quiet"),
        "network": ("docker", "network", "ls", "--format", "{{.Name}}"),
        # Once an engine ran without its proxy, it leaves its own rules for that; CNI's portmap an empty table.
        "rule": ("sh", "-c", "iptables-save | grep '^-A' | grep -v 'src-type LOCAL -j MASQ'; " + _TABLES),
        "network namespace": ("ls", "/run/netns"),
        "device": ("ls", "/sys/class/net"),
        "mount": ("awk", "{ print $5 }", "/proc/self/mountinfo"),
        "file": ("sh", "-c", f"ls -d /run/tare* /tmp/* /dev/shm/* {ground.place}/home/work/* 2>/dev/null"),
        "loop device": ("losetup", "--list", "--noheadings", "--output", "BACK-FILE"),
    }
    found = {kind: _lines(ground.inside(words, check=False).stdout) for kind, words in shown.items()}
    found["mount"] = own_mounts(found["mount"], text("/proc/self/mountinfo"), str(ground.place))
    found["loop device"] = Counter(
        {line: count for line, count in found["loop device"].items() if str(ground.place) in line}
    )
    names = Counter(_name(pid) for pid in ground.processes())
    found["process"] = Counter({name: count for name, count in names.items() if name not in ("", "nsenter")})
    groups = [
        str(path.relative_to(top / ground.host.name))
        for pattern in ("tare-hosts", "*/tare-hosts")
        for top in GROUPS.glob(pattern)
        for path in (top / ground.host.name).rglob("*/")
    ]
    found["control group"] = Counter(_HEX.sub("*", path) for path in groups)
    return found


def _name(pid: int) -> str:
    """Of a process; empty for the sleepers of a test host and of canaries, which an engine starts anew."""
    words = text(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")
    own = words[0].endswith("sleep") and words[-1] in (_SLEEP, _HOSTS_SLEEP)
    return "" if own else text(f"/proc/{pid}/comm").strip()


def own_mounts(inside: Counter[str], outside: str, place: str) -> Counter[str]:
    """The mounts that a test host has beside those of the namespace that it copied, and those below `place`.

    A mount of somebody else's, such as a pod's, goes from every copy when its directory is removed (detach_mounts,
    fs/namespace.c in the kernel), at any time. `outside`: this process's mountinfo, which is a copy too. Test hosts
    that others make and remove meanwhile are seen as well.
    """
    points = [point for line in outside.splitlines() for point in line.split()[4:5]]
    copied = _lines("\n".join(point for point in points if place not in point))
    return Counter(
        {line: count for line, count in (inside - copied).items()
         if "/run/netns/tare-" not in line and ("tare-chaos-" not in line or place in line)}
    )  # fmt: skip


def _lines(shown: str) -> Counter[str]:
    lines = (line for line in shown.splitlines() if line.strip() and "canary" not in line)
    return Counter(_HEX.sub("*", re.sub(r"\bveth\w+", "veth", line)) for line in lines)


def differences(before: Mapping[str, Counter[str]], now: Mapping[str, Counter[str]]) -> list[str]:
    """What is there that was not, and the reverse, a sentence each."""
    left = [f"{kind} left: {line}" for kind, lines in now.items() for line in lines - before[kind]]
    gone = [f"{kind} gone: {line}" for kind, lines in before.items() for line in lines - now[kind]]
    return [*left, *gone]
