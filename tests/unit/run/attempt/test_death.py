"""What is said of a server that ended by itself."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from tare.deployments import Deployment, Guest, Instance, Limits, Task
from tare.errors import EngineSilent, RunFailed, TimedOut
from tare.images import Image, ImageConfig
from tare.run.attempt.death import death_of, last_output, must_not_be_killed, oom_kills
from tare.sites import Output, Process
from tare.sites.fake import FakeHost


class Ended:
    """A deployment whose task has ended with a code, or that cannot tell."""

    def __init__(self, code: int | None, error: RunFailed | None = None) -> None:
        self.code = code
        self.error = error or TimedOut("it does not tell")

    def wait(self, instance: Instance, timeout_s: float) -> int:
        if self.code is None:
            raise self.error
        return self.code


def death(
    code: int | None,
    error: RunFailed | None = None,
    *,
    before: int | None = 3,
    now: int = 3,
    memory_bytes: int | None = None,
    boot: str = "boot",
) -> str:
    host = FakeHost(files={"/proc/vmstat": f"nr_free_pages 9\noom_kill {now}\n".encode()}, boot_id=boot)
    image = Image("tar:x", "0" * 64, "/", None, ImageConfig())
    task = Task("t", image, ("x",), Output("/o", "/e"), "tare/x", limits=Limits(memory_bytes=memory_bytes))
    instance = Instance(task, "fake", Process(1, 1, "boot"), None, "127.0.0.1", None)
    return death_of(host, cast("Deployment", cast("Any", Ended(code, error))), instance, before)


@pytest.mark.parametrize("code", [137, -9])
def test_a_kill_while_the_kernel_ran_out_of_memory_is_called_that(code: int) -> None:
    reason = death(code, now=4, memory_bytes=64 << 20)
    assert reason == "the kernel killed the server, out of memory (its limit is 64 MiB)"


def test_a_kill_by_somebody_else_is_not_put_down_to_memory() -> None:
    assert death(137) == "the server was ended by SIGKILL"
    assert death(137, before=None, now=4) == "the server was ended by SIGKILL"


def test_signals_and_exit_codes_are_named() -> None:
    assert death(139) == "the server was ended by SIGSEGV"
    assert death(-6) == "the server was ended by SIGABRT"
    assert death(1) == "the server ended with exit code 1"


def test_a_server_does_not_survive_its_host() -> None:
    assert death(None, boot="another") == "fake rebooted, which ended the server"


def test_what_cannot_be_known_is_left_out() -> None:
    assert death(None) == "the server ended"
    gone = EngineSilent("the engine on fake does not answer for t: no such file")
    assert death(None, gone) == "the engine on fake does not answer for t: no such file, and the server ended"
    assert oom_kills(FakeHost()) is None


@pytest.mark.parametrize(
    ("code", "now", "message"),
    [
        (137, 3, "the client t was ended by SIGKILL"),
        (-9, 4, "the kernel killed the client t, out of memory (it has no memory limit)"),
    ],
)
def test_a_client_that_was_killed_is_called_that_whatever_it_printed(code: int, now: int, message: str) -> None:
    host = FakeHost(files={"/proc/vmstat": f"oom_kill {now}\n".encode()})
    with pytest.raises(RunFailed, match=re.escape(message)):
        must_not_be_killed(host, _instance(), code, 3)


def test_a_client_that_ended_otherwise_is_judged_by_what_it_printed() -> None:
    for code in (0, 1, 139, -15):
        must_not_be_killed(FakeHost(), _instance(), code, 3)


def _instance() -> Instance:
    image = Image("tar:x", "0" * 64, "/", None, ImageConfig())
    task = Task("t", image, ("x",), Output("/o", "/e"), "tare/x")
    return Instance(task, "fake", Process(1, 1, "boot"), None, "127.0.0.1", None)


def death_inside(code: int | None, *, told: bytes = b"", now: int = 3) -> str:
    """Of a server in a virtual machine that told its end so."""
    files = {"/proc/vmstat": f"oom_kill {now}\n".encode(), "/run/t/status": told}
    image = Image("tar:x", "0" * 64, "/", None, ImageConfig())
    task = Task("t", image, ("x",), Output("/o", "/e"), "tare/x", limits=Limits(memory_bytes=64 << 20))
    guest = Guest("/run/t/line", "/run/t/line.py", 40, "/run/t/status")
    instance = Instance(task, "vm", Process(1, 1, "boot"), None, "127.0.0.1", None, guest=guest)
    deployment = cast("Deployment", cast("Any", Ended(code, RunFailed("the machine of t ended: Kernel panic"))))
    return death_of(FakeHost(files=files, boot_id="boot"), deployment, instance, 3)


def test_a_machines_own_kernel_may_have_killed_for_want_of_memory() -> None:
    reason = death_inside(-9, told=b'{"code": -9, "oom_kills": 1}\n')
    assert reason == "the virtual machine's kernel killed the server, out of memory (its limit is 64 MiB)"
    assert death_inside(-9, told=b'{"code": -9, "oom_kills": 0}\n') == "the server was ended by SIGKILL"
    assert death_inside(1, told=b'{"code": 1, "oom_kills": 2}\n') == "the server ended with exit code 1"


def test_a_machine_that_goes_before_its_task_is_told_with_its_last_output() -> None:
    assert death_inside(None) == "the machine of t ended: Kernel panic"
    assert death_inside(None, now=4).startswith("the kernel killed a process, out of memory, and the machine of t")


def test_mysql_gives_its_reason_above_that_it_gives_up() -> None:
    log = (
        "2026-11-24T21:42:39.511001Z 0 [ERROR] [MY-000067] [Server] unknown variable 'no_such=1'.\n"
        "2026-11-24T21:42:39.511010Z 0 [ERROR] [MY-013236] [Server] The designated data directory is unusable.\n"
        "2026-11-24T21:42:39.511018Z 0 [ERROR] [MY-010119] [Server] Aborting\n"
        "2026-11-24T21:42:41.654727Z 0 [System] [MY-015018] [Server] MySQL Server Initialization - end.\n"
    )
    reason = last_output(FakeHost(files={"/e": log.encode()}), Output("/o", "/e"))
    assert reason.endswith("[ERROR] [MY-000067] [Server] unknown variable 'no_such=1'.")


def test_a_jvm_that_crashed_says_what_by_above_where_to_report_it() -> None:
    log = (
        "INFO  [main] served\n#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"
        "#  SIGBUS (0x7) at pc=0x00007f0b9d0a3f2b, pid=7, tid=0x00007f0b7c1f8700\n#\n# JRE version: OpenJDK\n"
        "# If you would like to submit a bug report, please visit:\n#   http://bugreport.java.com/bugreport/crash.jsp\n#\n"
    )
    host = FakeHost(files={"/o": log.encode(), "/e": b"a warning\n"})
    reason = last_output(host, Output("/o", "/e"))
    assert reason == "SIGBUS (0x7) at pc=0x00007f0b9d0a3f2b, pid=7, tid=0x00007f0b7c1f8700"
