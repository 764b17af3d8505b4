"""What Java brings to `bench.load`: YCSB, built of java/ycsb, and Cassandra with its stress tool."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.load.servers import Server, free_port, program
from tare.images.image_store import ImageStore
from tare.sites.layout import default_layout
from tare.sites.sqlite_ledger import SqliteLedger

ROOT = Path(__file__).resolve().parents[2]
BUILD_S, START_S = 900, 180
IMAGE = "cassandra-3.11"
PORT = 9042
"""Cassandra's own, as its stress tool is told no other."""
READS = {
    "recordcount": "10000",
    "fieldcount": "5",
    "fieldlength": "34",
    "readproportion": "1",
    "updateproportion": "0",
}
"""As large as the rows of cassandra-stress."""
ROWS = 10_000


def ycsb_jars() -> str | None:
    """The class path of YCSB with tare's bindings, built once into build/; `None`: there is no Maven or JDK."""
    at = ROOT / "build" / "bench-ycsb"
    if not (at / "target" / "lib").is_dir():
        if shutil.which("mvn") is None or shutil.which("javac") is None:
            return None
        shutil.copytree(ROOT / "java" / "ycsb", at, dirs_exist_ok=True)
        words = ["mvn", "-B", "-q", "-Dstyle.color=never", "-f", str(at / "pom.xml"), "package"]
        subprocess.run(words, check=True, timeout=BUILD_S, stdout=sys.stderr)
    return f"{at}/target/*:{at}/target/lib/*"


def ycsb_words(jars: str, binding: str, threads: int, operations: int, properties: Sequence[str]) -> list[str]:
    """YCSB's transactions; `properties` are NAME=VALUE."""
    words = ["java", "-cp", jars, "site.ycsb.Client", "-t", "-db", f"tare.ycsb.{binding}", "-threads", str(threads)]
    own = ("workload=site.ycsb.workloads.CoreWorkload", f"operationcount={operations}")
    return [*words, *(word for each in (*own, *properties) for word in ("-p", each))]


def cassandra_root() -> Path | None:
    """Cassandra 3.11's image as a directory below build/; `None`: there is no such image, or we are not root."""
    at = ROOT / "build" / "bench-cassandra"
    if (at / "opt" / "cassandra" / "tools").is_dir():
        return at
    layout = default_layout()
    images = [
        each.image
        for each in ImageStore(layout, SqliteLedger(layout.ledger)).all()
        if each.image.reference.removesuffix(".yaml").rpartition("/")[2] == IMAGE
    ]
    if os.geteuid() != 0 or not images:
        return None
    part = at.with_name(f"{at.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a copy that was interrupted
    shutil.copytree(images[-1].rootfs, part, symlinks=True)
    # Cassandra asks for the address of the host's name.
    (part / "etc" / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    part.rename(at)
    return at


def inside(root: Path, command: str) -> list[str]:
    """A command of the shell in this directory, with mounts that go when it ends."""
    mounts = f"mount -t proc proc {root}/proc && mount --bind /dev {root}/dev && mount -t tmpfs tmpfs {root}/tmp"
    path = "PATH=/opt/cassandra/bin:/opt/cassandra/tools/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'{mounts} && exec chroot {root} /usr/bin/env {path} sh -c "{command}"',
    ]


@contextmanager
def cassandra(cpu: int) -> Iterator[Server]:
    """One node with a table of YCSB's and one of cassandra-stress, 10,000 rows each."""
    root = cassandra_root()
    if root is None:
        raise FileNotFoundError(IMAGE)
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "log").open("wb") as log:
        options = f"-Dcassandra.storagedir=/tmp/data -Dcassandra.jmx.local.port={free_port()}"
        start = f"MAX_HEAP_SIZE=512M HEAP_NEWSIZE=128M CASSANDRA_LOG_DIR=/tmp exec cassandra -R -f {options}"
        words = ["taskset", "-c", str(cpu), *inside(root, start)]
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            fill = inside(root, stress(f"write n={ROWS}", threads=16))
            deadline = time.monotonic() + START_S
            while subprocess.run(fill, capture_output=True, timeout=START_S, check=False).returncode:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError(f"Cassandra does not answer: {(Path(scratch) / 'log').read_text()[-500:]}")
                time.sleep(2)
            yield Server(PORT, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=START_S)


LATTE_SCRIPT = Path(__file__).with_name("latte.rn")


def latte(command: str, *options: str) -> list[str]:
    """A command of latte, on one connection. The driver in it is Rust's: nothing of it is Java."""
    common = ["--connections", "1", "--consistency", "ONE", "--quiet"] if command != "schema" else []
    return [program("latte"), command, *common, *options, str(LATTE_SCRIPT), f"127.0.0.1:{PORT}"]


def stress(what: str, threads: int) -> str:
    """A command of cassandra-stress on the rows written first, `threads` requests at once."""
    return (
        f"exec cassandra-stress {what} no-warmup cl=ONE -mode native cql3 -rate threads={threads} "
        f"-pop seq=1..{ROWS} -node 127.0.0.1"
    )
