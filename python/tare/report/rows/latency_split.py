"""Where the latency of each arm went, as rows of text."""

from __future__ import annotations

from tare.report.content import Report
from tare.report.figures import amount, percent
from tare.report.plain import plain

LATENCY_SPLIT_TITLE = "Where the latency went"
LATENCY_SPLIT_COLUMNS = (
    "arm",
    "of",
    "ms",
    "sent late",
    "waiting",
    "wire and server",
    "unread",
    "due to the client",
)
LATENCY_SPLIT_READING = (
    "Of requests around each percentile, in ms, medians over runs. Sent late: from the intended time until the "
    "client noticed. Waiting: until it was sent, because its connection had other requests in flight. Wire and "
    "server: until the kernel had the reply. Unread: until the client had read it. The client itself causes sent "
    "late and unread."
)


def latency_split_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """Return a row of `LATENCY_SPLIT_COLUMNS` for each arm and percentile; nothing without figures."""
    return tuple(
        (
            plain(arm.arm, 80),
            percentile,
            amount(one.lag_ms + one.waiting_ms + one.server_ms + one.unread_ms),
            *(amount(part) for part in (one.lag_ms, one.waiting_ms, one.server_ms, one.unread_ms)),
            percent(one.client, signed=False),
        )
        for arm in report.analysis.arms
        for percentile, one in arm.latency_split.items()
    )
