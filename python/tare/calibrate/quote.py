"""What a report says about the calibration of its machine, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tare.calibrate.archive import Archive
from tare.calibrate.pooled import Injected, Share, Smallest
from tare.calibrate.summary import Identity, Summary, identity_of_run
from tare.record.run_record import RunRecord

NOT_CALIBRATED = "This machine is not calibrated; `tare calibrate` shows how far its intervals can be trusted."
PAIR_NOT_CALIBRATED = "This pair of hosts is not calibrated; `tare calibrate --sites FILE` tests its intervals."


def quote_for(records: Sequence[RunRecord], root: Path) -> str | None:
    """Quote the calibration of the machine or hosts of the last run; `root`: directory of the calibrations."""
    if not records:
        return None
    return quote(Archive(root), identity_of_run(records[-1]))


def quote(archive: Archive, identity: Identity) -> str:
    """Quote the calibration under the same versions; else the latest under other versions, which is then stated."""
    summaries = [each for each in archive.summaries(identity.machine_key) if each.false_positives.of]
    same = [each for each in summaries if each.identity.versions_key == identity.versions_key]
    if not summaries:
        return NOT_CALIBRATED if identity.client is None else PAIR_NOT_CALIBRATED
    summary = (same or summaries)[-1]
    return sentences(summary) + ("" if same else f" {_other_versions(summary.identity, identity)}")


def sentences(summary: Summary) -> str:
    """List false positives, coverage and bias of each injection, then what is detectable in how many minutes."""
    where = "On this machine" if summary.identity.client is None else "Between these two hosts"
    sentence = f"{where} {_false(summary.false_positives)}"
    judged = [each for each in summary.injections if each.covered.of]
    shown = _shown(summary.smallest)
    if not judged:
        return f"{sentence}; no injected effect has been evaluated yet.{shown}"
    listed = "; ".join(_covered(each) for each in judged)
    return f"{sentence}. Injected effects were covered by their 95 % intervals (bias in points): {listed}.{shown}"


def _covered(injected: Injected) -> str:
    bias = "" if injected.bias.point is None else f", bias {100 * injected.bias.point:+.2f}"
    return f"{injected.injection} {injected.covered.count} of {injected.covered.of}{bias}"


def _shown(smallest: Sequence[Smallest]) -> str:
    """A sentence on detectable losses; empty if the machine's spread is unknown."""
    if not smallest:
        return ""
    losses = [
        f"{'none' if each.overhead is None else f'{percent(each.overhead)} %'} in {each.minutes:g} min"
        for each in smallest
    ]
    return f" Smallest loss of throughput that half of all studies detect here: {', '.join(losses)}."


def _false(share: Share) -> str:
    studies = "1 A/A comparison" if share.of == 1 else f"{share.of} A/A comparisons"
    return f"{studies} gave {percent(share.share)} % false positives {interval(share)}, nominally 5 %"


def interval(share: Share) -> str:
    """Format an interval in percent: `[1.5, 14.1]`."""
    return f"[{percent(share.low)}, {percent(share.high)}]"


def percent(share: float | None) -> str:
    """Format a fraction as percent with one decimal; a dash if unknown."""
    return "\N{EM DASH}" if share is None else f"{100 * share:,.1f}"


def _other_versions(theirs: Identity, ours: Identity) -> str:
    """State the versions that the calibration was made under."""
    parts = list(_versions(theirs, ours))
    if theirs.client is not None and ours.client is not None:
        parts += [f"{part} on the client's host" for part in _versions(theirs.client, ours.client)]
    return f"That calibration was made under {' and '.join(parts)}."


def _versions(theirs: Identity, ours: Identity) -> Iterator[str]:
    if theirs.kernel != ours.kernel:
        yield f"kernel {theirs.kernel}"
    if (theirs.engine, theirs.engine_version) != (ours.engine, ours.engine_version):
        yield f"{theirs.engine or 'no engine'} {theirs.engine_version or ''}".strip()
