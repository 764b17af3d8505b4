"""MongoDB's protocol, as far as tare speaks it: on bytes that FerretDB 2.7 sent."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.databases.mongodb.mongo_query import ask, decode, encode

DATA = Path(__file__).parents[3] / "data" / "ferretdb"
ANSWER = (DATA / "build_info.bin").read_bytes()
HEADER = 16


class Connection:
    """Keeps what is sent, and answers with given bytes."""

    def __init__(self, answer: bytes) -> None:
        self.sent, self.answer = io.BytesIO(), io.BytesIO(answer)
        self.read, self.write = self.answer.read, self.sent.write

    def flush(self) -> None:
        """Nothing waits."""


def test_an_answer_of_a_real_server_is_read() -> None:
    answer = ask(Connection(ANSWER), {"buildInfo": 1})
    assert answer["version"] == "7.0.77"
    assert answer["versionArray"] == [7, 0, 77, 0]
    assert answer["ferretdb"] == {"version": "v2.7.0", "package": "unknown"}
    assert answer["debug"] is False
    assert answer["ok"] == 1.0


def test_a_command_is_one_message_to_the_database_admin() -> None:
    connection = Connection(ANSWER)
    ask(connection, {"getParameter": "*", "comment": {"by": "tare", "deep": True}})
    sent = connection.sent.getvalue()
    length, _, _, kind, flags, section = struct.unpack_from("<iiiiiB", sent)
    assert (length, kind, flags, section) == (len(sent), 2013, 0, 0)
    assert decode(sent[21:]) == {
        "getParameter": "*",
        "comment": {"by": "tare", "deep": True},
        "$db": "admin",
    }


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: whole[:10],
        lambda whole: whole[:-1],
        lambda whole: whole[:12] + struct.pack("<i", 1) + whole[16:],
        lambda whole: whole[:20] + b"\1" + whole[21:],
        lambda whole: whole[:21] + struct.pack("<i", 7) + whole[25:],
    ],
    ids=["no header", "cut short", "another kind", "another section", "a wrong length"],
)
def test_an_answer_that_is_not_whole_is_refused(spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match=r"answer|document"):
        ask(Connection(spoil(ANSWER)), {"buildInfo": 1})


@pytest.mark.parametrize(
    ("kind", "data", "meant"),
    [
        (0x01, struct.pack("<d", 1.5), 1.5),
        (0x01, struct.pack("<d", float("inf")), "inf"),
        (0x05, struct.pack("<iB", 2, 0) + b"\1\xff", "01ff"),
        (0x07, bytes(range(12)), "000102030405060708090a0b"),
        (0x09, struct.pack("<q", 1795330597550), 1795330597550),
        (0x0A, b"", None),
        (0x0B, b"a.*\0i\0", "a.*"),
        (0x11, struct.pack("<Q", 7), 7),
        (0x12, struct.pack("<q", -1), -1),
    ],
)
def test_kinds_of_values(kind: int, data: bytes, meant: object) -> None:
    inside = bytes([kind]) + b"name\0" + data + b"\x10after\0" + struct.pack("<i", 5)
    document = struct.pack("<i", len(inside) + 5) + inside + b"\0"
    assert decode(document) == {"name": meant, "after": 5}


def test_a_kind_that_is_not_known_and_bytes_that_are_over_are_refused() -> None:
    with pytest.raises(ValueError, match="kind 0x0c"):
        decode(struct.pack("<i", 12) + b"\x0ca\0" + b"\0\0\0\0" + b"\0")
    with pytest.raises(ValueError, match="more than a document"):
        decode(encode({"a": 1}) + b"\0")
    with pytest.raises(ValueError, match="of no kind"):
        encode({"a": 1.5})
