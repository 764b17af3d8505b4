"""The user's own findings as claims, with their context from the records of the store."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tare.analyze import analyze
from tare.analyze.analysis import Analysis
from tare.analyze.estimate import Finding
from tare.analyze.metrics import MONITOR_CPU, PRIMARY
from tare.calibrate.summary import identity_of_run
from tare.errors import StudyError
from tare.knowledge.benchmark import benchmark_of, load_of, setup_of
from tare.knowledge.claim import FORMAT, Between, Claim, ClaimFile, Evidence, Measured
from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS
from tare.record.emulated import emulated_arms
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.run_record import RunRecord
from tare.run.ending import ending_of
from tare.run.resume import StudyState
from tare.sites.layout import make_directory
from tare.study.model import ArmSettings
from tare.study.suggest import did_you_mean
from tare.version import __version__

COLUMNS = (
    "id", "study", "says", "database", "version", "workload", "operation", "threads", "level", "bound",
    "deployment", "client", "network", "storage", "engine", "engine_version", "runtime",
    "baseline_deployment", "baseline_network", "baseline_storage", "machine", "client_host",
    "kind", "metric", "log_ratio", "se", "n", "low", "high", "statistic", "parity", "repetitions", "summary_of",
    "title", "year", "url", "doi", "where", "read", "weak",
)  # fmt: skip
"""Columns of the CSV, documented in docs/reference/knowledge.md."""


_FEWEST = 3
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def as_json(claims: Iterable[ClaimFile]) -> str:
    """Return every claim completely, with its id."""
    tree = [{"id": known.id, **known.claim.model_dump(mode="json", exclude_none=True)} for known in claims]
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def as_csv(claims: Iterable[ClaimFile]) -> str:
    """Return one row per claim; unstated values are empty. Text that a spreadsheet would run gets an apostrophe."""
    from tare.report.frames.files import harmless  # reports are slow to import

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for known in claims:
        row = {"id": known.id, **_row(known.claim)}
        writer.writerow({name: harmless(cell) if isinstance(cell, str) else cell for name, cell in row.items()})
    return text.getvalue()


EXPORTS: Mapping[str, Callable[[Iterable[ClaimFile]], str]] = {"json": as_json, "csv": as_csv}


def _row(claim: Claim) -> dict[str, object]:
    row: dict[str, object] = {"study": claim.study, "says": claim.says, "kind": claim.effect.kind}
    row["metric"] = claim.effect.metric
    if claim.context is not None:
        database, load, arm, baseline = (
            claim.context.database, claim.context.load, claim.context.arm, claim.context.baseline,
        )  # fmt: skip
        row |= {"database": database.name, "version": database.version, **load.model_dump(), **arm.model_dump()}
        row |= {f"baseline_{key}": getattr(baseline, key) for key in ("deployment", "network", "storage")}
        row |= {"machine": claim.context.machine, "client_host": claim.context.client_host}
    if isinstance(claim.effect, Measured):
        row |= {"log_ratio": claim.effect.log_ratio, "se": claim.effect.se, "n": claim.effect.n}
    elif isinstance(claim.effect, Between):
        row |= {"low": claim.effect.low, "high": claim.effect.high}
    row |= claim.how.model_dump(exclude={"order"})
    return row | claim.source.model_dump(exclude={"authors", "store", "weak_because"})


def claims_of(
    plan: Plan,
    records: Sequence[RunRecord],
    calibrated: Callable[[str], float | None] | None = None,
    metrics: Collection[str] = (),
) -> Mapping[str, Claim]:
    """Return id → claim, one for each arm and metric with an interval; costs of monitors are not the arm's.

    An arm with a rate to keep has no claim on throughput, which the rate decides. `calibrated`: machine's key → its
    spread between blocks, if it was calibrated. `metrics`: those wanted; empty: all. Raises `StudyError` for
    results that are no own findings (imported, emulated or invalid), for other kinds of results (two arms at once,
    unpaired runs, a study that has not ended), and for a metric without a finding.
    """
    study = plan.study
    _refuse(plan, records)
    analysis = analyze(study, records)
    if analysis.invalid:
        raise StudyError(
            "the control differs from the baseline, so this study is invalid", hint="see `tare report`"
        )
    names = {finding.metric for finding in analysis.findings}
    if unknown := next((name for name in metrics if name not in names), None):
        hint = did_you_mean(unknown, names, kind="its metrics")
        raise StudyError(f"no finding of this study has a metric {unknown[:60]!r}", hint=hint)
    claims = {}
    for finding in analysis.findings:
        of_rate = finding.metric == PRIMARY and finding.arm in analysis.at_a_rate
        of_arm = not finding.control and finding.metric != MONITOR_CPU.name and not of_rate
        wanted = not metrics or finding.metric in metrics
        if of_arm and wanted and len(finding.blocks) >= _FEWEST:
            name = _UNSAFE.sub("-", f"{study.name}-{finding.arm}-{finding.metric}-{plan.digest[:8]}")
            if (claim := _claim(plan, records, finding)) is not None:
                evidence = _evidence(plan, records, analysis, finding, calibrated)
                claims[name] = claim.model_copy(update={"evidence": evidence})
    if not claims:
        raise StudyError(
            f"this study has ended without an interval for any arm: it needs {_FEWEST} blocks with the arm and "
            "its baseline",
            hint="`tare report` shows which runs failed; with a higher cap on blocks, `tare run` resumes",
        )
    return claims


def _refuse(plan: Plan, records: Sequence[RunRecord]) -> None:
    """Raise `StudyError` for results that are no own findings, or of another kind than claims."""
    study = plan.study
    if study.imported is not None:
        raise StudyError("these results were imported", hint="write a claim by hand, with the source's own figures")
    if emulated_arms(records):
        raise StudyError("runs of this store were emulated; emulation has other costs than hardware")
    if PROTOCOLS[study.protocol.name].at_once:
        raise StudyError("two arms of a duet run at the same time: a different operating point from other claims")
    if getattr(study.protocol, "sequence", None) == "together":
        raise StudyError("the runs of an arm were made together, not in pairs, so ratios have no standard error")
    if ending_of(plan, StudyState.from_records(records)) is None:
        raise StudyError("this study has not ended; its figures may still change", hint="`tare run` resumes it")


def as_yaml(claim: Claim) -> str:
    """The file of a claim."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(claim.model_dump(mode="json", exclude_none=True), stream)
    return stream.getvalue()


def write_claims(claims: Mapping[str, Claim], folder: Path) -> tuple[Path, ...]:
    """Write each claim into `folder`; if a file exists already, write none of them."""
    paths = {folder / f"{name}.yaml": claim for name, claim in claims.items()}
    if there := [path for path in paths if path.is_symlink() or path.exists()]:
        raise StudyError(f"{there[0]} exists already", hint="these findings were added already; remove them first")
    try:
        make_directory(folder)
        for path, claim in paths.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(as_yaml(claim))
    except OSError as error:
        raise StudyError(
            f"claims cannot be written to {folder}: {error.strerror}", hint="name another folder with --to"
        ) from error
    return tuple(paths)


def _claim(plan: Plan, records: Sequence[RunRecord], finding: Finding) -> Claim | None:
    study = plan.study
    logs = [math.log1p(point) for _, point in finding.blocks]
    spread = statistics.stdev(logs)
    if spread == 0 or finding.estimate.low is None:
        return None
    mean, n = statistics.fmean(logs), len(logs)
    change = f"{100 * math.expm1(mean):+.1f} %"
    tree = {
        "format": FORMAT,
        "study": study.name,
        "says": f"{finding.metric} of {finding.arm} against {finding.baseline}: {change} over {n} blocks.",
        "context": _context(plan, records, finding),
        "effect": {
            "kind": "measured",
            "metric": finding.metric,
            "log_ratio": mean,
            "se": spread / math.sqrt(n),
            "n": n,
            "printed": {"relative": math.expm1(mean)},
        },
        "how": {"statistic": "mean", "parity": "known", "repetitions": n, "order": study.protocol.name},
        "source": {
            "title": study.question,
            "authors": "own measurement, by tare",
            "year": datetime.fromtimestamp(records[-1].phases[0].began_at, UTC).year,
            "store": plan.digest,
            "where": f"findings of the arm {finding.arm}",
            "read": "whole",
        },
    }
    return Claim.model_validate(tree)


def _evidence(
    plan: Plan,
    records: Sequence[RunRecord],
    analysis: Analysis,
    finding: Finding,
    calibrated: Callable[[str], float | None] | None,
) -> Evidence:
    runs = [run for run in records if run.arm in (finding.arm, finding.baseline) and run.outcome.ok]
    last = runs[-1]
    identity = identity_of_run(last)
    control = next((each for each in analysis.findings if each.control and each.metric == finding.metric), None)
    digests = [side.digest for run in runs for side in run.images.values() if side is not None]
    ends = (None, None, None) if control is None else (
        control.estimate.point, control.estimate.low, control.estimate.high
    )  # fmt: skip
    point, low, high = (None if end is None or end <= -1 else math.log1p(end) for end in ends)
    return Evidence(
        machine=identity.machine_key,
        versions=identity.versions_key,
        kernel=identity.kernel,
        engine_version=identity.engine_version,
        tare=__version__,
        images=tuple(dict.fromkeys(each for each in digests if each)),
        seed=plan.study.protocol.seed,
        runs=analysis.good,
        failed=analysis.attempted - analysis.good,
        spread=statistics.stdev(math.log1p(point) for _, point in finding.blocks),
        calibrated_spread=calibrated(identity.machine_key)
        if calibrated is not None and finding.metric == PRIMARY
        else None,
        control=point,
        control_low=low,
        control_high=high,
        alarms=tuple(dict.fromkeys(f"{each.rule}: {each.what}" for each in analysis.alarms)),
    )


def _context(plan: Plan, records: Sequence[RunRecord], finding: Finding) -> dict[str, Any]:
    arms = {arm.name: arm for arm in plan.study.arms}
    arm, baseline = arms[finding.arm], arms[finding.baseline]
    run = next(record for record in records if record.arm == finding.arm and record.outcome.ok)
    engine, pair = run.engine or EngineFacts(), identity_of_run(run)
    setup = setup_of(arm).model_dump(exclude_none=True)
    if setup["engine"] != "none":
        setup |= {"engine": engine.engine or "docker"}
        setup |= {"engine_version": version} if (version := engine.engine_version) else {}
        default = engine.engine_default_runtime
        setup |= {"runtime": default} if default and arm.settings.sut.runtime is None else {}
    operation = finding.metric.partition("_latency")[0] if "_latency" in finding.metric else None
    workload = arm.settings.workload
    clients = workload.get("connections" if arm.settings.workload_name == "tare-load" else "threads")
    load = {"workload": workload_words(arm.settings), "threads": clients}
    asked = load_of([record for record in records if record.arm == finding.baseline and record.outcome.ok])
    return {
        "database": {"name": benchmark_of(plan.study).database, "version": (run.effective or {}).get("version")},
        "load": {**load, "operation": operation, "level": asked.level, "bound": asked.bound},
        "arm": setup,
        "baseline": setup_of(baseline).model_dump(exclude_none=True),
        "machine": ", ".join(_machine(run.host)) or None,
        "client_host": "same" if pair.client is None or pair.one_kernel else "other",
    }


def workload_words(settings: ArmSettings) -> str:
    """Return generator and workload, in the terms of claims: `sysbench oltp_read_only`, `YCSB A`.

    tare-load sends the operations of either.
    """
    workload = settings.workload
    of_sysbench, of_ycsb = workload.get("sysbench") or {}, workload.get("ycsb") or {}
    script = workload.get("script") or of_sysbench.get("script")
    core = workload.get("core_workload") or of_ycsb.get("core_workload")
    rate = "" if workload.get("rate") is None else f" at {workload['rate']:g}/s"
    if core:
        return f"YCSB {str(core).upper()}{rate}"
    return f"{'sysbench' if of_sysbench else settings.workload_name}{f' {script}' if script else ''}{rate}"


def _machine(host: HostFacts) -> Iterator[str]:
    if host.cpu_model:
        yield host.cpu_model
    if host.cpu_count:
        yield f"{host.cpu_count} CPUs"
    if host.memory_total_bytes:
        yield f"{host.memory_total_bytes / 1e9:.0f} GB"
    if host.kernel:
        yield f"kernel {host.kernel}"
