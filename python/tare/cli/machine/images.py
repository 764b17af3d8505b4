"""`tare images`: list, build, verify and remove images on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.errors import TareError
from tare.images.image_store import ImageStore, StoredImage
from tare.images.maintenance import Verified
from tare.images.maintenance import remove as remove_image
from tare.images.maintenance import verify as verify_image
from tare.images.prepare import prepare
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import local_engine
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

DIFFERS = 1
_SHORT = 12

app = typer.Typer(help="List, build, verify and remove images.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Meant = Annotated[list[str], typer.Argument(help="Digest, its first digits, or reference.")]


@app.command("list")
def show_all(as_json: AsJson = False) -> None:  # noqa: FBT002 - an option, given by name
    """List the images that are ready on this machine."""
    _show(_image_store().all(), as_json=as_json)


@app.command()
def build(
    references: Annotated[list[str], typer.Argument(help="Recipe, docker://REF, oci:PATH[:TAG] or tar:PATH.")],
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild even if built before.")] = False,  # noqa: FBT002 - an option, given by name
    as_json: AsJson = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Prepare images: build or fetch them, unpack them, and import them into the engine if one answers."""
    image_store, made = _image_store(), list[StoredImage]()
    with local_engine() as engine, _ending_cleanly() as interrupts:
        if engine.why_not is not None:
            sys.stderr.write(f"tare: for bare runs only, as {engine.why_not}\n")
        for reference in references:
            sys.stderr.write(f"tare: {reference} …\n")
            with interrupts.allowed():
                image = prepare(
                    reference,
                    host=LocalHost(),
                    layout=image_store.layout,
                    ledger=image_store.ledger,
                    engine=engine.client,
                    rebuild=rebuild,
                    hold=False,
                )
            made += image_store.resolve(image.digest)
    _show(made, as_json=as_json)


@app.command()
def verify(meant: Meant = [], as_json: AsJson = False) -> None:  # noqa: B006, FBT002 - typer copies it
    """Compare unpacked trees and engine images with their recorded listings (exit code 1: something differs)."""
    image_store = _image_store()
    with local_engine() as engine, _ending_cleanly() as interrupts, image_store.lock():
        chosen = _chosen(image_store, meant) if meant else image_store.all()
        with interrupts.allowed():
            results = [(each, verify_image(each, image_store, engine.client)) for each in chosen]
    if as_json:
        trees = [asdict(verified) | {"good": verified.good} for _, verified in results]
        sys.stdout.write(json.dumps({"verified": trees}, indent=2) + "\n")
    else:
        sys.stdout.write("".join(_verdict(each, verified) for each, verified in results) or "no images\n")
    if not all(verified.good for _, verified in results):
        raise typer.Exit(DIFFERS)


@app.command()
def remove(meant: Meant, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option, given by name
    """Remove images from this machine and its engine; one that a run uses is refused."""
    image_store, removed, refused = _image_store(), list[StoredImage](), list[TareError]()
    with local_engine() as engine, image_store.lock(), _ending_cleanly():
        for each in _chosen(image_store, meant):
            try:
                remove_image(each, image_store, engine.client)
            except TareError as error:
                refused.append(error)
            else:
                removed.append(each)
    if as_json:
        digests = [each.image.digest for each in removed]
        sys.stdout.write(
            json.dumps({"removed": digests, "failed": [str(each) for each in refused]}, indent=2) + "\n"
        )
    else:
        sys.stdout.write("".join(f"removed {_named(each)}\n" for each in removed))
    if refused:
        sys.stderr.write("".join(f"tare: {error}\n" for error in refused))
        raise typer.Exit(refused[0].exit_code)


def _image_store() -> ImageStore:
    layout = default_layout()
    return ImageStore(layout, SqliteLedger(layout.ledger))


def _chosen(image_store: ImageStore, references: Sequence[str]) -> tuple[StoredImage, ...]:
    """Images that the references name, each once. Raises before anything is done if a reference names none."""
    images = (each for given in references for each in image_store.resolve(given))
    return tuple({each.image.digest: each for each in images}.values())


@contextmanager
def _ending_cleanly() -> Iterator[Interrupts]:
    """Let a signal end the command where it may be interrupted, after cleaning up."""
    interrupts = Interrupts()
    with interrupts.installed():
        try:
            yield interrupts
            with interrupts.allowed():
                pass
        except Interrupted as interrupted:
            sys.stderr.write(f"tare: interrupted by {interrupted}; nothing incomplete is left.\n")
            raise typer.Exit(interrupted.exit_code) from interrupted


def _show(images: Sequence[StoredImage], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"images": [_tree(each) for each in images]}, indent=2) + "\n")
        return
    if not images:
        sys.stdout.write("no images\n")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("reference", "digest", "size", "packages", "in engine", "made"):
        table.add_column(name, no_wrap=name != "reference", justify="right" if name == "size" else "left")
    for each in images:
        image = each.image
        table.add_row(
            Text(image.reference),
            image.digest[:_SHORT],
            f"{each.size_bytes / 1e6:.0f} MB",
            str(len(image.packages)) if image.packages else "unknown",
            "no" if image.engine_id is None else image.engine_id.removeprefix("sha256:")[:_SHORT],
            _made(each).astimezone().strftime("%Y-%m-%d %H:%M"),
        )
    Console(highlight=False).print(table)


def _tree(stored: StoredImage) -> dict[str, Any]:
    image = stored.image
    return {
        **{key: getattr(image, key) for key in ("reference", "digest", "rootfs", "engine_id")},
        "size_bytes": stored.size_bytes,
        "made_at": _made(stored).isoformat(timespec="seconds"),
        "packages": [list(package) for package in image.packages],
        "config": asdict(image.config),
    }


def _made(stored: StoredImage) -> datetime:
    return datetime.fromtimestamp(stored.made_at, UTC)


def _verdict(stored: StoredImage, verified: Verified) -> str:
    """One line for the tree and one for the engine's image."""
    tree = "is unchanged" if verified.tree is None else verified.tree
    engine = "is the same" if verified.engine is None else verified.engine
    if not verified.engine_checked:
        engine = "was not checked: it was not imported, or no engine answers"
    return f"{_named(stored)}: the tree {tree}\n{_named(stored)}: the engine's image {engine}\n"


def _named(stored: StoredImage) -> str:
    return f"{stored.image.digest[:_SHORT]} {stored.image.reference}"
