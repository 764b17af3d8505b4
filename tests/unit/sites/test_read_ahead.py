"""What was read at one look comes in one round trip at the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.sites.fake import FakeHost
from tare.sites.read_ahead import ReadAhead, fetched


class Far(FakeHost):
    """A host that counts how it is asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files=files)
        self.alone: list[str] = []
        self.together: list[tuple[str, ...]] = []

    def read(self, path: str) -> bytes | None:
        self.alone.append(path)
        return super().read(path)

    def read_all(self, paths: Sequence[str]) -> Mapping[str, bytes | None]:
        self.together.append(tuple(paths))
        return {path: self.files.get(path) for path in paths if path != "/long"}


def test_a_second_look_reads_in_one_question_what_the_first_one_read() -> None:
    host = Far({"/a": b"1", "/long": b"22"})
    ahead = ReadAhead(host)
    paths = ("/a", "/absent", "/long")
    assert [ahead.look().read(path) for path in paths] == [b"1", None, b"22"]
    host.files["/a"] = b"3"
    host.alone.clear()
    host.together.clear()
    again = ahead.look()
    assert [again.read(path) for path in paths] == [b"3", None, b"22"]
    assert (host.together, host.alone) == ([paths], ["/long"])


def test_what_was_never_read_is_read_now() -> None:
    host = Far({"/a": b"1"})
    ahead = ReadAhead(host)
    assert ahead.look().read("/a") == b"1"
    assert ahead.look().read("/b") is None
    assert ahead.known == {"/a", "/b"}


def test_a_host_that_cannot_is_read_as_ever() -> None:
    host = FakeHost(files={"/a": b"1"})
    assert ReadAhead(host).look() is host


def test_files_that_are_named_come_in_one_question_and_the_others_as_ever() -> None:
    host = Far({"/a": b"1", "/b": b"2", "/long": b"22"})
    seen = fetched(host, ["/b", "/a", "/absent", "/long"])
    assert [seen.read(path) for path in ("/a", "/b", "/absent", "/long")] == [b"1", b"2", None, b"22"]
    assert (host.together, host.alone) == ([("/a", "/absent", "/b", "/long")], ["/long"])
    assert fetched(FakeHost(files={"/a": b"1"}), ["/a"]).read("/a") == b"1"


def test_a_file_that_was_written_meanwhile_is_read_anew() -> None:
    host = Far({"/a": b"1"})
    seen = fetched(host, ["/a"])
    seen.put(b"2", "/a")
    assert seen.read("/a") == b"2"
