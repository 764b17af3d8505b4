"""Where the latency of each arm went, as rows of text."""

from __future__ import annotations

from tare.report.content import Report
from tare.report.figures import amount, percent
from tare.report.plain import plain

GUILT_TITLE = "Where the latency went"
GUILT_COLUMNS = ("arm", "of", "ms", "sent late", "waiting", "wire and server", "unread", "made by the client")
GUILT_READING = (
    "Of requests around each percentile, in ms, medians over runs. Sent late: from the intended time until the "
    "client noticed. Waiting: until it was sent, because its connection had other requests in flight. Wire and "
    "server: until the kernel had the reply. Unread: until the client had read it. The client itself causes sent "
    "late and unread."
)


def guilt_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """Return a row for each arm and percentile, with the cells of `GUILT_COLUMNS`; nothing without figures."""
    return tuple(
        (
            plain(arm.arm, 80),
            percentile,
            amount(one.lag_ms + one.waiting_ms + one.server_ms + one.unread_ms),
            *(amount(part) for part in (one.lag_ms, one.waiting_ms, one.server_ms, one.unread_ms)),
            percent(one.client, signed=False),
        )
        for arm in report.analysis.arms
        for percentile, one in arm.guilt.items()
    )
