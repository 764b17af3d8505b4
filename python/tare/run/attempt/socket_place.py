"""Where the Unix socket of a server lies, and how its client reaches it (`sut.network: socket`)."""

from __future__ import annotations

from tare.databases import ServerPlan
from tare.databases.abilities import SOCKETS
from tare.deployments import SOCKET_DIR, Bind
from tare.images import Image
from tare.run.attempt.directory import WorkDirectory
from tare.run.attempt.server import Server
from tare.study.model import SutSpec
from tare.study.values import NetworkKind

_TIMEOUT_S = 60.0


def socket_of(sut: SutSpec, run_dir: str, port: int, *, own_root: bool) -> str | None:
    """Path of the socket as the server sees it; `None` if its clients use TCP. `run_dir`: on the host."""
    if sut.network is not NetworkKind.SOCKET:
        return None
    directory = SOCKET_DIR if own_root else f"{run_dir}-socket"
    return f"{directory}/{SOCKETS[sut.database or ''].format(port=port)}"


def bind_for_server(plan: ServerPlan, run_dir: str, workdir: WorkDirectory, image: Image) -> tuple[Bind, ...]:
    """Make the directory of the socket, which any user may enter and only the image's may write to."""
    if plan.socket is None:
        return ()
    path = f"{run_dir}-socket"
    workdir.host.run(["install", "-d", "-m", "0755", "--", path], timeout_s=_TIMEOUT_S)
    workdir.give(path, image)
    return (Bind(path, _directory(plan.socket)),)


def bind_for_client(server: Server, *, own_root: bool) -> tuple[Bind, ...]:
    """The server's directory for a client; nothing if the client uses TCP."""
    return tuple(
        Bind(bind.source, SOCKET_DIR if own_root else bind.source)
        for bind in server.instance.task.binds
        if server.plan.socket is not None and bind.target == _directory(server.plan.socket)
    )


def socket_for_client(server: Server, *, own_root: bool) -> str | None:
    """Path of the socket as the client sees it."""
    for bind in bind_for_client(server, own_root=own_root):
        return f"{bind.target}/{(server.plan.socket or '').rpartition('/')[2]}"
    return None


def _directory(socket: str) -> str:
    return socket.rpartition("/")[0]
