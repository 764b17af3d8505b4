"""Results of a calibration as text."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.calibrate.pooled import Mean, Share, Smallest
from tare.calibrate.quote import interval, percent
from tare.calibrate.summary import Identity, Summary
from tare.report.figures import duration


def render(summary: Summary, *, width: int = 100) -> str:
    """Render all results as text."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, 80), highlight=False)
    for line in machines(summary.identity):
        console.print(Text(line, style="bold"))
    effort = summary.effort
    if effort.studies == 0:
        console.print(Text("No study is finished yet; `tare calibrate` runs them."))
        return _plain(out)
    took = f"{effort.runs} runs, {effort.failed} of them failed, {duration(effort.machine_s)} of machine time"
    console.print(Text(f"{effort.studies} studies: {took}."))
    console.print()
    console.print(false_positives(summary))
    console.print()
    if summary.injections:
        console.print(effects(summary))
        console.print()
    for line in smallest_overheads(summary):
        console.print(Text(line))
    return _plain(out)


def machines(identity: Identity) -> list[str]:
    """One line for each host."""
    if identity.client is None:
        return [machine(identity)]
    lines = [f"server: {machine(identity)}", f"client: {machine(identity.client)}"]
    return [*lines, "Both hosts are the same machine (same boot id)."] if identity.one_kernel else lines


def machine(identity: Identity) -> str:
    """Hardware and versions of a machine on one line."""
    engine = f"{identity.engine} {identity.engine_version}" if identity.engine else "no engine"
    cpus = f"{identity.cpu_count} \N{MULTIPLICATION SIGN} {identity.cpu_model}"
    return f"{cpus}, {identity.memory_gib} GiB, Linux {identity.kernel}, {engine}"


def false_positives(summary: Summary) -> Table:
    """Table of false positives: how often identical arms were called different."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("identical arms", "comparisons", "called different", "share, nominally 5 %"):
        table.add_column(column)
    rows = {"all": summary.false_positives, **summary.by_deployment}
    for name, cells in rows.items():
        table.add_row(name, str(cells.of), str(cells.count), _share(cells))
    return table


def effects(summary: Summary) -> Table:
    """Table of the injected effects on throughput: true and estimated."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("injected", "studies", "truth", "estimate", "bias, points", "truth in 95 % interval"):
        table.add_column(column)
    for each in summary.injections:
        of = f"{each.covered.count} of {each.covered.of}"
        table.add_row(
            each.injection,
            str(each.estimate.n),
            _mean(each.truth),
            _mean(each.estimate),
            _mean(each.bias),
            f"{of}, {_share(each.covered)}" if each.covered.of else "not judged yet",
        )
    return table


def smallest_overheads(summary: Summary) -> list[str]:
    """Smallest overhead that can be detected, one line for each duration."""
    if summary.spread is None or summary.block_s is None:
        return []
    head = (
        f"Identical arms differ by {100 * summary.spread:.2f} % from block to block (standard deviation), and a "
        f"block of three runs takes {summary.block_s:.1f} s. Smallest loss of throughput that half of all "
        "studies detect:"
    )
    return [head, *(_smallest(each) for each in summary.smallest)]


def _smallest(each: Smallest) -> str:
    minutes = f"  in {each.minutes:g} min"
    if each.overhead is None:
        return f"{minutes}: none, that is {each.blocks} blocks only"
    return f"{minutes}: {100 * each.overhead:.1f} % ({each.blocks} blocks)"


def _share(share: Share) -> str:
    return f"{percent(share.share)} % {interval(share)}"


def _mean(mean: Mean) -> str:
    if mean.point is None:
        return "\N{EM DASH}"
    bounds = "" if mean.low is None or mean.high is None else f" [{_signed(mean.low)}, {_signed(mean.high)}]"
    return f"{_signed(mean.point)} %{bounds}"


def _signed(value: float) -> str:
    return f"{100 * value:+.2f}"


def _plain(out: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
