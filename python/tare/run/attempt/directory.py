"""The directory a run works in: one below `Layout.work`, there while the run lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tare.deployments.directories import remove_tree
from tare.images import Image
from tare.run.at_once import at_once
from tare.run.attempt.teardown import Teardown
from tare.sites import Host, Output
from tare.sites.ledger import Kind, Ledger
from tare.workloads import output_path

_TIMEOUT_S = 60.0


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
        """Output of all programs; collected whole."""
        return f"{self.path}/raw"

    def output(self, name: str) -> Output:
        """The two raw files of a program."""
        return Output(stdout=f"{self.raw}/{name}.stdout", stderr=f"{self.raw}/{name}.stderr")

    def run_dir(
        self, name: str, files: Mapping[str, str], image: Image, binary_files: Mapping[str, bytes] | None = None
    ) -> str:
        """A new directory that only the image's user may enter, with these files in it.

        Files are written below a closed directory and handed over last: they may hold passwords.
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
        """What a storage may make for the data, with its mounts."""
        return f"{self.path}/storage"

    def bring(self, name: str, target: Path) -> None:
        """Copy a file below the directory to `target` here, where there is one."""
        if self.host.run(["test", "-f", f"{self.path}/{name}"], timeout_s=_TIMEOUT_S, check=False).code == 0:
            self.host.get(f"{self.path}/{name}", target)

    def bring_output(self, name: str, staging: Path, files: Sequence[str]) -> tuple[Path, Path]:
        """Copy what a program printed to `staging`, and beside it the `files` that it left in its run directory.

        Standard output and standard error there.
        """
        staging.mkdir(parents=True, exist_ok=True)
        stdout, stderr = staging / f"{name}.stdout", staging / f"{name}.stderr"
        output = self.output(name)
        left = [partial(self.bring, f"{name}/{file}", output_path(stdout, file)) for file in files]
        at_once(
            [partial(self.host.get, output.stdout, stdout), partial(self.host.get, output.stderr, stderr), *left]
        )
        return stdout, stderr

    def empty_data(self, image: Image, path: str | None = None) -> None:
        """A data directory with nothing in it yet."""
        path = path or self.data
        self.host.run(["install", "-d", "-m", "0750", "--", path], timeout_s=_TIMEOUT_S)
        self.give(path, image)

    def give(self, path: str, image: Image) -> None:
        """Make a directory and what is in it the image's user's, as its own /etc/passwd knows it."""
        if image.owner is not None:
            self.host.run(["chown", "-R", "--", image.owner, path], timeout_s=_TIMEOUT_S)


def make_work_directory(workdir: WorkDirectory, ledger: Ledger, *, closed: bool = False) -> None:
    """Make the directory, noted in the ledger first; a dead run's of the same name is cleared away.

    `closed`: nobody but its owner may enter it. See `closed_to_others`.
    """
    ledger.note(Kind.PATH, workdir.path, host=workdir.host.name)
    remove_tree(workdir.host, workdir.path)
    mode = "0700" if closed else "0755"
    workdir.host.run(["install", "-d", "-m", mode, "--", workdir.path, workdir.raw], timeout_s=_TIMEOUT_S)


def closed_to_others(host: Mapping[str, Any], engine: Mapping[str, Any] | None) -> bool:
    """Whether a run's directory is to be root's alone, by the facts of a host and of the engine of the run.

    Root in a container can make a set-uid program of root's in its data, and servers print what they like.
    A user's engine has to get in by the path; its root is not root.
    """
    return host.get("tare_is_root") is True and not (engine or {}).get("engine_rootless")


def take_work_directory(
    workdir: WorkDirectory, ledger: Ledger, teardown: Teardown, *, named: bool = False, closed: bool = False
) -> None:
    """Make the directory, to be cleared away in the teardown. `named`: it is one of several hosts'."""
    clear_later([(workdir, ledger)], teardown, named=named)
    make_work_directory(workdir, ledger, closed=closed)


def clear_later(made: Sequence[tuple[WorkDirectory, Ledger]], teardown: Teardown, *, named: bool) -> None:
    """Have directories that are about to be made cleared away in the teardown, of all hosts at once."""
    on = f" on {' and '.join(workdir.host.name for workdir, _ in made)}" if named else ""
    steps = [partial(clear_work_directory, workdir, ledger) for workdir, ledger in made]
    what = "work directory" if len(made) == 1 else "work directories"
    teardown.add(f"removing the {what}{on}", lambda: at_once(steps))


def clear_work_directory(workdir: WorkDirectory, ledger: Ledger) -> None:
    """Remove the directory and strike it out."""
    remove_tree(workdir.host, workdir.path)
    ledger.forget(Kind.PATH, workdir.path, host=workdir.host.name)
