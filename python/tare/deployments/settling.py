"""The page cache's state over a directory before a run: on disk and forgotten, or read once."""

from __future__ import annotations

from tare.sites import Host

_SETTLE_S = 4 * 3600.0
_WORTH_IT = "+255k"
"""A database keeps some hundred small files of settings and definitions; what matters is in the large ones."""
_AT_ONCE = ("xargs", "-0", "-r", "-P", "16", "-n", "16")
"""Small files synced one after the other wait for a commit of the journal each; at once they share them."""


def settle(host: Host, directory: str, *, warmed: bool) -> None:
    """Written back to disk, then out of the page cache; with `warmed`, every file is read once after that.

    What was just written would else be written back during the measure phase, and its cached pages would be charged
    to nobody's memory limit (Documentation/admin-guide/cgroup-v1/memory.rst, 2.3: first touch is charged).
    """
    names = host.run(["find", directory, "-type", "f", "-print0"], timeout_s=_SETTLE_S).stdout
    host.run([*_AT_ONCE, "sync", "--"], timeout_s=_SETTLE_S, stdin=names)
    forget = ["dd", "if={}", "iflag=nocache", "count=0", "status=none", ";"]
    host.run(["find", directory, "-type", "f", "-size", _WORTH_IT, "-exec", *forget], timeout_s=_SETTLE_S)
    if warmed:
        read = ["dd", "if={}", "of=/dev/null", "bs=1M", "status=none", ";"]
        host.run(["find", directory, "-type", "f", "-exec", *read], timeout_s=_SETTLE_S)
