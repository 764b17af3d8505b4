"""A Slurm of one's own on this machine: several nodes, each a slurmd, with directories and ports of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.integration.lacking import left_out

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
_START_S, _CALL_S, _END_S = 30.0, 30.0, 20.0
_CONF = """\
ClusterName=tare-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={room}/munge/socket
StateSaveLocation={room}/state
SlurmdSpoolDir={room}/spool-%n
SlurmctldPidFile={room}/slurmctld.pid
SlurmdPidFile={room}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=0
SlurmdTimeout=10
GresTypes=site
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=4000 Gres=site:{name}:1\n"
)


@dataclass(frozen=True)
class Slurm:
    """`env`: by which Slurm's commands find it. A site is a resource of the node that bears its name."""

    room: Path
    env: Mapping[str, str]

    def call(self, *argv: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(
            argv, env={**self.env, **(env or {})}, cwd=cwd, capture_output=True, text=True, timeout=_CALL_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (argv, done.stderr)
        return done.stdout

    def jobs(self, state: str = "RUNNING") -> Mapping[str, str]:
        """Node → its job in that state."""
        lines = self.call("squeue", "--noheader", f"--states={state}", "--format=%i %N").splitlines()
        return {words[1]: words[0] for words in map(str.split, lines) if len(words) > 1}

    def node(self, name: str) -> str:
        """Its state, without the mark of one that does not answer."""
        return self.call("sinfo", "--noheader", f"--nodes={name}", "--format=%T").strip().rstrip("*")


@contextmanager
def running(room: Path, nodes: Sequence[str]) -> Iterator[Slurm]:
    """While this lasts; jobs end with it. Paths of sockets are short, so `room` should be."""
    path = f"{os.environ['PATH']}:{_PATH}"
    lacks = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if lacks:
        left_out(f"Slurm: scripts/packages.sh slow ({', '.join(lacks)})")
    conf = _configured(room, nodes)
    slurm = Slurm(room, {**os.environ, "PATH": path, "SLURM_CONF": str(conf)})
    commands = [
        ["munged", "--foreground", "--force", f"--key-file={room}/munge/key", f"--socket={room}/munge/socket",
         f"--pid-file={room}/munge/pid", f"--log-file={room}/munge/log", f"--seed-file={room}/munge/seed"],
        ["slurmctld", "-D", "-f", str(conf)],
        *(["slurmd", "-D", "-N", node, "-f", str(conf)] for node in nodes),
    ]  # fmt: skip
    with ExitStack() as stack:
        for argv in commands:
            stack.enter_context(_daemon(argv, slurm))
            if argv[0] == "munged":
                _until((room / "munge" / "socket").exists, room)
        stack.callback(_end_jobs, slurm)
        _until(lambda: _idle(slurm) == len(nodes), room)
        yield slurm


def _configured(room: Path, nodes: Sequence[str]) -> Path:
    for part in ("munge", "state"):
        (room / part).mkdir(parents=True)
    (room / "munge" / "key").write_bytes(secrets.token_bytes(1024))
    (room / "munge" / "key").chmod(0o600)
    host, user = socket.gethostname().partition(".")[0], subprocess.check_output(["id", "-un"], text=True).strip()
    controller, *ports = _free_ports(1 + len(nodes))
    rows = [_NODE.format(name=name, host=host, port=port) for name, port in zip(nodes, ports, strict=True)]
    conf = room / "slurm.conf"
    conf.write_text(_CONF.format(host=host, port=controller, user=user, room=room) + "".join(rows))
    gres = [f"NodeName={name} Name=site Type={name} Count=1\n" for name in nodes]
    (room / "gres.conf").write_text("".join(gres))
    return conf


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in taken]


@contextmanager
def _daemon(argv: Sequence[str], slurm: Slurm) -> Iterator[None]:
    with (slurm.room / f"{argv[0]}.log").open("ab") as log:
        process = subprocess.Popen(argv, env=slurm.env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _idle(slurm: Slurm) -> int:
    with suppress(AssertionError):
        return slurm.call("sinfo", "--noheader", "--Node", "--states=idle").count("\n")
    return 0


def _end_jobs(slurm: Slurm) -> None:
    """The jobs, and whatever is left of one whose node is down."""
    with suppress(AssertionError):
        slurm.call("scancel", f"--user={os.geteuid()}")
        _until(lambda: not slurm.call("squeue", "--noheader").strip(), slurm.room)
    mark = f"SLURM_CONF={slurm.env['SLURM_CONF']}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            of_job = (entry / "environ").read_bytes().split(b"\0")
            if mark in of_job and any(one.startswith(b"SLURM_JOB_ID=") for one in of_job):
                os.kill(int(entry.name), signal.SIGKILL)


def _until(condition: object, room: Path) -> None:
    assert callable(condition)
    end = time.monotonic() + _START_S
    while not condition():
        logs = {path.name: path.read_text()[-1500:] for path in room.glob("*.log")}
        assert time.monotonic() < end, logs
        time.sleep(0.1)
