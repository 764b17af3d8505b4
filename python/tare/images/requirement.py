"""What images require of the machine that tare runs on, where they are built or fetched."""

from __future__ import annotations

from collections.abc import Iterator

from tare.errors import TareError
from tare.images import Workshop
from tare.images.image_store import ImageStore
from tare.images.recipe.debian_root import why_no_build
from tare.images.recipe.file import find_recipe, read_recipe
from tare.images.registry import IMAGE_SOURCES, split_reference
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites.layout import Layout
from tare.sites.reading import runs
from tare.sites.sqlite_ledger import SqliteLedger

_INSTALL = "apt-get install mmdebstrap"


def _lacks(there: HostPlan) -> Iterator[Lack]:
    """Yield each image that is neither there nor can be made; without a plan, why no image can be built."""
    for reference in sorted({placed.image for placed in there.placements}):
        if (why := _why_unavailable(reference, there)) is not None:
            yield Lack(f"the image {reference} is not available: {why}")
    if there.uses:
        return
    if not _has_builder(there):
        yield Lack("mmdebstrap is not installed", _INSTALL)
    elif (why := why_no_build(there.host)) is not None:
        yield Lack(why)


def _why_unavailable(reference: str, there: HostPlan) -> str | None:
    scheme, rest = split_reference(reference)
    try:
        key = IMAGE_SOURCES[scheme].cache_key(rest, Workshop(there.host, there.engine))
        if key is not None and there.layout is not None and _is_kept(key, there.layout):
            return None
    except TareError as error:
        return str(error)
    if scheme != "recipe":
        return None
    if read_recipe(find_recipe(rest)).suite is not None and (why := why_no_build(there.host)) is not None:
        return f"it is not built yet, and {why}"
    return None if _has_builder(there) else f"it is not built yet, and building it takes mmdebstrap: {_INSTALL}"


def _is_kept(key: str, layout: Layout) -> bool:
    return ImageStore(layout, SqliteLedger(layout.ledger)).find(key) is not None


def _has_builder(there: HostPlan) -> bool:
    return runs(there.host, ["mmdebstrap", "--version"])


IMAGES = Requirement(
    "images",
    needed_by="servers and clients that run from an image",
    tried_how="the image in TARE_HOME, else its source; for a recipe `mmdebstrap --version` and a user namespace",
    hint=_INSTALL,
    ask=_lacks,
    essential=True,
)
