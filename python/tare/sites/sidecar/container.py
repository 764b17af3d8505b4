"""The container behind the sidecar: made at the first question, gone with the connection, also of a killed tare."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from docker.errors import DockerException, ImageNotFound, NotFound
from docker.types import Mount
from requests.exceptions import RequestException

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.sites.engine import LABEL, in_words
from tare.sites.ledger import Kind, Ledger
from tare.sites.sidecar import server

if TYPE_CHECKING:
    import socket

    from docker import DockerClient
    from docker.models.containers import Container

SOURCE = Path(server.__file__)
_FRAME = struct.Struct(">BxxxL")
_STDOUT = 1
_CHUNK = 1 << 16
_SPARE_S, _START_S, _END_S = 10.0, 60.0, 30
_PROGRAMS = ("bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr")
"""Where a host's own programs and their libraries are; seen read-only."""
_CACHE = "/etc/ld.so.cache"
CGROUPS = "/sys/fs/cgroup"
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SYS_PTRACE")
"""To give files away, reach and change those of others, and read what the kernel shows of others' processes."""
_TO_BECOME_THE_USER = ("SETUID", "SETGID", "SETPCAP")


def _become_user() -> list[str]:
    """Root in the container becomes the user that tare runs as: what is made is theirs. Few capabilities stay."""
    kept = ",".join(["-all", *(f"+{name.lower()}" for name in CAPABILITIES)])
    sets = [f"--{name}={kept}" for name in ("bounding-set", "inh-caps", "ambient-caps")]
    return ["/usr/bin/setpriv", f"--reuid={os.getuid()}", f"--regid={os.getgid()}", "--clear-groups", *sets]


class Sidecar:
    """One at a time asks; the others wait."""

    def __init__(self, engine: DockerClient, home: Path, ledger: Ledger, labels: Mapping[str, str]) -> None:
        """`labels`: those that mark a container as this tare's."""
        self._engine = engine
        self._home = home
        self._ledger = ledger
        self._labels = labels
        self._lock = Lock()
        self._line: _Line | None = None
        self._name = f"tare-sidecar-{uuid4().hex[:12]}"
        self._image = f"tare/sidecar:{self._name.rpartition('-')[2]}"

    def ask(
        self, words: Mapping[str, Any], content: bytes = b"", *, timeout_s: float
    ) -> tuple[dict[str, Any], bytes]:
        """An answer. Raises `EnvironmentLacks` where the engine makes no sidecar, `RunFailed` if it is lost."""
        with self._lock, self._explained():
            line = self._line = self._line or self._made()
            try:
                return line.ask(server.message(dict(words), content), timeout_s + _SPARE_S)
            except (OSError, RunFailed):
                self._close()
                raise

    def close(self) -> None:
        """Take away container and image; a sidecar that is asked later is a new one."""
        with self._lock, suppress(DockerException, RequestException):
            self._close()

    def _close(self) -> None:
        line, self._line = self._line, None
        if line is None:
            return
        line.close()
        with suppress(NotFound):
            line.container.remove(force=True, v=True)
        self._ledger.forget(Kind.CONTAINER, self._name)
        with suppress(ImageNotFound):
            self._engine.images.remove(self._image, force=True)
        self._ledger.forget(Kind.IMAGE, self._image)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise TimedOut("the engine's container for files and processes did not answer in time") from error
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(
                f"the engine gives no container for files and processes of others: {in_words(error)}",
                hint="as a user, tare needs an engine of root's that mounts TARE_HOME; or run tare as root",
            ) from error
        except OSError as error:
            raise RunFailed(f"the engine's container for files and processes is lost: {error}") from error

    def _made(self) -> _Line:
        self._home.mkdir(parents=True, exist_ok=True)
        self._ledger.note(Kind.IMAGE, self._image)
        repository, _, tag = self._image.rpartition(":")
        self._engine.api.import_image_from_data(
            _root(), repository=repository, tag=tag, changes=[f"LABEL {LABEL}=image"]
        )
        self._ledger.note(Kind.CONTAINER, self._name)
        container = self._engine.containers.create(
            self._image,
            entrypoint=_become_user(),
            command=["/usr/bin/python3", "-I", "-S", "-c", SOURCE.read_text()],
            name=self._name,
            labels=dict(self._labels),
            network_mode="none",
            pid_mode="host",
            read_only=True,
            stdin_open=True,
            cap_drop=["ALL"],
            cap_add=[*CAPABILITIES, *_TO_BECOME_THE_USER],
            security_opt=["no-new-privileges"],
            mounts=list(_mounts(self._home)),
            working_dir="/",
        )
        return _Line.opened(container, self._engine)


class _Line:
    """The connection to a container's standard input and outputs, which the engine gives in frames."""

    def __init__(self, container: Container, connection: Any) -> None:
        self.container = container
        self._connection = connection
        self._plain: socket.socket = connection._sock
        # The reader that took in the HTTP header may hold the first frames already.
        self._reader: io.BufferedReader = connection._response.raw._fp.fp
        self._out, self._err = bytearray(), bytearray()

    @classmethod
    def opened(cls, container: Container, engine: DockerClient) -> _Line:
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        line = cls(container, engine.api.attach_socket(str(container.id), params=wanted))
        container.start()
        return line

    def ask(self, request: bytes, timeout_s: float) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + timeout_s
        self._plain.settimeout(timeout_s)
        self._plain.sendall(request)
        self._until(server.HEADER.size, deadline)
        words, content = server.HEADER.unpack(self._out[: server.HEADER.size])
        self._until(server.HEADER.size + words + content, deadline)
        answer = server.receive(io.BytesIO(self._out))
        self._out.clear()
        if answer is None:
            raise RunFailed("the engine's container for files and processes answers nothing")
        return answer

    def _until(self, size: int, deadline: float) -> None:
        while len(self._out) < size:
            stream, length = _FRAME.unpack(self._exactly(_FRAME.size, deadline))
            (self._out if stream == _STDOUT else self._err).extend(self._exactly(length, deadline))

    def _exactly(self, size: int, deadline: float) -> bytes:
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
        """The end of its input ends it."""
        self._connection.close()
        self._plain.close()


def _root() -> bytes:
    """A root file system of empty directories, and of links where the host has links (`/bin` to `usr/bin`)."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in (*_PROGRAMS, "proc", "sys", "dev", "etc", "tmp"):
            place = Path("/") / name
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if place.is_symlink():
                member.type, member.linkname = tarfile.SYMTYPE, str(place.readlink())
            elif place.is_dir():
                member.type = tarfile.DIRTYPE
            else:
                continue
            tar.addfile(member)
    return file.getvalue()


def _mounts(home: Path) -> Iterator[Mount]:
    for name in _PROGRAMS:
        place = Path("/") / name
        if place.is_dir() and not place.is_symlink():
            yield Mount(str(place), str(place), type="bind", read_only=True)
    if Path(_CACHE).exists():
        yield Mount(_CACHE, _CACHE, type="bind", read_only=True)
    for written in (str(home), CGROUPS):
        yield Mount(written, written, type="bind")
