"""Whether two servers at once had to wait for the disk that both share."""

from __future__ import annotations

from tare.run.record import RunRecord

MOST_BYTES_PER_S = 1 << 20
"""64 pages of 16 KiB a second: about half of what a single spinning disk does, little to anything faster."""


def bytes_per_s(record: RunRecord) -> float | None:
    """What the SUT read and wrote while it was measured, by the run's trace; `None` where that tells nothing."""
    usage = record.usage or {}
    moved = [usage.get(key) for key in ("sut_read_bytes", "sut_write_bytes")]
    known = [float(part) for part in moved if part is not None]
    return sum(known) / float(usage["monotonic_s"]) if known and usage.get("monotonic_s") else None


def too_much(record: RunRecord) -> str | None:
    """Why the run may not stand in a duet, `None` where nothing speaks against it."""
    rate = bytes_per_s(record)
    if rate is None or rate <= MOST_BYTES_PER_S:
        return None
    return (
        f"{record.arm} read and wrote {rate / 1e6:.1f} MB/s while it was measured: two arms of a duet share the "
        "disk and would wait for each other, so use another protocol for such work"
    )
