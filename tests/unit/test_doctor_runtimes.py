"""The doctor starts something with each engine and runtime, and says which work and why one does not."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tare.deployments.containerd.ctr import SOCKETS
from tare.doctor import Line, Verdict, runtimes
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.record.engine_facts import EngineFacts
from tare.sites import Completed
from tare.sites.engines import ENGINES, ROOTLESS, Service
from tare.sites.fake import Answer, FakeHost

SAID = b"tare-probe 0.1.0\n"
NONE = Completed((), 1)


def no_engine(name: str, timeout_s: float) -> Any:
    del timeout_s
    raise EnvironmentLacks(f"no engine `{name}`: nobody answers", hint="start it")


def every_line(host: FakeHost) -> Iterator[Line]:
    for name in ENGINES:
        yield from runtimes.named_engine_lines(host, name)
    yield runtimes.containerd_line(host)
    yield from runtimes.runtime_lines(host)


def lines(
    monkeypatch: pytest.MonkeyPatch, connect: Any = no_engine, maps: Any = None, **answers: Answer
) -> dict[str, Line]:
    monkeypatch.setattr(runtimes, "find", lambda _host, _binary: "/bin/tare-probe")
    monkeypatch.setattr(runtimes, "connect_to", connect)
    monkeypatch.setattr(runtimes, "engine_facts", lambda _client, _host: EngineFacts(engine_id_maps=maps))
    lacking: dict[tuple[str, ...], Answer] = {
        (name,): RunFailed(f"{name} is not there") for name in runtimes.RUNTIMES
    }
    lacking[("test", "-S")] = Completed((), 1)
    usual: dict[tuple[str, ...], Answer] = {("mktemp",): Completed((), 0, b"/tmp/x\n"), **lacking}
    host = FakeHost(answers={**usual, **{(name,): answer for name, answer in answers.items()}})
    host.files["/bin/tare-probe"] = b"\x7fELF"
    listed = {line.name: line for line in every_line(host)}
    assert ("rm", "-rf", "--one-file-system", "/tmp/x") in host.ran() or not answers
    return listed


def running(code: int, stdout: bytes = b"", stderr: bytes = b"") -> Answer:
    """A runtime that tells its version, and ends so when it is to run something."""

    def answer(argv: Sequence[str], _stdin: bytes) -> Completed:
        if "run" in argv:
            return Completed(tuple(argv), code, stdout, stderr)
        return Completed(tuple(argv), 0, f"{argv[0]} version 1.2\nspec: 1.0\n".encode())

    return answer


def test_what_ran_a_container_works_and_what_is_not_there_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = lines(monkeypatch, runc=running(0, SAID))
    assert listed["runtime runc"].found == "runc version 1.2: works, a container ran"
    assert listed["runtime youki"] == Line("runtime youki", Verdict.OK, "not installed")


def test_a_user_who_is_not_root_is_not_told_that_a_runtime_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost(answers={("id", "-u"): Completed((), 0, b"1000\n"), ("runc",): running(1)})
    line = runtimes._runtime(host, "runc", "/bin/tare-probe")
    assert (line.verdict, line.found) == (Verdict.MISSING, "runc version 1.2: cannot be tried without root")
    assert not any("run" in argv for argv in host.ran())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            running(1, stderr=b"x\ninvalid configuration: hybrid cgroups\n"),
            "does not work: invalid configuration: hybrid",
        ),
        (running(0), "does not work: it printed nothing"),
        (
            running(255, stderr=b"ERROR youki: PATH is not set\n\nStack backtrace:\n   0: <unknown>\n"),
            "does not work: ERROR youki: PATH is not set",
        ),
    ],
)
def test_one_that_starts_nothing_is_told_with_its_own_last_words(
    answer: Answer, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = lines(monkeypatch, crun=answer)["runtime crun"]
    assert line.verdict is Verdict.MISSING
    assert why in line.found


def test_one_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(argv: Sequence[str], _stdin: bytes) -> Completed:
        if "run" in argv:
            raise TimedOut("too long")
        return Completed(tuple(argv), 0, b"runsc version release-1\n")

    line = lines(monkeypatch, runsc=hangs)["runtime runsc"]
    assert line.verdict is Verdict.MISSING
    assert "did not end within 30 s" in line.found


def test_a_runtime_that_works_with_an_option_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(argv: Sequence[str], _stdin: bytes) -> Completed:
        if "run" in argv and "--network=host" not in argv:
            return Completed(tuple(argv), 128, b"", b"cannot run with network enabled in root network namespace\n")
        return running(0, SAID)(argv, b"")  # type: ignore[operator]  # it is a function

    line = lines(monkeypatch, runsc=answer)["runtime runsc"]
    assert line.verdict is Verdict.OK
    assert line.found.startswith("runsc version 1.2: works with --network=host, which the engine has to give it")
    assert line.found.endswith("; without: cannot run with network enabled in root network namespace")


class Engine:
    """Takes an image and starts what is in it; `said`: what its container says."""

    def __init__(self, said: bytes, told: str = '{"status":"sha256:1"}\n') -> None:
        self._said, self._told = said, told
        self.removed: list[str] = []
        self.api = self.containers = self.images = self

    def version(self) -> dict[str, str]:
        return {"Version": "4.3.1"}

    def import_image_from_data(self, packed: bytes) -> str:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            (entry,) = tar.getmembers()
            assert (entry.name, entry.mode) == ("tare-probe", 0o755)
        return self._told

    def create(self, _image: str, **_given: object) -> Engine:
        return self

    def start(self) -> None:
        """Nothing to be done."""

    def wait(self, timeout: float) -> dict[str, int]:
        del timeout
        return {"StatusCode": 0}

    def logs(self, *, stdout: bool, stderr: bool) -> bytes:
        assert stdout is not stderr
        return self._said if stdout else b""

    def remove(self, *what: str, **how: object) -> None:
        self.removed += what or ["container"]

    def close(self) -> None:
        """Nothing to be done."""


def test_an_engine_works_when_a_container_ran_in_it_and_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(SAID)

    def connect(name: str, timeout_s: float) -> Any:
        return engine if name == "podman" else no_engine(name, timeout_s)

    listed = lines(monkeypatch, connect)
    assert listed["engine podman"] == Line("engine podman", Verdict.OK, "4.3.1: works, a container ran")
    assert engine.removed == ["container", "sha256:1"]
    assert listed["engine docker"].verdict is Verdict.MISSING
    assert (listed["engine docker"].found, listed["engine docker"].advice) == (
        "no engine `docker`: nobody answers",
        "start it",
    )


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (Engine(b""), "a container started, but printed"),
        (Engine(SAID, '{"error":"full"}\n'), "cannot load the image"),
    ],
)
def test_an_engine_in_which_nothing_ran_does_not_work(
    engine: Engine, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = lines(monkeypatch, lambda _name, timeout_s: engine)["engine podman"]
    assert line.verdict is Verdict.MISSING
    assert told in line.found


def test_without_a_program_to_start_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "find", lambda _host, _binary: None)
    lines = list(every_line(FakeHost()))
    assert [line.name for line in lines] == [*(f"engine {name}" for name in ENGINES), "containerd", "runtimes"]
    assert {line.found for line in lines} == {"cannot be tried: there is no tare-probe to start"}


def test_the_bundle_runs_the_program_apart_from_the_host() -> None:
    document = json.loads(json.dumps(runtimes.bundle("x")))
    assert document["process"]["env"] == ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    assert document["process"]["args"] == ["/tare-probe", "--version"]
    assert {each["type"] for each in document["linux"]["namespaces"]} == {"pid", "network", "ipc", "uts", "mount"}


@pytest.mark.parametrize(
    ("answer", "verdict", "found"),
    [
        (Completed((), 0, SAID), Verdict.OK, "works, a container ran without an engine"),
        (Completed((), 1, b"", b"ctr: failed to dial\n"), Verdict.MISSING, "does not work: ctr: failed to dial"),
        (
            RunFailed("ctr cannot be run on fake: No such file"),
            Verdict.MISSING,
            "cannot be tried: ctr cannot be run",
        ),
    ],
)
def test_containerd_works_when_its_client_ran_a_container_of_which_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, verdict: Verdict, found: str
) -> None:
    monkeypatch.setattr(runtimes, "find", lambda _host, _binary: "/bin/tare-probe")
    place = SOCKETS[1]
    host = FakeHost(
        answers={
            ("test", "-S"): NONE,
            ("test", "-S", place): Completed((), 0),
            ("mktemp",): Completed((), 0, b"/tmp/x\n"),
            ("ctr",): answer,
        }
    )
    line = runtimes.containerd_line(host)
    assert line.verdict is verdict
    assert line.found.startswith(f"{place}: {found}")
    assert host.ran()[-1] == ("rm", "-rf", "--one-file-system", "/tmp/x")
    if isinstance(answer, Completed):
        assert host.ran()[-2][-3:-1] == ("namespace", "remove")


def test_a_users_engine_without_numbers_for_others_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = {kind: [{"container_id": 0, "host_id": 1000, "size": 1}] for kind in ("uidmap", "gidmap")}
    line = lines(monkeypatch, lambda _name, timeout_s: Engine(SAID), maps)["engine podman-rootless"]
    assert line.verdict is Verdict.MISSING
    assert line.found.startswith("4.3.1: a container ran, and the user of rootless Podman has no range of ids in")


@pytest.mark.parametrize(
    ("user", "ran"),
    [
        ("1001", ("pasta", "--config-net", "--", "true")),
        ("0", ("nsenter", "--mount=/proc/328/ns/mnt", "setpriv", "--reuid=1001", "--regid=1001", "--clear-groups")),
    ],
)
def test_pasta_is_started_as_the_user_of_rootless_podman(
    monkeypatch: pytest.MonkeyPatch, user: str, ran: tuple[str, ...]
) -> None:
    """At a socket of systemd's the service is the user's systemd, whose namespaces that user may not enter."""
    monkeypatch.setattr(runtimes, "service_at", lambda _address: Service(328, 1001, 1001))
    host = FakeHost(answers={("id", "-u"): Completed((), 0, f"{user}\n".encode())})
    assert runtimes.pasta_line(host).found == "works, a program ran behind it"
    assert host.ran()[-1][: len(ran)] == ran


@pytest.mark.parametrize(
    ("user", "verdict", "found"),
    [
        ("0", Verdict.OK, "5.8.6: works, a container ran"),
        ("1001", Verdict.MISSING, "5.8.6: a container ran, but tare needs root to set its limits"),
    ],
)
def test_a_user_is_told_that_tare_sets_limits_of_rootless_podman_as_root(
    monkeypatch: pytest.MonkeyPatch, user: str, verdict: Verdict, found: str
) -> None:
    monkeypatch.setattr(runtimes, "connect_to", lambda _name, timeout_s: Versioned())
    monkeypatch.setattr(runtimes, "engine_facts", lambda _client, _host: EngineFacts())
    monkeypatch.setattr(runtimes, "_service_ceilings", lambda _host: {})
    monkeypatch.setattr(runtimes, "_in_engine", lambda *_, **__: SAID.decode())
    host = FakeHost(answers={("id", "-u"): Completed((), 0, f"{user}\n".encode())})
    line = runtimes._engine(host, ROOTLESS, "/bin/tare-probe")
    assert (line.verdict, line.found) == (verdict, found)


class Versioned:
    def version(self) -> dict[str, str]:
        return {"Version": "5.8.6"}

    def close(self) -> None:
        pass
