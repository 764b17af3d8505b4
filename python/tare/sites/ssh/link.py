"""The conversation with one agent: requests by ID, answered over whichever connection exists.

A broken connection is made anew while the agent's lease lasts, and unanswered requests are sent again: the agent
carries out no request twice. docs/reference/agent.md has the rules of both sides.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tare.errors import EnvironmentLacks, HostSilent, RunFailed, TareError, TimedOut
from tare.sites.ssh.dialing import Dialer, Line
from tare.sites.ssh.frames import DamagedStream, Decoder, Message, encoded

FORMAT = 1
LEASE_S = 120.0
"""How long an agent waits for its tare before it clears up."""
QUIET_S = 60.0
"""Limit of requests without a limit of their own: long enough for a connection that comes back."""
_GRACE_S = 5.0
"""Extra time for the agent's own answer that a program's time limit has passed."""
_LOOK_S = 0.1
_TELL_S = 5.0
"""A connection that is lost for longer is reported; with a short lease, after a quarter of it."""
_HELLO_S = 60.0  # an agent may first clear up after a dead tare
_BYE_S, _LATE_BYE_S = 60.0, 10.0
_PAUSES_S = (0.05, 0.2, 0.5, 1.0, 2.0)
_ONCE = frozenset({"run", "start", "release", "put", "put_whole", "echo"})
"""Requests that must not be sent again to an agent that was restarted meanwhile."""


@dataclass(frozen=True)
class Answer:
    """The result of a request."""

    fields: Mapping[str, Any]
    data: bytes


@dataclass(frozen=True)
class Request:
    """One of several requests that do not depend on each other."""

    op: str
    fields: Mapping[str, Any]
    data: bytes = b""


class Refused(Exception):
    """The agent answered that it could not. `errno`: the system's, if that is the reason."""

    def __init__(self, kind: str, what: str, errno: int | None) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.errno = errno


@dataclass
class _Pending:
    message: Message
    over: threading.Event = field(default_factory=threading.Event)
    answer: Message | None = None
    lost: str | None = None


@dataclass(frozen=True)
class Agent:
    """The agent that answered. `place`: the same for two names of one host. `home`: TARE_HOME there."""

    ident: str
    boot_id: str
    home: str
    uid: int
    place: str


class Link:
    """Can be used by several threads. `engine`: the socket of the host's container engine."""

    def __init__(
        self, name: str, dialer: Dialer, *, lease_s: float = LEASE_S, engine: str = "/var/run/docker.sock"
    ) -> None:
        self.name = name
        self._dialer = dialer
        self._lease_s = lease_s
        self._engine = engine
        self._epoch = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._next = secrets.randbits(48)  # so that answers to another tare's requests never match
        self._pending: dict[int, _Pending] = {}
        self._acks: list[int] = []
        self._line: Line | None = None
        self._closed = threading.Event()
        self._down_since: float | None = None
        self._why_down = ""
        self._given_up = False
        self._tell: Callable[[str], None] | None = None
        line, self.agent = self._greeted()
        self._line = line
        self._keeper = threading.Thread(target=self._keep, args=(line,), name=f"link to {name}", daemon=True)
        self._keeper.start()

    def ask(self, op: str, data: bytes = b"", *, timeout_s: float = QUIET_S, **fields: Any) -> Answer:
        """Send a request and return the answer. Raises `Refused`, and `TimedOut` or `HostSilent` if there is none.

        `timeout_s`: an answer some seconds later still counts while the connection is up.
        """
        (pending,) = self._sent([Request(op, fields, data)], timeout_s)
        return self._awaited(pending, timeout_s, timeout_s)

    def ask_all(self, requests: Sequence[Request], *, timeout_s: float = QUIET_S) -> list[Answer]:
        """Answers, in order, to requests that the agent may carry out at the same time, in one round trip.

        Raises as `ask` does, for the first that fails; the others are still carried out.
        """
        deadline = time.monotonic() + timeout_s
        sent = self._sent(requests, timeout_s)
        answers, failed = list[Answer](), None
        for number, pending in enumerate(sent):
            try:
                answers.append(self._awaited(pending, timeout_s, max(0.0, deadline - time.monotonic())))
            except (Refused, TareError) as error:
                failed = failed or error
            except BaseException:
                for left in sent[number + 1 :]:
                    self._drop(left)
                raise
        if failed is not None:
            raise failed
        return answers

    def _awaited(self, pending: _Pending, timeout_s: float, left_s: float) -> Answer:
        """Wait for an answer. `timeout_s`: the caller's time limit; `left_s`: its remaining part."""
        try:
            in_time = pending.over.wait(left_s) or (self._down_since is None and pending.over.wait(_GRACE_S))
        except BaseException:
            self._drop(pending)
            raise
        if not in_time:
            self._drop(pending)
            raise self._unanswered(pending.message.head["op"], timeout_s)
        if pending.lost is not None:
            raise HostSilent(pending.lost)
        assert pending.answer is not None  # noqa: S101 - for the type alone
        return _answer_of(pending.answer)

    def lost_for_good(self) -> str | None:
        """Why the host is lost, once its lease is over; `None` while the lease lasts.

        Waits while it is down: at most a lease.
        """
        while self._down_since is not None and not self._given_up and not self._closed.wait(_LOOK_S):
            pass
        return self._lost_words() if self._given_up else None

    def tell_losses(self, tell: Callable[[str], None]) -> None:
        """Report to `tell`, in a thread of the link, that the host is unreachable, and that it is back."""
        self._tell = tell

    def close(self, *, bye: bool = True) -> None:
        """End the conversation. `bye`: the agent clears up and ends at once; otherwise when its lease is over.

        A lost connection has some seconds to come back for that.
        """
        if bye and not self._closed.is_set():
            with contextlib.suppress(TareError, Refused):
                self.ask("bye", timeout_s=_BYE_S if self._down_since is None else _LATE_BYE_S)
        self._closed.set()
        if self._line is not None:
            self._line.break_off()
        self._keeper.join(timeout=_HELLO_S)

    def break_off(self) -> None:
        """Cut the connection as a network fault would; it is made anew."""
        if (line := self._line) is not None:
            line.break_off()

    def _sent(self, requests: Sequence[Request], timeout_s: float) -> list[_Pending]:
        """Send requests in one write.

        TCP may hold a second small write back until the first is acknowledged (RFC 896).
        """
        every = list[_Pending]()
        with self._lock:
            acks, self._acks = self._acks, []
            for request in requests:
                self._next += 1
                head = {"op": request.op, **request.fields, **({"acks": acks} if acks else {})}
                acks = []
                pending = _Pending(Message(self._next, head, request.data))
                every.append(pending)
                if self._given_up or self._closed.is_set():
                    pending.lost = self._lost_words()
                    pending.over.set()
                else:
                    self._pending[pending.message.id] = pending
        if (line := self._line) is not None:
            self._write(line, b"".join(encoded(pending.message) for pending in every), timeout_s)
        return every

    def _write(self, line: Line, content: bytes, limit_s: float) -> None:
        """Write everything, or end the connection: half a frame would corrupt all that follow."""
        deadline = time.monotonic() + limit_s
        if not self._writing.acquire(timeout=limit_s):
            line.break_off()
            return
        try:
            left = memoryview(content)
            while left:
                if not select.select([], [line.outward], [], max(0.0, deadline - time.monotonic()))[1]:
                    line.break_off()
                    return
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(line.outward, left) :]
        except (OSError, ValueError):  # broken: the keeper notices the end too
            line.break_off()
        finally:
            self._writing.release()

    def _drop(self, pending: _Pending) -> None:
        """Cancel a request that nobody waits for any more, so that its program ends."""
        number = pending.message.id
        with self._lock:
            self._pending.pop(number, None)
            self._acks.append(number)
            self._next += 1
            cancel = Message(self._next, {"op": "cancel", "of": number})
        if (line := self._line) is not None:
            self._write(line, encoded(cancel), _GRACE_S)

    def _unanswered(self, op: str, timeout_s: float) -> RunFailed:
        if self._down_since is not None:
            return TimedOut(f"{self.name} is unreachable, so `{op}` was not answered within {timeout_s:g} s: "
                            f"{self._why_down}")  # fmt: skip
        return TimedOut(f"the agent on {self.name} did not answer `{op}` within {timeout_s:g} s")

    def _lost_words(self) -> str:
        if self._closed.is_set():
            return f"the connection to {self.name} has been closed"
        return (
            f"{self.name} was unreachable for {self._lease_s:g} s, and its agent has cleaned up: {self._why_down}"
        )

    def _greeted(self) -> tuple[Line, Agent]:
        """Make a new connection on which the agent has identified itself."""
        line = self._dialer.dial()
        fields = {"format": FORMAT, "epoch": self._epoch, "lease_s": self._lease_s, "engine": self._engine}
        self._write(line, encoded(Message(0, {"op": "hello", **fields})), _HELLO_S)
        decoder, deadline = Decoder(), time.monotonic() + _HELLO_S
        try:
            while select.select([line.inward], [], [], max(0.0, deadline - time.monotonic()))[0]:
                if not (received := os.read(line.inward, 1 << 16)):
                    break
                for message in decoder.feed(received):
                    about = _answer_of(message).fields
                    agent = Agent(about["agent"], about["boot_id"], about["home"], about["uid"], about["place"])
                    return line, agent
        except (Refused, DamagedStream) as error:
            line.close()
            raise EnvironmentLacks(f"the agent on {self.name} cannot be reached: {error}") from error
        words = line.last_words()
        line.break_off()
        line.close()
        raise EnvironmentLacks(f"the agent on {self.name} does not answer: {words or 'the connection ended'}")

    def _keep(self, line: Line) -> None:
        """Listen while the connection is up, then make a new one."""
        while True:
            why = self._listen(line)
            self._line, self._down_since = None, time.monotonic()
            words = line.last_words()
            line.break_off()
            with self._writing:
                line.close()
            self._why_down = words.splitlines()[-1] if words else why
            again = self._again()
            if again is None:
                self._give_up()
                return
            line = again

    def _listen(self, line: Line) -> str:
        """Receive messages until the connection ends; return why it did."""
        decoder, heard = Decoder(), time.monotonic()
        pause_s = min(self._lease_s / 4, 15.0)
        while not self._closed.is_set():
            try:
                if select.select([line.inward], [], [], pause_s)[0]:
                    if not (received := os.read(line.inward, 1 << 18)):
                        return "the connection ended"
                    heard = time.monotonic()
                    for message in decoder.feed(received):
                        self._settle(message)
                    continue
            except (OSError, ValueError, DamagedStream) as error:
                return f"the connection broke: {error}"
            if time.monotonic() - heard > 3 * pause_s:
                return f"no data arrived for {3 * pause_s:g} s"
            self._write(line, encoded(Message(0, {"op": "ping"})), pause_s)
        return "it was closed"

    def _settle(self, message: Message) -> None:
        with self._lock:
            pending = self._pending.pop(message.id, None)
            if message.id:
                self._acks.append(message.id)
        if pending is not None:
            pending.answer = message
            pending.over.set()

    def _again(self) -> Line | None:
        """Make another connection; `None` when the lease or the conversation is over."""
        attempt, announced = 0, False
        down_since = self._down_since or time.monotonic()
        while not self._closed.is_set():
            down_s = time.monotonic() - down_since
            if down_s > self._lease_s:
                return None
            if not announced and down_s > min(_TELL_S, self._lease_s / 4):
                announced = True
                self._say(f"{self.name} is unreachable, waiting up to {self._lease_s:g} s for it: {self._why_down}")
            self._closed.wait(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
            attempt += 1
            if self._closed.is_set():
                return None
            try:
                line, agent = self._greeted()
            except TareError as error:
                self._why_down = error.what
                continue
            self._resume(line, agent)
            if announced:
                self._say(f"{self.name} is reachable again after {time.monotonic() - down_since:.0f} s")
            return line
        return None

    def _say(self, text: str) -> None:
        """Report a text; a failing listener must not end the link."""
        if (tell := self._tell) is not None:
            with contextlib.suppress(Exception):
                tell(text)

    def _resume(self, line: Line, agent: Agent) -> None:
        """Send unanswered requests again; to a restarted agent, only those that may be carried out twice.

        To a rebooted host, none: its answers would be about another boot than the requests.
        """
        anew, rebooted = agent.ident != self.agent.ident, agent.boot_id != self.agent.boot_id
        self.agent = agent
        why = "was rebooted" if rebooted else "ended during a request and was restarted"
        with self._lock:
            if anew:
                for number, pending in list(self._pending.items()):
                    if rebooted or pending.message.head["op"] in _ONCE:
                        pending.lost = f"{self.name} {why}" if rebooted else f"the agent on {self.name} {why}"
                        pending.over.set()
                        del self._pending[number]
            waiting = [pending.message for pending in self._pending.values()]
            self._line, self._down_since = line, None
        for message in waiting:
            self._write(line, encoded(message), QUIET_S)

    def _give_up(self) -> None:
        with self._lock:
            self._given_up = True
            for pending in self._pending.values():
                pending.lost = self._lost_words()
                pending.over.set()
            self._pending.clear()


def _answer_of(message: Message) -> Answer:
    if (error := message.head.get("error")) is not None:
        raise Refused(str(error.get("kind")), str(error.get("what", "")), error.get("errno"))
    return Answer(message.head.get("ok", {}), message.data)
