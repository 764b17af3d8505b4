"""Whatever an agent runs out of, and however it is asked to end, it ends only after everything was cleared."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.sites.host_contract import until

from tare.errors import RunFailed
from tare.sites import Output, Process
from tare.sites.layout import make_home
from tare.sites.ledger import Kind, noting
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link

HERE = LocalHost()
USER = 61234
"""Has no process: root's processes are not counted against a limit."""


@dataclass(frozen=True)
class Served:
    """An agent with a program that runs, and a directory in its ledger. `socket`: of the session."""

    link: Link
    program: Process
    place: Path
    socket: Path

    @property
    def agent(self) -> Process:
        return from_ident(self.link.agent.ident)

    def end(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.agent.pid, number)

    def check(self) -> None:
        """Wait for its end, and look whether everything has gone."""
        until(lambda: not alive(HERE, self.agent))
        assert not alive(HERE, self.program)
        assert not self.place.exists()
        assert not self.socket.exists()


Serve = Callable[..., Served]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tare-test-") as folder:
        yield Path(folder)


@pytest.fixture
def serve(folder: Path) -> Iterator[Serve]:
    made: list[Served] = []

    def served(prefix: tuple[str, ...] = (), script: str = "exec sleep 600", lease_s: float = 600) -> Served:
        argv = (*prefix, str(agent_program()), "connect", "--session", "s", "--home", str(folder / "home"))
        link = Link("far", CommandDialer(argv), lease_s=lease_s)
        host, ledger, place = SshHost(link), AgentLedger(link), folder / "home/work/run"
        ledger.note(Kind.PATH, str(place))
        host.run(["mkdir", "-p", f"{place}/{'deep/' * 40}"], timeout_s=60)
        output = Output(str(folder / "out"), str(folder / "err"))
        argv = ("sh", "-c", f"echo on; {script}")
        program = host.start(argv, output=output, announce=noting(ledger, host))
        until(lambda: (folder / "out").read_text() == "on\n")
        made.append(Served(link, program, place, folder / "home/agent/s/socket"))
        return made[-1]

    yield served
    for each in made:
        each.link.close()
        for process in (each.agent, each.program):
            if alive(HERE, process):
                os.kill(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_after_everything_was_cleared(serve: Serve, number: int) -> None:
    served = serve()
    served.end(number)
    served.check()


@pytest.fixture
def knock(folder: Path) -> Iterator[Callable[[str], None]]:
    """Makes connections that say nothing until the agent's log has these words."""
    with ExitStack() as stack:

        def until_logged(words: str) -> None:
            def one_more() -> bool:
                caller = stack.enter_context(socket.socket(socket.AF_UNIX))
                caller.setblocking(False)
                with suppress(BlockingIOError):  # enough wait to be accepted
                    caller.connect(str(folder / "home/agent/s/socket"))
                return words in (folder / "home/agent/s/log").read_text()

            until(one_more)

        yield until_logged


def test_no_more_files_to_accept_a_connection_and_still_all_is_cleared(
    serve: Serve, knock: Callable[[str], None]
) -> None:
    served = serve(("prlimit", "--nofile=128"))
    knock("a connection cannot be accepted: Too many open files")
    served.end()
    served.check()


def test_no_more_threads_to_serve_a_connection_and_still_all_is_cleared(
    serve: Serve, knock: Callable[[str], None], folder: Path
) -> None:
    prefix: tuple[str, ...] = ("prlimit", "--nproc=24")
    if os.geteuid() == 0:
        os.chown(folder, USER, USER)
        prefix = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *prefix)
    served = serve(prefix)
    knock("a connection cannot be accepted: Resource temporarily unavailable")
    with pytest.raises(RunFailed, match="no thread can be started: Resource temporarily unavailable"):
        SshHost(served.link).run(["true"], timeout_s=60)
    served.end()
    served.check()


def test_a_log_that_cannot_be_written_keeps_nothing(serve: Serve, folder: Path) -> None:
    make_home(folder / "home")
    place = folder / "home/agent/s"
    place.mkdir(parents=True, mode=0o700)
    place.parent.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as listener, Path("/dev/full").open("wb") as full:
        listener.bind(str(place / "socket"))
        listener.listen()
        argv = [str(agent_program()), "serve", str(folder / "home"), str(place)]
        with subprocess.Popen(argv, stdin=listener.fileno(), stdout=subprocess.DEVNULL, stderr=full) as daemon:
            served = serve()
            assert served.agent.pid == daemon.pid
            AgentLedger(served.link).note(Kind.PATH, "/usr")  # whose refusal is logged
            served.end()
            assert daemon.wait(timeout=60) == 0
    served.check()


def test_what_comes_while_it_clears_never_begins(serve: Serve, folder: Path) -> None:
    served = serve(script="trap '' TERM; while :; do sleep 1; done")  # so that clearing lasts two seconds
    served.end()
    host, output = SshHost(served.link), Output(str(folder / "out2"), str(folder / "err2"))
    begun: list[Process] = []

    def start_until_refused() -> None:
        while True:
            begun.append(host.start(["sleep", "600"], output=output))

    with pytest.raises(RunFailed, match="everything is being removed"):
        start_until_refused()
    assert alive(HERE, served.agent)
    served.check()
    assert not [process for process in begun if alive(HERE, process)]
