"""The arms of causes.yaml: what is around the load, with the cause and without."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.explain.place import ADDRESS, DATABASE, HOST, PORT, PROXY_PORT, UNUSED, Place, inside, run

_READY_S = 20.0
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Load:
    """What a run drives. `client`: the command; `operations`: what it does; the rest by process id.

    `server`: `None` where the client is itself what is measured.
    """

    client: list[str]
    operations: int
    server: int | None
    proxy: int | None = None
    in_group: bool = False


class Setup(Protocol):
    """Makes everything that a run needs, with the cause (`is_arm`) or without it."""

    def __call__(self, place: Place, *, is_arm: bool) -> AbstractContextManager[Load]:
        """The load, with the cause (`is_arm`) or without it."""
        ...


@dataclass(frozen=True)
class Case:
    """`setup`: everything but the cause is the same with and without it. `needs`: programs; `kernel`: why not."""

    name: str
    setup: Setup
    needs: tuple[str, ...] = field(default=("redis-server", "redis-benchmark"))
    kernel: Callable[[], str | None] = lambda: None

    def lacks(self) -> str | None:
        """What this machine has not got."""
        missing = [name for name in self.needs if shutil.which(name) is None]
        return f"{', '.join(missing)} missing" if missing else self.kernel()


@contextmanager
def process(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Running, and ended at the end."""
    started = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(timeout=10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(timeout=10)


@contextmanager
def redis(place: Place, *, filtered: bool = False) -> Iterator[int]:
    """A Redis in the database's namespace and our control group. `ip netns exec` becomes it: one process."""
    server = [
        "redis-server",
        "--port",
        str(PORT),
        "--save",
        "",
        "--protected-mode",
        "no",
        "--dir",
        str(place.scratch),
    ]
    launcher = [sys.executable, "-I", str(_HERE / "filtered.py")] if filtered else []
    with process(inside(DATABASE, *launcher, *server)) as started:
        place.enter_group(started.pid)
        deadline = time.monotonic() + _READY_S
        ping = inside(HOST, "redis-cli", "-h", ADDRESS, "-p", str(PORT), "ping")
        while subprocess.run(ping, capture_output=True, check=False, timeout=10).stdout.strip() != b"PONG":
            if time.monotonic() > deadline or started.poll() is not None:
                raise RuntimeError("Redis does not answer")
            time.sleep(0.05)
        yield started.pid


def client(place: Place, address: str, port: int = PORT) -> list[str]:
    """redis-benchmark with small requests, so that the path outweighs the work."""
    how = ["-t", "get", "-c", "8", "-n", str(place.operations), "-q", "-h", address, "-p", str(port)]
    return inside(HOST, "redis-benchmark", *how)


@contextmanager
def docker_proxy(place: Place, *, is_arm: bool) -> Iterator[Load]:
    """The same port by docker-proxy on loopback, and by the bridge's address."""
    with ExitStack() as stack:
        server = stack.enter_context(redis(place))
        proxy = None
        if is_arm:
            listen = ["-host-ip", "127.0.0.1", "-host-port", str(PROXY_PORT)]
            onward = ["-container-ip", ADDRESS, "-container-port", str(PORT)]
            argv = inside(HOST, "docker-proxy", "-proto", "tcp", *listen, *onward)
            # It tells on descriptor 3 that it listens, and ends where that is not open.
            shell = ["sh", "-c", 'exec 3>/dev/null 4>/dev/null; exec "$@"', "sh", *argv]
            proxy = stack.enter_context(process(shell)).pid
            time.sleep(0.5)
        way = client(place, "127.0.0.1", PROXY_PORT) if is_arm else client(place, ADDRESS)
        yield Load(way, place.operations, server, proxy)


def nat(rules: int) -> Setup:
    """DNAT to the server behind `rules` rules that no packet matches; without them, its own address."""

    @contextmanager
    def setup(place: Place, *, is_arm: bool) -> Iterator[Load]:
        with redis(place) as server:
            if not is_arm:
                yield Load(client(place, ADDRESS), place.operations, server)
                return
            # Addresses of 198.18.0.0/15 are for benchmarks and routed nowhere (RFC 2544).
            never = [f"-A OUTPUT -d 198.18.{n // 250}.{n % 250 + 1}/32 -j ACCEPT" for n in range(rules)]
            dnat = f"-A OUTPUT -p tcp -d {UNUSED} --dport {PORT} -j DNAT --to-destination {ADDRESS}:{PORT}"
            masquerade = f"-A POSTROUTING -p tcp -d {ADDRESS} -j MASQUERADE"
            text = "\n".join(["*filter", *never, "COMMIT", "*nat", dnat, masquerade, "COMMIT", ""])
            try:
                run(inside(HOST, "iptables-restore", "--noflush"), stdin=text)
                yield Load(client(place, UNUSED), place.operations, server)
            finally:
                for table in ("filter", "nat"):
                    run(inside(HOST, "iptables", "-t", table, "-F"))

    return setup


@contextmanager
def quota(place: Place, *, is_arm: bool) -> Iterator[Load]:
    """A twentieth of a CPU for a server that takes more, on a busy machine too."""
    with redis(place) as server:
        place.set_quota(0.05 if is_arm else None)
        try:
            yield Load(client(place, ADDRESS), place.operations // 3, server, in_group=True)
        finally:
            place.set_quota(None)


@contextmanager
def seccomp(place: Place, *, is_arm: bool) -> Iterator[Load]:
    """A filter that compares each call with some hundred numbers, as engines' default filters do."""
    with redis(place, filtered=is_arm) as server:
        yield Load(client(place, ADDRESS), place.operations, server)


@contextmanager
def neighbour(place: Place, *, is_arm: bool) -> Iterator[Load]:
    """Two busy processes a CPU that belong to nobody in the study."""
    with ExitStack() as stack:
        server = stack.enter_context(redis(place))
        for _ in range(4 if is_arm else 0):
            stack.enter_context(process(["sh", "-c", "while :; do :; done"]))
        yield Load(client(place, ADDRESS), place.operations // 3, server, in_group=True)


FILES, FILE_BYTES = 200, 1 << 20


@contextmanager
def copy_up(place: Place, *, is_arm: bool) -> Iterator[Load]:
    """Four KiB into each of many files: of a lower layer, or of a directory of the host."""
    root = place.scratch / "files"
    lower, upper, work, merged = (root / name for name in ("lower", "upper", "work", "merged"))
    for directory in (lower, upper, work, merged):
        directory.mkdir(parents=True)
    for n in range(FILES):
        (lower / f"{n}").write_bytes(b"\1" * FILE_BYTES)
    if is_arm:
        layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
        run(["mount", "-t", "overlay", "overlay", "-o", layers, str(merged)])
    try:
        argv = [sys.executable, "-I", str(_HERE / "rewrite.py"), str(merged if is_arm else lower)]
        yield Load(argv, FILES, None)
    finally:
        if is_arm:
            run(["umount", str(merged)])
        shutil.rmtree(root)


AREAS = 1500
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextmanager
def small_pages(place: Place, *, is_arm: bool) -> Iterator[Load]:
    """Fresh memory in pages of 4 KiB, or in transparent huge pages of 2 MiB."""
    del place
    pages = "small" if is_arm else "huge"
    yield Load([sys.executable, "-I", str(_HERE / "touch.py"), str(AREAS), pages], AREAS, None)


def no_huge_pages() -> str | None:
    """Why a program gets none that asks for them."""
    enabled = _HUGE_PAGES.read_text() if _HUGE_PAGES.exists() else "[never]"
    return "this kernel gives no transparent huge pages" if "[never]" in enabled else None


_REDIS = ("redis-server", "redis-benchmark", "redis-cli")
CASES = {
    case.name: case
    for case in (
        Case("docker-proxy", docker_proxy, (*_REDIS, "docker-proxy")),
        Case("nat-10", nat(10), (*_REDIS, "iptables-restore")),
        Case("nat-1000", nat(1000), (*_REDIS, "iptables-restore")),
        Case("quota", quota, _REDIS),
        Case("copy-up", copy_up, ()),
        Case("seccomp", seccomp, _REDIS),
        Case("neighbour", neighbour, _REDIS),
        Case("small-pages", small_pages, (), no_huge_pages),
    )
}
