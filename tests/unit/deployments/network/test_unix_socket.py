"""Connections at a Unix socket, from tables as Linux 6.18 prints them."""

from __future__ import annotations

from tare.deployments.network.unix_socket import UnixSocket, parse_unix

TABLE = """\
Num       RefCount Protocol Flags    Type St Inode Path
00000000c1e0d3a1: 00000002 00000000 00010000 0001 01 30001 /run/tare-socket/mariadbd.sock
0000000077a0b5c2: 00000003 00000000 00000000 0001 03 30011 /run/tare-socket/mariadbd.sock
0000000077a0b5c3: 00000003 00000000 00000000 0001 03 30010
00000000aa10b5c3: 00000003 00000000 00000000 0001 03     0 /run/tare-socket/mariadbd.sock
00000000bb10b5c3: 00000003 00000000 00000000 0001 03 30020 /run/with blanks/x.sock
00000000bb10b5c4: 00000002 00000000 00000000 0002 01 30021 @abstract
"""


def test_connected_ends_are_listed_with_the_path_of_the_server() -> None:
    path = "/run/tare-socket/mariadbd.sock"
    assert parse_unix(TABLE) == (
        UnixSocket(30011, path),
        UnixSocket(30010, ""),
        UnixSocket(0, path),
        UnixSocket(30020, "/run/with blanks/x.sock"),
    )
    assert parse_unix("") == ()
