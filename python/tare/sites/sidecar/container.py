"""The sidecar's container: made for the first request, removed with the connection, also of a killed tare."""

from __future__ import annotations

import io
import struct
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import Mount
from requests.exceptions import ReadTimeout, RequestException

from tare.errors import EnvironmentLacks, RunFailed, TareError, TimedOut
from tare.sites import Host
from tare.sites.engine import in_words, labels
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import LABEL
from tare.sites.sidecar import server
from tare.sites.sidecar.calls import CGROUPS

if TYPE_CHECKING:
    import socket

    from docker import DockerClient

SOURCE = Path(server.__file__)
_FRAME = struct.Struct(">BxxxL")
_STDOUT = 1
_CHUNK = 1 << 16
_SPARE_S, _LOOK_S = 10.0, 30.0
_TRIES, _PAUSE_S = 30, 2.0
"""Tries over a connection that comes back: the engine's connection follows the agent's."""
_PROGRAMS = ("bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr")
"""Directories of the host's programs and libraries, mounted read-only."""
_EMPTY = ("proc", "sys", "dev", "etc", "tmp")
_CACHE = "/etc/ld.so.cache"
_LOOK = """\
mkdir -p -- "$1" || exit
echo "$(id -u) $(id -g)"
[ -e "$2" ] && echo cache || echo none
shift 2
for name; do
    if [ -L "/$name" ]; then echo "$name $(readlink "/$name")"; elif [ -d "/$name" ]; then echo "$name "; fi
done
"""
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SYS_PTRACE")
"""Rights to give files away, to access and change others' files, and to read others' processes in /proc."""
_UNCONFINED = "apparmor=unconfined"
"""AppArmor's profile of engines hides all processes outside of containers, docker-proxy among them."""
_TO_BECOME_THE_USER = ("SETUID", "SETGID", "SETPCAP")


class Sidecar:
    """Handles one request at a time; others wait. `home`: TARE_HOME on `host`; `engine`: connects to that host's.

    `before`: gets the container's configuration before it is made, for an agent that must clear up without its
    tare. `back`: waits for an unreachable host, and returns the reason if it stays unreachable.
    """

    def __init__(  # noqa: PLR0913 - everything that defines its container
        self,
        host: Host,
        engine: Callable[[], DockerClient],
        home: Path,
        ledger: Ledger,
        *,
        before: Callable[[Mapping[str, Any]], None] = lambda _: None,
        back: Callable[[], str | None] | None = None,
    ) -> None:
        self._host = host
        self._engine = engine
        self._home = home
        self._ledger = ledger
        self._before = before
        self._back = back
        self._lock = Lock()
        self._line: _Line | None = None
        self._imported = False
        self._name = f"tare-sidecar-{uuid4().hex[:12]}"
        self._image = f"tare/sidecar:{self._name.rpartition('-')[2]}"

    def ask(
        self, words: Mapping[str, Any], content: bytes = b"", *, timeout_s: float, again: bool = True
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request. Raises `EnvironmentLacks` if the engine makes no sidecar, `RunFailed` if it is lost.

        `again`: if the connection broke and came back, send the request to a new sidecar.
        """
        request = server.message(dict(words), content)
        with self._lock, self._explained():
            for left in reversed(range(_TRIES if again and self._back is not None else 1)):
                asked_before = self._line is not None
                try:
                    line = self._line = self._line or self._made()
                    return line.ask(request, timeout_s + _SPARE_S)
                except (OSError, RunFailed, DockerException) as error:
                    self._end_line()
                    if left == 0 or not _comes_back(error, asked_before=asked_before) or self._stays_away():
                        raise
                time.sleep(_PAUSE_S)
        raise RunFailed("no sidecar was asked")  # not reached: the last try answers or raises

    def _stays_away(self) -> bool:
        return self._back is not None and self._back() is not None

    def close(self) -> None:
        """Remove container and image; a later request makes new ones."""
        with self._lock, suppress(DockerException, RequestException, TareError):
            self._end_line()
            if not self._imported:
                return
            with suppress(NotFound):
                self._engine().containers.get(self._name).remove(force=True, v=True)
            self._forget(Kind.CONTAINER, self._name)
            with suppress(ImageNotFound):
                self._engine().images.remove(self._image, force=True)
            self._imported = False
            self._forget(Kind.IMAGE, self._image)

    def _end_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        where = "" if self._host.name == "local" else f" on {self._host.name}"
        try:
            yield
        except TimeoutError as error:
            raise TimedOut(
                f"the engine's container for files and processes{where} did not answer in time"
            ) from error
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(
                f"the engine{where} gives no container for files and processes of others: {in_words(error)}",
                hint="run tare as root, or use an engine that runs as root and can mount TARE_HOME",
            ) from error
        except OSError as error:
            raise RunFailed(f"the engine's container for files and processes{where} is lost: {error}") from error

    def _made(self) -> _Line:
        engine = self._engine()
        around = surroundings(self._host, self._home)
        if not self._imported:
            self._note(Kind.IMAGE, self._image)
            repository, _, tag = self._image.rpartition(":")
            engine.api.import_image_from_data(
                _root(around), repository=repository, tag=tag, changes=[f"LABEL {LABEL}=image"]
            )
            self._imported = True
        self._before(self._wanted(engine, around, [], attached=False))
        self._note(Kind.CONTAINER, self._name)
        with suppress(NotFound):  # a lost one
            engine.containers.get(self._name).remove(force=True, v=True)
        program = ["/usr/bin/python3", "-I", "-S", "-c", SOURCE.read_text()]
        api: Any = engine.api
        made = api.create_container_from_config(self._wanted(engine, around, program, attached=True), self._name)
        return _Line.opened(str(made["Id"]), engine)

    def _wanted(
        self, engine: DockerClient, around: Surroundings, program: list[str], *, attached: bool
    ) -> Mapping[str, Any]:
        """Configuration of the container for the engine's API."""
        settings = engine.api.create_host_config(
            network_mode="none",
            pid_mode="host",
            read_only=True,
            cap_drop=["ALL"],
            cap_add=[*CAPABILITIES, *_TO_BECOME_THE_USER],
            security_opt=["no-new-privileges", _UNCONFINED],
            mounts=list(_mounts(around, self._home)),
        )
        wanted: Mapping[str, Any] = engine.api.create_container_config(
            self._image,
            program,
            entrypoint=_become_user(around),
            labels=labels("tare/sidecar", self._ledger.owner_on(self._host.name)),
            stdin_open=attached,
            host_config=settings,
            working_dir="/",
        )
        return wanted

    def _note(self, kind: Kind, ident: str) -> None:
        self._ledger.note(kind, ident, host=self._host.name)

    def _forget(self, kind: Kind, ident: str) -> None:
        self._ledger.forget(kind, ident, host=self._host.name)


def _comes_back(error: Exception, *, asked_before: bool) -> bool:
    """Whether a connection broke, as opposed to an engine that refuses, or a program that never answered."""
    if isinstance(error, TimeoutError | ReadTimeout | APIError):
        return False
    return isinstance(error, OSError) or (asked_before and isinstance(error, RunFailed))


class _Line:
    """The connection to a container's standard input and outputs, which the engine sends in frames."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._plain: socket.socket = connection._sock
        # The reader that parsed the HTTP header may already hold the first frames.
        self._reader: io.BufferedReader = connection._response.raw._fp.fp
        self._out, self._err = bytearray(), bytearray()

    @classmethod
    def opened(cls, container: str, engine: DockerClient) -> _Line:
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        line = cls(engine.api.attach_socket(container, params=wanted))
        try:
            engine.api.start(container)
        except BaseException:
            line.close()
            raise
        return line

    def ask(self, request: bytes, timeout_s: float) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + timeout_s
        self._plain.settimeout(timeout_s)
        self._plain.sendall(request)
        self._read_until(server.HEADER.size, deadline)
        words, content = server.HEADER.unpack(self._out[: server.HEADER.size])
        self._read_until(server.HEADER.size + words + content, deadline)
        answer = server.receive(io.BytesIO(self._out))
        self._out.clear()
        if answer is None:
            raise RunFailed("the engine's container for files and processes answers nothing")
        return answer

    def _read_until(self, size: int, deadline: float) -> None:
        while len(self._out) < size:
            stream, length = _FRAME.unpack(self._read_exactly(_FRAME.size, deadline))
            (self._out if stream == _STDOUT else self._err).extend(self._read_exactly(length, deadline))

    def _read_exactly(self, size: int, deadline: float) -> bytes:
        received = bytearray()
        while len(received) < size:
            if (left := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            self._plain.settimeout(left)
            chunk = self._reader.read1(min(size - len(received), _CHUNK))
            if not chunk:
                words = self._err.decode(errors="replace").strip().splitlines()
                raise RunFailed(
                    f"the engine's container for files and processes ended: {words[-1] if words else '?'}"
                )
            received += chunk
        return bytes(received)

    def close(self) -> None:
        """Close the container's standard input, which ends it."""
        self._connection._response.close()  # first, as it flushes its reader
        self._connection.close()
        self._plain.close()


@dataclass(frozen=True)
class Surroundings:
    """`programs`: name below / → target of a link, or "" for a directory. `cache`: whether ld.so(8) has one."""

    user: int
    group: int
    programs: Mapping[str, str]
    cache: bool


def surroundings(host: Host, home: Path) -> Surroundings:
    """Read the surroundings from the host; also makes `home` if it does not exist."""
    argv = ["sh", "-c", _LOOK, "sh", str(home), _CACHE, *_PROGRAMS]
    ids, cache, *programs = host.run(argv, timeout_s=_LOOK_S).text.splitlines()
    user, group = ids.split()
    links = dict(line.split(" ", 1) for line in programs)
    return Surroundings(int(user), int(group), links, cache == "cache")


def _become_user(around: Surroundings) -> list[str]:
    """Command by which root in the container becomes tare's user, who keeps few capabilities.

    New files then belong to this user.
    """
    kept = ",".join(["-all", *(f"+{name.lower()}" for name in CAPABILITIES)])
    sets = [f"--{name}={kept}" for name in ("bounding-set", "inh-caps", "ambient-caps")]
    return ["/usr/bin/setpriv", f"--reuid={around.user}", f"--regid={around.group}", "--clear-groups", *sets]


def _root(around: Surroundings) -> bytes:
    """A root file system of empty directories, and of links where the host has links (`/bin` to `usr/bin`)."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, link in {**around.programs, **dict.fromkeys(_EMPTY, "")}.items():
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            member.type, member.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.DIRTYPE, "")
            tar.addfile(member)
    return file.getvalue()


def _mounts(around: Surroundings, home: Path) -> Iterator[Mount]:
    read = [f"/{name}" for name, link in around.programs.items() if not link]
    for place in [*read, *([_CACHE] if around.cache else [])]:
        yield Mount(place, place, type="bind", read_only=True)
    for written in (str(home), CGROUPS):
        yield Mount(written, written, type="bind")
