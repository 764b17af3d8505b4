"""The conversation with an agent under faults: cuts, kills, leases, two tares on one host."""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Timer

import pytest
from tests.unit.sites.host_contract import until

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.sites import Output, Process
from tare.sites.layout import make_home
from tare.sites.ledger import Kind, noting
from tare.sites.local import LocalHost
from tare.sites.marks import MADE_BY
from tare.sites.process import alive, from_ident, identify, to_ident
from tare.sites.ssh.dialing import CommandDialer, Line, agent_program
from tare.sites.ssh.frames import DamagedStream, Decoder, Message, encoded
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Agent, Link

HERE = LocalHost()


@dataclass
class Wire:
    """A dialer whose wire can be cut for a while."""

    argv: tuple[str, ...]
    cut: bool = False
    lines: list[Line] = field(default_factory=list)

    def dial(self) -> Line:
        if self.cut:
            raise EnvironmentLacks("far cannot be reached: No route to host")
        self.lines.append(CommandDialer(self.argv).dial())
        return self.lines[-1]


@dataclass(frozen=True)
class Far:
    """A host over one link."""

    link: Link
    wire: Wire

    @property
    def host(self) -> SshHost:
        return SshHost(self.link)

    @property
    def ledger(self) -> AgentLedger:
        return AgentLedger(self.link)

    @property
    def agent(self) -> Process:
        return from_ident(self.link.agent.ident)

    def cut(self) -> None:
        self.wire.cut = True
        self.link.break_off()


Make = Callable[..., Far]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Links to agents of one home; a session of their own unless they share one."""
    made: list[Far] = []

    def far(session: str | None = None, lease_s: float = 20) -> Far:
        words = ("connect", "--session", session or f"s{len(made)}", "--home", str(tmp_path / "home"))
        wire = Wire((str(agent_program()), *words))
        made.append(Far(Link("far", wire, lease_s=lease_s), wire))
        return made[-1]

    yield far
    for each in made:
        each.wire.cut = False
        each.link.close()
    for each in made:
        if alive(HERE, each.agent):
            os.kill(each.agent.pid, signal.SIGKILL)


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(str(tmp_path / "out"), str(tmp_path / "err"))


def later(seconds: float, act: Callable[[], None]) -> None:
    Timer(seconds, act).start()


def test_a_program_goes_on_over_a_cut_and_is_run_once(make: Make, tmp_path: Path) -> None:
    far = make()
    later(0.2, far.link.break_off)
    done = far.host.run(["sh", "-c", f"echo ran >>{tmp_path}/runs; sleep 0.6; echo done"], timeout_s=60)
    assert done.text == "done\n"
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert len(far.wire.lines) == 2


def test_calls_wait_for_a_connection_that_comes_back(make: Make, tmp_path: Path) -> None:
    far = make()
    far.cut()

    def mend() -> None:
        far.wire.cut = False

    later(1.0, mend)
    far.host.put(b"content", str(tmp_path / "file"))
    assert far.host.read(str(tmp_path / "file")) == b"content"


def test_a_cut_for_good_raises_within_the_time_limit(make: Make) -> None:
    far = make()
    far.cut()
    with pytest.raises(TimedOut, match=r"far is unreachable, so `run` was not answered within 1 s: .*No route"):
        far.host.run(["true"], timeout_s=1)


def test_an_agent_that_is_left_alone_ends_all_it_started_and_itself(
    make: Make, output: Output, tmp_path: Path
) -> None:
    far = make(lease_s=3)
    work = tmp_path / "home" / "work" / "run"
    work.mkdir(parents=True)
    far.ledger.note(Kind.PATH, str(work), host="far")
    process = far.host.start(["sleep", "600"], output=output, announce=noting(far.ledger, far.host))
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, MADE_BY: to_ident(far.agent)})
    identity = identify(HERE, orphan.pid)
    assert identity is not None
    far.ledger.note(Kind.PROCESS, to_ident(identity), host="far")
    far.cut()
    until(lambda: not alive(HERE, far.agent))
    assert not alive(HERE, process)
    assert orphan.wait() == -signal.SIGTERM
    assert not work.exists()
    with pytest.raises(RunFailed, match="was unreachable for 3 s, and its agent has cleaned up"):
        far.host.read("/proc/version")
    assert "was unreachable for 3 s" in (far.host.lost_for_good() or "")
    assert not make().ledger.entries()


def test_a_host_that_may_come_back_is_waited_for(make: Make) -> None:
    far = make(lease_s=10)
    assert far.host.lost_for_good() is None
    far.cut()
    later(0.5, lambda: setattr(far.wire, "cut", False))
    assert far.host.lost_for_good() is None
    assert far.host.read("/proc/version")


def test_a_host_that_is_away_is_told_of_while_it_is_waited_for_and_when_it_is_back(make: Make) -> None:
    far, heard = make(lease_s=10), list[str]()

    def hear(text: str) -> None:
        heard.append(text)
        raise RuntimeError("whoever fails to hear it must not end the link")

    far.host.tell_losses(hear)
    far.link.break_off()
    assert far.host.read("/proc/version"), "a connection that is back at once is not told of"
    assert heard == []
    far.cut()
    until(lambda: bool(heard))
    assert heard == ["far is unreachable, waiting up to 10 s for it: far cannot be reached: No route to host"]
    far.wire.cut = False
    assert far.host.read("/proc/version")
    until(lambda: len(heard) > 1)
    assert heard[1].startswith("far is reachable again after ")


def test_words_from_its_tare_keep_an_agent_from_clearing_up(make: Make, output: Output) -> None:
    far = make(lease_s=8)
    process = far.host.start(["sleep", "600"], output=output)
    time.sleep(10)
    assert alive(HERE, process)


def test_what_an_agent_did_when_it_was_killed_fails_and_is_abandoned(make: Make, tmp_path: Path) -> None:
    far = make()
    far.ledger.note(Kind.PATH, str(tmp_path / "run"), host="far")
    far.ledger.note(Kind.PATH, str(tmp_path / "cache"), host="far", keep=True)
    killed = far.agent
    later(0.3, lambda: os.kill(killed.pid, signal.SIGKILL))
    with pytest.raises(RunFailed, match="the agent on far ended during a request and was restarted"):
        far.host.run(["sleep", "5"], timeout_s=60)
    assert far.agent != killed
    assert [(made.ident, made.owner) for made in far.ledger.abandoned()] == [(str(tmp_path / "run"), killed)]
    assert len(far.ledger.entries()) == 2


def test_what_was_asked_of_a_host_that_was_rebooted_fails_with_that_reason(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Played by what its new agent says: reads, too, which would be of another life of the host."""
    far = make()
    greeted = Link._greeted

    def after_a_boot(link: Link) -> tuple[Line, Agent]:
        line, agent = greeted(link)
        return line, replace(agent, ident=f"{agent.ident}0", boot_id="another")

    monkeypatch.setattr(Link, "_greeted", after_a_boot)
    later(0.3, far.link.break_off)
    with pytest.raises(RunFailed, match=r"^far was rebooted"):
        far.host.run(["sleep", "5"], timeout_s=60)
    assert far.host.run(["echo", "on"], timeout_s=60).text == "on\n"


def test_a_tare_that_resumes_finds_what_the_killed_one_left_cleared_up(make: Make, output: Output) -> None:
    first = make("study")
    process = first.host.start(["sleep", "600"], output=output, announce=noting(first.ledger, first.host))
    first.cut()
    second = make("study")
    assert second.agent == first.agent
    assert not alive(HERE, process)
    assert not second.ledger.entries()
    assert second.host.run(["echo", "on"], timeout_s=60).text == "on\n"


def test_what_is_held_back_never_begins_when_its_tare_is_lost(make: Make, output: Output, tmp_path: Path) -> None:
    far = make(lease_s=2)

    def announce(process: Process) -> None:
        far.cut()
        until(lambda: not alive(HERE, process))

    with pytest.raises(RunFailed):
        far.host.start(["touch", str(tmp_path / "began")], output=output, announce=announce)
    assert not (tmp_path / "began").exists()


def test_two_tares_on_one_host_leave_each_other_alone(make: Make, output: Output) -> None:
    one, other = make(), make()
    process = one.host.start(["sleep", "600"], output=output, announce=noting(one.ledger, one.host))
    assert [made.owner for made in other.ledger.entries()] == [one.agent]
    assert not other.ledger.abandoned()
    other.link.close()
    assert alive(HERE, process)
    until(lambda: not alive(HERE, other.agent))


def test_parting_ends_what_is_left(make: Make, output: Output) -> None:
    far = make()
    process = far.host.start(["sleep", "600"], output=output)
    agent = far.agent
    far.link.close()
    assert not alive(HERE, process)
    until(lambda: not alive(HERE, agent))
    with pytest.raises(RunFailed, match="the connection to far has been closed"):
        far.host.read("/proc/version")


def test_a_call_that_is_broken_off_ends_its_program(make: Make, tmp_path: Path) -> None:
    far = make()
    script = f"echo $$ >{tmp_path}/pid; exec sleep 600"
    later(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        far.host.run(["sh", "-c", script], timeout_s=60)
    until(lambda: identify(HERE, int((tmp_path / "pid").read_text())) is None)


def test_a_ledger_is_ordered_as_things_are_to_be_removed(make: Make) -> None:
    ledger = make().ledger
    for kind, ident in ((Kind.PATH, "/a/b"), (Kind.CONTAINER, "c"), (Kind.PATH, "/a/c"), (Kind.IMAGE, "i")):
        ledger.note(kind, ident, keep=True)
    assert [made.ident for made in ledger.entries()] == ["c", "/a/c", "/a/b", "i"]
    ledger.forget(Kind.PATH, "/a/c")
    assert [made.ident for made in ledger.entries()] == ["c", "/a/b", "i"]
    assert {made.host for made in ledger.entries()} == {"far"}


def test_what_an_agent_cannot_remove_stays_in_the_ledger_with_its_reason(make: Make, tmp_path: Path) -> None:
    lost = make(lease_s=1)
    place = tmp_path / "home" / "work" / "run"
    place.mkdir(parents=True)
    for kind, ident in ((Kind.PATH, str(place)), (Kind.PATH, "/usr"), (Kind.RULES, "ipvs:0123456789ab")):
        lost.ledger.note(kind, ident)
    agent = lost.agent
    lost.cut()
    until(lambda: not alive(HERE, agent))
    ledger, reason = make().ledger, "its agent could not remove it: "
    assert [entry.listed() for entry in ledger.abandoned()] == [
        f"rules ipvs:0123456789ab on far ({reason}it does not name rules that tare made, so it was left unchanged)",
        f"path /usr on far ({reason}it is not a path that tare makes, so it was left unchanged)",
    ]
    assert not place.exists()
    ledger.note(Kind.PATH, "/usr")
    assert [entry.why_left for entry in ledger.entries() if entry.ident == "/usr"] == [None]


def test_what_a_shell_says_before_the_agent_is_passed_over(tmp_path: Path) -> None:
    connect = shlex.join([str(agent_program()), "connect", "--session", "chatty", "--home", f"{tmp_path}/home"])
    link = Link("far", CommandDialer(("sh", "-c", f"echo welcome; echo news; exec {connect}")))
    assert SshHost(link).run(["echo", "on"], timeout_s=60).text == "on\n"
    link.close()


def test_a_command_that_is_no_agent_is_one_clear_failure() -> None:
    with pytest.raises(EnvironmentLacks, match="sh did not reach its agent: no agent here"):
        Link("far", CommandDialer(("sh", "-c", "echo no agent here >&2; exit 1")))


def test_a_home_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    make_home(tmp_path / "home")
    (tmp_path / "home" / "agent").mkdir(mode=0o777)
    argv = (str(agent_program()), "connect", "--session", "s", "--home", str(tmp_path / "home"))
    with pytest.raises(EnvironmentLacks, match="is not a directory that this user alone may enter"):
        Link("far", CommandDialer(argv))


def test_messages_come_back_from_frames_however_they_are_cut() -> None:
    messages = [Message(7, {"op": "put"}, b"x" * ((1 << 20) + 3)), Message(8, {"op": "ping"})]
    wire = b"".join(encoded(message) for message in messages)
    decoder = Decoder()
    found: list[Message] = []
    for start in range(0, len(wire), 65_537):
        found += decoder.feed(wire[start : start + 65_537])
    assert found == messages


@pytest.mark.parametrize(
    "head", [b"{", b"[]", b'{"data": "x"}', b'{"data": -1}', b'{"data": 1e12}', b"[" * 100_000]
)
def test_a_head_that_is_none_breaks_the_connection_only(head: bytes) -> None:
    """Found by attack: it ended tare with a traceback, or the thread for which tare waited for ever."""
    with pytest.raises(DamagedStream):
        Decoder().feed(struct.pack(">IQc", len(head) + 9, 1, b"H") + head)
