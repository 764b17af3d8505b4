"""What every kind of host does: derive a class whose name begins with `Test` and say how a host is made.

These run on the machine tare runs on and through an agent alike, so that deployments cannot tell them apart.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.errors import RunFailed, TimedOut
from tare.sites import Host, Output, Process
from tare.sites.process import alive, identify

LONG_FILE = os.urandom(1 << 20) * 9


def until(met: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for(path: Path) -> str:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text()


class HostContract:
    """The host's files are this machine's, so that the tests can look."""

    @pytest.fixture
    def output(self, tmp_path: Path) -> Output:
        return Output(str(tmp_path / "out"), str(tmp_path / "err"))

    def test_run_hands_back_code_and_both_outputs(self, host: Host) -> None:
        done = host.run(["sh", "-c", "cat; echo oops >&2; exit 3"], timeout_s=60, stdin=b"hello", check=False)
        assert (done.code, done.stdout, done.stderr) == (3, b"hello", b"oops\n")
        assert done.argv == ("sh", "-c", "cat; echo oops >&2; exit 3")

    def test_run_carries_any_bytes_in_both_directions(self, host: Host) -> None:
        assert host.run(["cat"], timeout_s=60, stdin=LONG_FILE).stdout == LONG_FILE

    def test_a_signal_is_a_negative_code(self, host: Host) -> None:
        assert host.run(["sh", "-c", "kill -TERM $$"], timeout_s=60, check=False).code == -15

    def test_run_raises_with_the_last_line_when_checked(self, host: Host) -> None:
        with pytest.raises(RunFailed, match=f"sh -c ended with 4 on {host.name}: second"):
            host.run(["sh", "-c", "echo first >&2; echo second >&2; exit 4"], timeout_s=60)

    def test_run_of_a_missing_program_is_one_clear_failure(self, host: Host) -> None:
        with pytest.raises(RunFailed, match=rf"no-such-program cannot be run on {host.name}: No such file"):
            host.run(["no-such-program"], timeout_s=60)

    def test_run_gives_exactly_the_environment_it_was_given(self, host: Host) -> None:
        assert host.run(["/usr/bin/env"], timeout_s=60, env={"ONLY": "this"}).text == "ONLY=this\n"

    def test_timeout_kills_the_whole_process_group(self, host: Host, tmp_path: Path) -> None:
        child = tmp_path / "child"
        with pytest.raises(TimedOut, match=rf"sh -c did not end within 0\.5 s on {host.name} and was killed"):
            host.run(["sh", "-c", f"sleep 600 & echo $! >{child}; wait"], timeout_s=0.5)
        until(lambda: identify(host, int(child.read_text())) is None)

    def test_timeout_holds_when_a_descendant_left_the_group_with_the_pipes(
        self, host: Host, tmp_path: Path
    ) -> None:
        child = tmp_path / "child"
        with pytest.raises(TimedOut):
            host.run(["sh", "-c", f"setsid sh -c 'echo $$ >{child}; exec sleep 600' & wait"], timeout_s=0.5)
        host.run(["kill", child.read_text().strip()], timeout_s=60)  # it outlived the call

    def test_links_are_read_alone_and_in_directories(self, host: Host, tmp_path: Path) -> None:
        held = tmp_path / "held"
        (held / "below").mkdir(parents=True)
        (held / "file").write_text("no link")
        for link in (tmp_path / "alone", held / "a b", held / "below" / "unread"):
            link.symlink_to("two\nlines of socket:[7]")
        (tmp_path / "directory").symlink_to(held)
        wanted = [str(tmp_path / name) for name in ("alone", "held", "directory", "missing")]
        target = "two\nlines of socket:[7]"
        assert host.links(wanted) == {wanted[0]: target, f"{held}/a b": target, wanted[2]: str(held)}

    def test_links_of_a_process_are_what_it_holds(self, host: Host, tmp_path: Path) -> None:
        with (tmp_path / "open").open("w") as file:
            own = f"/proc/{os.getpid()}"
            links = host.links([f"{own}/fd", f"{own}/ns/net", "/proc/0/fd"])
            assert links[f"{own}/fd/{file.fileno()}"] == str(tmp_path / "open")
        assert links[f"{own}/ns/net"] == os.readlink(f"{own}/ns/net")  # noqa: PTH115 - no path

    def test_several_threads_may_ask_at_once(self, host: Host) -> None:
        outputs: list[str] = []
        threads = [
            threading.Thread(target=lambda n=n: outputs.append(host.run(["echo", str(n)], timeout_s=60).text))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outputs) == [f"{n}\n" for n in range(8)]

    def test_start_returns_at_once_and_writes_to_files(self, host: Host, output: Output, tmp_path: Path) -> None:
        process = host.start(["sh", "-c", "echo out; echo err >&2; exec sleep 600"], output=output)
        try:
            assert alive(host, process)
            assert wait_for(tmp_path / "out") == "out\n"
            assert wait_for(tmp_path / "err") == "err\n"
            session = (host.read(f"/proc/{process.pid}/stat") or b"").split(b") ")[1].split()[3]
            assert int(session) == process.pid
        finally:
            host.run(["kill", "-9", str(process.pid)], timeout_s=60)

    def test_what_is_started_can_be_interrupted(self, host: Host, output: Output) -> None:
        process = host.start(["sleep", "600"], output=output)
        host.run(["kill", "-INT", str(process.pid)], timeout_s=60)
        until(lambda: not alive(host, process))

    def test_what_is_announced_begins_only_afterwards_and_is_the_same_process(
        self, host: Host, output: Output, tmp_path: Path
    ) -> None:
        announced: list[Process] = []

        def announce(process: Process) -> None:
            announced.append(process)
            time.sleep(0.2)
            assert alive(host, process)
            assert not (tmp_path / "out").read_text()

        script = "import os, sys; print(os.getpid(), repr(sys.stdin.read()), *sys.argv[1:])"
        words = ["two words", "$HOME", "*", ""]
        process = host.start(["python3", "-I", "-S", "-c", script, *words], output=output, announce=announce)
        assert wait_for(tmp_path / "out") == f"{process.pid} '' two words $HOME * \n"
        assert announced == [process]

    def test_what_cannot_be_announced_never_begins(self, host: Host, output: Output, tmp_path: Path) -> None:
        announced: list[Process] = []

        def announce(process: Process) -> None:
            announced.append(process)
            raise RunFailed("the ledger cannot be used")

        with pytest.raises(RunFailed, match="the ledger cannot be used"):
            host.start(["touch", str(tmp_path / "began")], output=output, announce=announce)
        until(lambda: not alive(host, announced[0]))
        assert not (tmp_path / "began").exists()

    def test_what_begins_after_a_word_gets_its_environment(
        self, host: Host, output: Output, tmp_path: Path
    ) -> None:
        host.start(["sh", "-c", 'echo "$ONLY"'], output=output, env={"ONLY": "this"}, announce=lambda _: None)
        assert wait_for(tmp_path / "out") == "this\n"

    def test_a_missing_program_is_one_clear_failure_and_not_announced(self, host: Host, output: Output) -> None:
        announced: list[Process] = []
        cannot = f"no-such-program cannot be started on {host.name}: "
        with pytest.raises(RunFailed, match=f"{cannot}no such program may be run there"):
            host.start(["no-such-program"], output=output, announce=announced.append)
        with pytest.raises(RunFailed, match=f"{cannot}No such file"):
            host.start(["no-such-program"], output=output)
        assert announced == []

    def test_a_started_process_that_ended_is_not_alive_and_leaves_no_zombie(
        self, host: Host, output: Output
    ) -> None:
        process = host.start(["true"], output=output)
        until(lambda: not alive(host, process))
        host.run(["true"], timeout_s=60)
        assert identify(host, process.pid) is None

    def test_put_replaces_whole_files_with_the_mode_asked_for(self, host: Host, tmp_path: Path) -> None:
        target = tmp_path / "secret"
        target.write_text("old and longer")
        host.put(b"new", str(target), mode=0o600)
        assert target.read_bytes() == b"new"
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]

    def test_put_takes_files_longer_than_any_message(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "source").write_bytes(LONG_FILE)
        host.put(tmp_path / "source", str(tmp_path / "target"), mode=0o640)
        host.put(LONG_FILE, str(tmp_path / "again"))
        assert (tmp_path / "target").read_bytes() == LONG_FILE == (tmp_path / "again").read_bytes()
        assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o640
        assert len(list(tmp_path.iterdir())) == 3

    def test_put_into_a_missing_directory_says_where(self, host: Host, tmp_path: Path) -> None:
        for content in (b"", LONG_FILE):
            with pytest.raises(RunFailed, match=f"missing/file cannot be written on {host.name}: No such file"):
                host.put(content, str(tmp_path / "missing" / "file"))

    def test_get_copies_files_and_directories(self, host: Host, tmp_path: Path) -> None:
        tree = tmp_path / "tree"
        (tree / "deep").mkdir(parents=True)
        (tree / "link").symlink_to("/nowhere")
        (tree / "file").write_text("x")
        (tree / "deep" / "long").write_bytes(LONG_FILE)
        (tree / "file").chmod(0o600)
        host.get(str(tree), tmp_path / "copy")
        host.get(str(tree / "file"), tmp_path / "single")
        assert (tmp_path / "copy" / "link").readlink() == Path("/nowhere")
        assert (tmp_path / "copy" / "file").read_text() == (tmp_path / "single").read_text() == "x"
        assert (tmp_path / "copy" / "deep" / "long").read_bytes() == LONG_FILE
        assert stat.S_IMODE((tmp_path / "copy" / "file").stat().st_mode) == 0o600
        assert (tmp_path / "copy" / "file").stat().st_mtime_ns == (tree / "file").stat().st_mtime_ns

    def test_get_of_what_is_not_there_says_where(self, host: Host, tmp_path: Path) -> None:
        with pytest.raises(RunFailed, match=f"absent cannot be copied from {host.name}"):
            host.get(str(tmp_path / "absent"), tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    @pytest.mark.parametrize("kind", ["link", "pipe", "link to a directory"])
    def test_get_takes_no_link_or_pipe_in_place_of_a_file(self, host: Host, tmp_path: Path, kind: str) -> None:
        """A program whose output is read may have put it there, to have root read what it may not."""
        (tmp_path / "secret").mkdir()
        (tmp_path / "secret" / "file").write_text("kept")
        planted = tmp_path / "planted"
        if kind == "pipe":
            os.mkfifo(planted)
        else:
            planted.symlink_to(tmp_path / "secret" if "directory" in kind else tmp_path / "secret" / "file")
        with pytest.raises(RunFailed, match=f"planted cannot be copied from {host.name}"):
            host.get(str(planted), tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_read_tells_absent_from_empty_and_from_forbidden(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        assert host.read(str(tmp_path / "empty")) == b""
        assert host.read(str(tmp_path / "absent")) is None
        assert host.read(str(tmp_path / "empty" / "below")) is None
        with pytest.raises(RunFailed, match=f"cannot be read on {host.name}: Is a directory"):
            host.read(str(tmp_path))

    def test_read_gives_pseudo_files_and_long_ones_whole(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "long").write_bytes(LONG_FILE)
        assert host.read(str(tmp_path / "long")) == LONG_FILE
        assert b"Name:" in (host.read("/proc/self/status") or b"")
        assert host.read("/proc/999999999/stat") is None

    def test_its_clocks_are_told_without_a_program(self, host: Host) -> None:
        before, read, after = time.monotonic_ns(), host.clocks(), time.monotonic_ns()
        assert read is not None
        assert before <= read.monotonic_ns <= after
        assert abs(read.wall_ns - time.time_ns()) < 60e9
