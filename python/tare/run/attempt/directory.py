"""The work directory of a run, below `Layout.work`. It exists while the run lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tare.deployments.directories import remove_tree
from tare.errors import RunFailed
from tare.images import Image
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.run.at_once import at_once
from tare.run.attempt.teardown import Teardown
from tare.sites import Host, Output
from tare.sites.ledger import Kind, Ledger
from tare.workloads import output_path

_TIMEOUT_S = 60.0
MOST_OUTPUT_BYTES = 256 << 20
"""Largest file of a client that is read, as much as for YCSB, which may print every operation."""


@dataclass(frozen=True)
class WorkDirectory:
    """Paths on the host: `data` for the database, `raw` for output, run directories by name."""

    host: Host
    path: str

    @property
    def data(self) -> str:
        """The server's data directory."""
        return f"{self.path}/data"

    @property
    def raw(self) -> str:
        """Directory of the output of all programs; all of it is collected."""
        return f"{self.path}/raw"

    def output(self, name: str) -> Output:
        """Return the paths of a program's standard output and standard error."""
        return Output(stdout=f"{self.raw}/{name}.stdout", stderr=f"{self.raw}/{name}.stderr")

    def run_dir(
        self, name: str, files: Mapping[str, str], image: Image, binary_files: Mapping[str, bytes] | None = None
    ) -> str:
        """Make a directory with these files that only the image's user may enter.

        Files may hold passwords, so they are written below a closed directory, which is handed over last.
        """
        path = f"{self.path}/{name}"
        self.host.run(["install", "-d", "-m", "0700", "--", path], timeout_s=_TIMEOUT_S)
        texts = {file: content.encode() for file, content in files.items()}
        for file, content in {**texts, **(binary_files or {})}.items():
            self.host.put(content, f"{path}/{file}", mode=0o600)
        self.give(path, image)
        return path

    @property
    def storage(self) -> str:
        """Directory for what a storage makes for the data, with its mounts."""
        return f"{self.path}/storage"

    def bring(self, name: str, target: Path) -> None:
        """Copy a file below the work directory to the local path `target`, if the file exists."""
        if self.host.run(["test", "-f", f"{self.path}/{name}"], timeout_s=_TIMEOUT_S, check=False).code == 0:
            self._get(f"{self.path}/{name}", target)

    def _get(self, source: str, target: Path) -> None:
        """Copy a file that will be parsed as a whole. Raises `RunFailed` for one that is too large for that.

        A client may print for ever, or leave a file that is far larger than what is in it.
        """
        told = self.host.run(["stat", "-c", "%s", "--", source], timeout_s=_TIMEOUT_S, check=False).text.strip()
        if told.isdecimal() and int(told) > MOST_OUTPUT_BYTES:
            what = f"{target.name} of {self.host.name} has {int(told)} bytes"
            raise RunFailed(f"{what}, and tare reads {MOST_OUTPUT_BYTES >> 20} MiB at most")
        self.host.get(source, target)

    def bring_output(self, name: str, staging: Path, files: Sequence[str]) -> tuple[Path, Path]:
        """Copy a program's output to `staging`, with the `files` from its run directory beside it.

        Returns the local paths of standard output and standard error.
        """
        staging.mkdir(parents=True, exist_ok=True)
        stdout, stderr = staging / f"{name}.stdout", staging / f"{name}.stderr"
        output = self.output(name)
        left = [partial(self.bring, f"{name}/{file}", output_path(stdout, file)) for file in files]
        at_once([partial(self._get, output.stdout, stdout), partial(self._get, output.stderr, stderr), *left])
        return stdout, stderr

    def empty_data(self, image: Image, path: str | None = None) -> None:
        """Make an empty data directory."""
        path = path or self.data
        self.host.run(["install", "-d", "-m", "0750", "--", path], timeout_s=_TIMEOUT_S)
        self.give(path, image)

    def give(self, path: str, image: Image) -> None:
        """Give a directory and its content to the image's user, as the image's own /etc/passwd numbers it."""
        if image.owner is not None:
            self.host.run(["chown", "-R", "--", image.owner, path], timeout_s=_TIMEOUT_S)


def make_work_directory(workdir: WorkDirectory, ledger: Ledger, *, closed: bool = False) -> None:
    """Note the directory in the ledger, then make it. A directory of the same name from a dead run is removed.

    `closed`: only its owner may enter it. See `closed_to_others`.
    """
    ledger.note(Kind.PATH, workdir.path, host=workdir.host.name)
    remove_tree(workdir.host, workdir.path)
    mode = "0700" if closed else "0755"
    workdir.host.run(["install", "-d", "-m", mode, "--", workdir.path, workdir.raw], timeout_s=_TIMEOUT_S)


def closed_to_others(host: HostFacts, engines: Sequence[EngineFacts | None]) -> bool:
    """Whether only root may enter a run's directory, from the facts of the host and of the run's engines there.

    Root in a container can make a set-uid program of root in its data, and servers print anything. A user's engine
    needs access by the path; its root is not root.
    """
    return host.tare_is_root is True and not any(each is not None and each.engine_rootless for each in engines)


def take_work_directory(
    workdir: WorkDirectory, ledger: Ledger, teardown: Teardown, *, named: bool = False, closed: bool = False
) -> None:
    """Make the directory and register its removal in the teardown. `named`: several hosts have one."""
    clear_later([(workdir, ledger)], teardown, named=named)
    make_work_directory(workdir, ledger, closed=closed)


def clear_later(made: Sequence[tuple[WorkDirectory, Ledger]], teardown: Teardown, *, named: bool) -> None:
    """Register the removal of directories that are about to be made; all hosts remove them at once."""
    on = f" on {' and '.join(workdir.host.name for workdir, _ in made)}" if named else ""
    steps = [partial(clear_work_directory, workdir, ledger) for workdir, ledger in made]
    what = "work directory" if len(made) == 1 else "work directories"
    teardown.add(f"removing the {what}{on}", lambda: at_once(steps))


def clear_work_directory(workdir: WorkDirectory, ledger: Ledger) -> None:
    """Remove the directory and strike it out of the ledger."""
    remove_tree(workdir.host, workdir.path)
    ledger.forget(Kind.PATH, workdir.path, host=workdir.host.name)
