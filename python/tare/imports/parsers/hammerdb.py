"""HammerDB 2 to 5: the log of TPROC-C runs, whose result is new orders and transactions a minute.

The summary of a time profile (modules/xtprof) has times of each procedure over all virtual users, also those of the
ramp-up. HammerDB writes it to a file of its own, which people append to the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.cutting import Part, Stage, cut, report_of, stated
from tare.imports.parsers.figures import NUMBER, Figures, Kind, Times

_STAGES = (
    Stage(re.compile(r"HammerDB CLI v|Hammerdb Log @"), once=False),
    Stage(re.compile(r".*(?:Virtual Users? Created|Vuser \d+ created|Beginning rampup time)"), once=False),
    Stage(re.compile(r".*TEST RESULT ?: ?System achieved ")),
    Stage(re.compile(r".*Vuser \d+:FINISHED"), once=False),
)
_RESULT = re.compile(
    r"TEST RESULT ?: ?System achieved "
    rf"(?:{NUMBER} NOPM from {NUMBER} (.+?) TPM|{NUMBER} (.+?) TPM at {NUMBER} NOPM)"
)
_SAYS: Mapping[str, re.Pattern[str]] = {
    "version": re.compile(r".*?HammerDB CLI v(\S+)"),
    "users": re.compile(r".*?(?:Vuser 1:)?(\d+) (?:Active )?Virtual Users configured"),
}
_SUMMARY = re.compile(r".*>>>>> (?:SUMMARY OF \d+ ACTIVE VIRTUAL USERS|COMBINED METRICS ACROSS ALL USERS)")
_END = re.compile(r".*(?:\+-\+-|>>>>> VIRTUAL USER)")
_PROCEDURE = re.compile(r".*>>>>> PROC: (\w+)")
_TIME = re.compile(rf"\b(CALLS|MIN|AVG|MAX|P99|P95|P50): {NUMBER}")


class HammerDb:
    """Logs of HammerDB."""

    title: ClassVar[str] = "HammerDB 2 to 5 (TPROC-C)"
    says: ClassVar[tuple[str, ...]] = ("version", "users", "database")

    def recognises(self, text: str) -> bool:
        """Its result, lines of its virtual users, or its time profile."""
        result = "System achieved" in text and "NOPM" in text
        return result or ("HammerDB" in text and "Vuser 1" in text) or (">>>>> PROC: " in text and "CALLS:" in text)

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:  # noqa: ARG002 - it counts no errors
        """Each result of the log."""
        parts = [part for part in cut(text.split("\n"), _STAGES) if part.ranks]
        some = [part for part in parts if 2 in part.ranks]
        if not some:
            yield Report(None, _why_none(text), text=text)
        for part in some:
            says = stated(part.lines, _SAYS)
            yield report_of(part, says, partial(_figures, part, says), ("errors-uncounted",))


def _why_none(text: str) -> str:
    failed = next((line for line in text.split("\n") if "FINISHED FAILED" in line or "Error in" in line), None)
    if failed is not None:
        return f"HammerDB: {failed.strip()[:200]}"
    profile = ">>>>> PROC: " in text
    return "a time profile without its run's log: append it there" if profile else "it has no TEST RESULT"


def _figures(part: Part, says: dict[str, str]) -> Figures:
    for line in part.lines:
        if "FINISHED FAILED" in line:
            raise RunFailed(f"HammerDB: {line.strip()[:200]}")
    match = next((match for line in part.lines if (match := _RESULT.search(line))), None)
    if match is None:
        raise RunFailed(f"HammerDB's result at line {part.first} is cut short, or of another kind than TPROC-C")
    new_orders, transactions, database, before, database_before, orders_before = match.groups()
    says["database"] = database or database_before
    rate, all_rate = float(new_orders or orders_before), float(transactions or before)
    if rate <= 0:
        raise RunFailed("no new order a minute")
    return Figures(
        throughput=rate / 60,
        latency=Times(blind=True),
        unit="new orders",
        errors=None,
        kinds=_kinds(part),
        details={"new_orders_per_min": rate, "transactions_per_min": all_rate},
    )


def _kinds(part: Part) -> dict[str, Kind]:
    """Times of each procedure in the last summary of the time profile; calls are not those of the rate."""
    kinds: dict[str, Kind] = {}
    inside, name = False, ""
    found: dict[str, float] = {}
    for line in part.lines:
        if _SUMMARY.match(line):
            inside, name, kinds = True, "", {}
        elif _END.match(line):
            inside = inside and not kinds
        elif inside and (match := _PROCEDURE.match(line)):
            name, found = match.group(1).lower(), {}
        elif inside and name:
            found |= {key: float(value) for key, value in _TIME.findall(line)}
            mean, least, most, p50, p95, p99 = (
                found.get(key) for key in ("AVG", "MIN", "MAX", "P50", "P95", "P99")
            )
            kinds[name] = Kind(Times(mean, least, most, p50, p95, p99, blind=True))
    return kinds
