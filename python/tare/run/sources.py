"""Whether an image can be had on this machine, told without fetching anything."""

from __future__ import annotations

from docker import DockerClient

from tare.errors import RunFailed, TareError
from tare.images import IMAGE_SOURCES, Workshop, split_reference
from tare.images.shelf import Shelf
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger

_TIMEOUT_S = 30.0


def why_no_image(
    reference: str, host: Host, engine: DockerClient | None, ledger: Ledger, layout: Layout
) -> str | None:
    """Why `reference` cannot be had, with what to do; `None` where it is there or can be fetched."""
    scheme, rest = split_reference(reference)
    try:
        key = IMAGE_SOURCES[scheme].cache_key(rest, Workshop(host, engine))
        if key is not None and Shelf(layout, ledger).find(key) is not None:
            return None
    except TareError as error:
        return str(error)
    if host.run(["id", "-u"], timeout_s=_TIMEOUT_S).text.strip() != "0":
        return "it is not built yet, and building it keeps the owners of files, which takes root"
    if scheme == "recipe" and not _runs(host, "mmdebstrap"):
        return "it is not built yet, and building it takes mmdebstrap: apt-get install mmdebstrap"
    return None


def _runs(host: Host, program: str) -> bool:
    try:
        return host.run([program, "--version"], timeout_s=_TIMEOUT_S, check=False).code == 0
    except RunFailed:
        return False
