"""Which of the machine's programs are an arm's own: its shim, and what carries its port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from tare.deployments import Endpoint, Instance, Task
from tare.images import Image
from tare.run.monitoring.processes import processes_on
from tare.sites import Completed, Output, Process
from tare.study.values import NetworkKind

SERVER, PORT = 400, 8080
PUBLISHED = Endpoint("127.0.0.1", PORT)
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTENS = "   0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 {inode} 1 0\n"
TALKS = "   1: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000  1000  0 {inode} 1 0\n"
STAT = "{pid} (redis-server) S {parent} 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"


class Machine:
    """A host with these programs; `sockets`: pid → inode of a socket that it holds."""

    name = "machine"

    def __init__(self, programs: Mapping[int, str], sockets: Mapping[int, int], files: Mapping[str, str]) -> None:
        self.programs, self.sockets, self.files = programs, sockets, files

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        assert argv[0] == "pgrep"
        wanted = argv[-1].replace("\\", "").split("|")
        lines = [f"{pid} {name}" for pid, name in self.programs.items() if name in wanted]
        return Completed(tuple(argv), 0, "\n".join(lines).encode(), b"")

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        held = {f"/proc/{pid}/fd": f"socket:[{inode}]" for pid, inode in self.sockets.items()}
        return {f"{place}/5": held[place] for place in places if place in held}

    def read(self, path: str, **_: Any) -> bytes | None:
        return self.files[path].encode() if path in self.files else None


def server(network: NetworkKind, published: Endpoint | None = PUBLISHED) -> Instance:
    task = Task(
        "sut", cast("Image", None), ("redis-server",), cast("Output", None), "tare/run", network=network, port=6379
    )
    return Instance(task, "container", Process(SERVER, 77, "boot"), "abc", "172.17.0.2", published)


def names(host: Machine, instance: Instance) -> dict[str, list[int]]:
    watched: dict[str, list[int]] = {}
    for each in processes_on(host, {"sut": instance}, with_tare=False):  # type: ignore[arg-type]  # all that is used of it
        watched.setdefault(each.name, []).append(each.pid)
    return watched


def test_the_docker_proxy_of_this_port_and_the_shim_of_this_container_are_its_own_and_others_are_not() -> None:
    files = {
        f"/proc/{SERVER}/stat": STAT.format(pid=SERVER, parent=41),
        "/proc/41/comm": "containerd-shim\n",
        "/proc/50/cmdline": "\0".join(["docker-proxy", "-container-ip", "172.17.0.2", "-container-port", "6379"]),
        "/proc/51/cmdline": "\0".join(["docker-proxy", "-container-ip", "172.17.0.3", "-container-port", "6379"]),
    }
    programs = {10: "dockerd", 11: "containerd", 41: "containerd-shim", 42: "containerd-shim", 50: "docker-proxy",
                51: "docker-proxy", 60: "pasta"}  # fmt: skip
    watched = names(Machine(programs, {60: 900}, files), server(NetworkKind.PUBLISHED_LOOPBACK))
    assert watched == {"sut": [SERVER], "shim": [41], "proxy": [50], "dockerd": [10], "containerd": [11]}


@pytest.mark.parametrize(
    ("network", "command", "name"),
    [(NetworkKind.PASTA, "pasta.avx2", "pasta"), (NetworkKind.PASTA, "pasta", "pasta"),
     (NetworkKind.SLIRP4NETNS, "slirp4netns", "slirp4netns"),
     (NetworkKind.ROOTLESSPORT, "rootlessport", "rootlessport")],
)  # fmt: skip
def test_without_root_the_program_that_holds_the_published_port_is_its_own(
    network: NetworkKind, command: str, name: str
) -> None:
    table = (
        HEADER + LISTENS.format(port=PORT, inode=901) + LISTENS.format(port=9, inode=902) + TALKS.format(inode=903)
    )
    host = Machine({61: command, 62: command, 63: command}, {61: 901, 62: 902, 63: 903}, {"/proc/net/tcp": table})
    watched = names(host, server(network))
    assert watched == {"sut": [SERVER], name: [61]}


def test_a_port_that_nobody_holds_has_no_carrier() -> None:
    host = Machine({61: "pasta"}, {61: 902}, {"/proc/net/tcp": HEADER + LISTENS.format(port=PORT, inode=901)})
    assert names(host, server(NetworkKind.PASTA)) == {"sut": [SERVER]}
    assert names(host, server(NetworkKind.PASTA, None)) == {"sut": [SERVER]}
