"""The host contract on this machine and through an agent, which a command starts here without any SSH."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.unit.sites.host_contract import HostContract

from tare.errors import RunFailed
from tare.sites import Host, NewFile
from tare.sites.local import LocalHost
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Answer, Link, Request


class TestLocalHost(HostContract):
    @pytest.fixture
    def host(self) -> Host:
        return LocalHost()


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Link]:
    home = tmp_path_factory.mktemp("home")
    words = ("connect", "--session", "contract", "--home", str(home))
    link = Link("far", CommandDialer((str(agent_program()), *words)))
    yield link
    link.close()
    assert [path.name for path in (home / "agent").iterdir()] == ["lock"]


class TestThroughTheAgent(HostContract):
    @pytest.fixture
    def host(self, link: Link) -> Host:
        return SshHost(link)


class TestSoundingByTheAgent:
    def test_moments_of_both_ends_follow_each_other(self, link: Link) -> None:
        host = SshHost(link)
        with host.echo("127.0.0.1") as port:
            seen = host.sound("127.0.0.1", port)
        assert 20 <= len(seen["exchanges"]) <= 100
        assert all(sorted(moments) == moments for moments in seen["exchanges"])
        assert abs(seen["own_ahead_ns"] - (time.time_ns() - time.monotonic_ns())) < 1_000_000_000

    def test_throughput_is_of_both_ways(self, link: Link) -> None:
        host = SshHost(link)
        with host.echo("127.0.0.1") as port:
            rates = host.fill("127.0.0.1", port, 0.1)
        assert min(rates["to_bytes_per_s"], rates["from_bytes_per_s"]) > 1e6

    def test_nothing_answers_any_more_once_it_is_over(self, link: Link) -> None:
        host = SshHost(link)
        with host.echo("127.0.0.1") as port:
            pass
        assert host.sound("127.0.0.1", port)["exchanges"] == []
        with pytest.raises(RunFailed, match=r"no data come from far to 127\.0\.0\.1: Connection refused"):
            host.fill("127.0.0.1", port, 0.1)

    def test_an_address_that_is_not_the_hosts_own_is_named(self, link: Link) -> None:
        with (
            pytest.raises(RunFailed, match=r"cannot listen at 192\.0\.2\.1 on far: Cannot assign") as refused,
            SshHost(link).echo("192.0.2.1"),  # RFC 5737: nobody's
        ):
            pass
        assert "sites.yaml" in (refused.value.hint or "")


class TestManyFilesAtOnce:
    def test_each_comes_as_if_it_were_read_alone(self, link: Link, tmp_path: Path) -> None:
        host = SshHost(link)
        (tmp_path / "a").write_bytes(b"abc")
        (tmp_path / "empty").write_bytes(b"")
        paths = [str(tmp_path / name) for name in ("a", "empty", "absent")] + ["/proc/sys/kernel/osrelease"]
        assert host.read_all(paths) == {path: host.read(path) for path in paths}
        assert host.read_all([]) == {}

    def test_long_ones_and_those_that_cannot_be_read_are_left_out(self, link: Link, tmp_path: Path) -> None:
        (tmp_path / "long").write_bytes(bytes(1 << 19))
        assert SshHost(link).read_all([str(tmp_path / "long"), str(tmp_path)]) == {}

    def test_a_directory_comes_whole_whatever_the_sizes(self, link: Link, tmp_path: Path) -> None:
        source = tmp_path / "source"
        (source / "d").mkdir(parents=True)
        sizes = {
            "d/small": 3,
            "empty": 0,
            "long": 1 << 20,
            "d/middle": 200_000,
            **{f"f{n}": 150_000 for n in range(9)},
        }
        for name, size in sizes.items():
            (source / name).write_bytes(name[:1].encode() * size)
        SshHost(link).get(str(source), tmp_path / "target")
        for name in sizes:
            assert (tmp_path / "target" / name).read_bytes() == (source / name).read_bytes()


class LyingLink:
    """An agent that has been taken over: it names what it likes as parts of a directory."""

    name = "far"

    def __init__(self, *parts: dict[str, object]) -> None:
        self.parts = [{"path": "", "kind": "directory", "mode": 0o755, "modified_ns": 0}, *parts]

    def ask(self, what: str, **_: object) -> Answer:
        if what == "read_all":
            return Answer({"lengths": []}, b"")
        listing = json.dumps(self.parts).encode()
        return Answer({"whole": True}, listing if what == "list" else b"theirs")


@pytest.mark.parametrize(
    "parts",
    [
        ({"path": "../out", "kind": "file"},),
        ({"path": "a/../../out", "kind": "file"},),
        ({"path": "{outside}/out", "kind": "file"},),
        ({"path": "in", "kind": "link", "link": "{outside}"}, {"path": "in/out", "kind": "file"}),
    ],
    ids=["above", "below and above", "absolute", "through its own link"],
)
def test_a_host_gets_no_file_beside_the_target(tmp_path: Path, parts: tuple[dict[str, str], ...]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    named = [{key: value.replace("{outside}", str(outside)) for key, value in part.items()} for part in parts]
    link = cast("Link", LyingLink(*({**part, "mode": 0o644, "modified_ns": 0} for part in named)))
    with pytest.raises(RunFailed, match="leads out of it"):
        SshHost(link).get("/raw", tmp_path / "target")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "target"]
    assert list(outside.iterdir()) == []


class TestSeveralAtOnce:
    def test_files_are_written_together_with_their_modes(self, link: Link, tmp_path: Path) -> None:
        sizes = {"a": 3, "empty": 0, "long": 1 << 20}
        files = [NewFile(str(tmp_path / name), b"x" * size, 0o600) for name, size in sizes.items()]
        SshHost(link).put_all(files)
        assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == sizes
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}

    def test_one_that_fails_is_named_and_keeps_no_other_from_being_written(
        self, link: Link, tmp_path: Path
    ) -> None:
        nowhere = NewFile(str(tmp_path / "absent" / "a"), b"1")
        with pytest.raises(RunFailed, match=r"a, .*b cannot be written on far: No such file or directory"):
            SshHost(link).put_all([nowhere, NewFile(str(tmp_path / "b"), b"2")])
        assert (tmp_path / "b").read_bytes() == b"2"

    def test_answers_come_in_the_order_of_the_requests(self, link: Link) -> None:
        words = [
            Request("run", {"argv": ["sh", "-c", f"sleep {s}; echo {s}"], "env": None, "limit_s": 60})
            for s in (0.2, 0)
        ]
        answers = link.ask_all(words)
        assert [answer.data for answer in answers] == [b"0.2\n", b"0\n"]

    def test_a_host_that_cannot_is_written_to_one_after_the_other(self, tmp_path: Path) -> None:
        LocalHost().put_all([NewFile(str(tmp_path / name), b"1", 0o640) for name in "ab"])
        assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
