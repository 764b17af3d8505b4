"""Turn tare-load's document and logs into a measurement, or raise why they are incomplete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tare.errors import RunFailed
from tare.workloads import (
    Encryption,
    Latency,
    LatencyParts,
    Measurement,
    Operation,
    Sustained,
    TurnCounts,
    Window,
    output_path,
)
from tare.workloads.merged import merge_histograms
from tare.workloads.tare_load.document import Document, Kind, Quantiles, Split, Tls, Turns
from tare.workloads.tare_load.document import Window as DocumentWindow
from tare.workloads.tare_load.logs import LATENCY, RESOLUTION, Buckets, read_log
from tare.workloads.tare_load.parameters import TareLoadParameters
from tare.workloads.tare_load.sustainable import MeasuredRung, sustained

_NS_PER_MS, _NS_PER_US, _NS_PER_S = 1e6, 1e3, 1e9
_SLACK_S = 0.01
_OF_CLIENT = frozenset(
    {
        "set_up_s", "client_cpu_us", "client_run_queue_us", "client_switches", "client_faults",
        "client_peak_resident_kib", "client_polled_s",
    }
)  # fmt: skip
"""Details that are valid at any rate."""


def measurement(document: Document, own: TareLoadParameters, stdout: Path) -> Measurement:
    """Make the measurement. Raises `RunFailed` with the gravest sign that the run is incomplete or wrong."""
    measured = document.measure
    document.must_be_complete()
    _must_be_right(document, own)
    _must_be_what_was_asked(document, own)
    windows = tuple(
        _window(window) for window in document.windows if window.phase == "measure" and window.counted_s > 0
    )
    _must_be_all_windows(document, own)
    logged = read_log(output_path(stdout, LATENCY))
    operations = _operations(document, own)
    _must_be_logged(operations, logged)
    within = sum(window.done for window in document.windows if window.phase == "measure")
    if own.sustainable is not None:
        return _climb_measurement(document, own, sustained(own.sustainable, _measured_rungs(own, document)))
    turns = None if document.turns is None else _turns(document.turns)
    if turns is not None:
        within = sum(turns.operations)
    counted_s = measured.seconds if turns is None else turns.seconds
    histogram = merge_histograms(logged[kind.name] for kind in measured.kinds if kind.timed)
    return Measurement(
        operations=measured.right,
        unit=own.work.unit,
        duration_s=measured.seconds,
        throughput_per_s=within / counted_s,
        queries_per_s=None if turns is not None else measured.requests / measured.seconds,
        errors=measured.failed,
        reconnects=measured.reconnects,
        latency=_latency(measured.latency_ns, open_loop=own.open_loop),
        histogram=histogram,
        windows=windows,
        details=_details(document, own, within),
        by_operation={kind.name: _operation(kind, logged, own) for kind in operations},
        started_at=measured.mark_realtime_ns / _NS_PER_S,
        parts=_parts(measured.parts),
        encryption=_encryption(document.set_up.tls),
        turns=turns,
    )


def _operations(document: Document, own: TareLoadParameters) -> tuple[Kind, ...]:
    """Kinds that are counted. Connecting is one if it was asked for; it is no part of the throughput."""
    measured = document.measure
    if own.requests_per_connection is None or measured.connect is None:
        return measured.kinds
    return (*measured.kinds, measured.connect)


def _turns(turns: Turns) -> TurnCounts:
    """Convert the turns after the warm-up. Raises `RunFailed` if one has no correct answer at all."""
    first = turns.warm_up
    counted = turns.right[first:]
    if not any(counted):
        raise RunFailed("the server did not answer in any turn")
    sums = zip(turns.latency_ns[first:], counted, strict=True)
    return TurnCounts(
        settled_s=tuple(at / _NS_PER_S for at in turns.settled_ns[first:]),
        ends_s=tuple(at / _NS_PER_S for at in turns.end_ns[first:]),
        operations=counted,
        first_half=turns.first_half[first:],
        latency_ms=tuple(total / count / _NS_PER_MS if count else None for total, count in sums),
        last_s=tuple(None if at is None else at / _NS_PER_S for at in turns.last_ns[first:]),
        slices=None if turns.slices is None else turns.slices[first:],
    )


def _climb_measurement(document: Document, own: TareLoadParameters, climbed: Sustained) -> Measurement:
    """Measurement of a climb: its throughput is the sustainable rate; latency over all rates would mean nothing."""
    measured = document.measure
    return Measurement(
        operations=measured.right,
        unit="sustained operations",
        duration_s=measured.seconds,
        throughput_per_s=climbed.rate_per_s,
        queries_per_s=None,
        errors=measured.failed,
        reconnects=measured.reconnects,
        latency=_latency(None, open_loop=True),
        histogram=(),
        windows=(),
        details={name: value for name, value in _details(document, own, 0).items() if name in _OF_CLIENT},
        started_at=measured.mark_realtime_ns / _NS_PER_S,
        encryption=_encryption(document.set_up.tls),
        sustained=climbed,
    )


def _must_be_right(document: Document, own: TareLoadParameters) -> None:
    """Raise `RunFailed` for failed or unanswered operations. A climb may leave some, as it ends beyond capacity."""
    measured, kinds = document.measure, _operations(document, own)
    failed = sum(sum(kind.failures.values()) for kind in kinds)
    ended = sum(kind.right for kind in kinds) + failed
    if measured.unfinished and own.sustainable is None:
        raise RunFailed(f"{measured.unfinished} operations were never answered{document.first_error}")
    if failed > own.max_error_share * ended:
        ways = [f"{count} {kind.name} {way}" for kind in kinds for way, count in kind.failures.items()]
        asks = "were the data loaded? " if any(kind.missing for kind in kinds) else ""
        raise RunFailed(
            f"{failed} of {ended} operations had no correct reply ({', '.join(ways)}){document.first_error}",
            hint=f"{asks}`max_error_share` says how many are acceptable",
        )
    if not measured.right:
        begun = (
            f"{measured.failed} operations failed and none succeeded" if measured.failed else "it sent no answer"
        )
        raise RunFailed(f"the server did not answer in the {measured.seconds:g} s of the measure phase: {begun}")


def _must_be_what_was_asked(document: Document, own: TareLoadParameters) -> None:
    did = document.plan
    asked = {"connections": own.connections, "depth": own.pipeline, "threads": own.threads, "kinds": own.work.kinds}
    asked["requests_per_connection"] = own.requests_per_connection
    for name, value in asked.items():
        if getattr(did, name) != value:
            raise RunFailed(f"tare-load ran with {name} {getattr(did, name)}, but {value} was requested")
    if own.seed is not None and did.seed != own.seed:
        raise RunFailed(f"tare-load ran with seed {did.seed}, but {own.seed} was requested")


def _must_be_all_windows(document: Document, own: TareLoadParameters) -> None:
    measured, windows = document.measure, document.windows
    if document.turns is not None:
        _must_count_all_turns(document, document.turns)
        return
    if (count := own.work.ends_after) is not None:
        ended = measured.right + measured.failed
        if ended < count:
            raise RunFailed(
                f"{ended} of {count} operations were done in {measured.seconds:g} s",
                hint="a longer `measure_s`, or fewer `ycsb.operations`",
            )
    elif not own.trace and measured.seconds < own.measure_s - _SLACK_S:
        raise RunFailed(f"cut short: {measured.seconds:g} s of {own.measure_s:g} s")
    within = [window for window in windows if window.phase == "measure"]
    reached = max((window.end_s for window in within), default=0.0)
    if reached < min(own.measure_s, measured.seconds) - _SLACK_S:
        raise RunFailed(f"the windows of tare-load end after {reached:g} s of {measured.seconds:g} s")
    counted = sum(window.right for window in windows if window.phase != "warm-up")
    if counted != measured.right:
        raise RunFailed(f"the windows of tare-load hold {counted} operations of {measured.right}")


def _must_count_all_turns(document: Document, turns: Turns) -> None:
    counted = sum(turns.right[turns.warm_up :])
    if counted != document.measure.right:
        raise RunFailed(f"the turns of tare-load hold {counted} operations of {document.measure.right}")
    if turns.end_ns[-1] > document.measure.seconds * _NS_PER_S + _SLACK_S * _NS_PER_S:
        raise RunFailed(f"cut short: the turns of tare-load last longer than its {document.measure.seconds:g} s")


def _must_be_logged(kinds: tuple[Kind, ...], logged: Mapping[str, Buckets]) -> None:
    for kind in kinds:
        counted = sum(count for _, count in logged.get(kind.name, ()))
        if counted != kind.timed:
            raise RunFailed(f"{LATENCY} of tare-load holds {counted} of {kind.timed} {kind.name}")


def _operation(kind: Kind, logged: Mapping[str, Buckets], own: TareLoadParameters) -> Operation:
    failures = kind.failures
    return Operation(
        operations=kind.right,
        errors=sum(failures.values()),
        latency=_latency(kind.latency_ns, open_loop=own.open_loop),
        service_time=None if kind.service_ns is None else _latency(kind.service_ns, open_loop=False),
        histogram=logged.get(kind.name, ()),
        answers={"right": kind.right, **failures},
    )


def _latency(quantiles: Quantiles | None, *, open_loop: bool) -> Latency:
    """Convert quantiles. In a closed loop, the intended send is the actual one, which is blind to stalls."""
    if quantiles is None:
        return Latency(None, None, None, None, None, None, resolution=None, blind_to_stalls=not open_loop)
    return Latency(
        mean_ms=quantiles.mean / _NS_PER_MS,
        min_ms=quantiles.min / _NS_PER_MS,
        max_ms=quantiles.max / _NS_PER_MS,
        p50_ms=quantiles.p50 / _NS_PER_MS,
        p95_ms=_ms(quantiles.p95),
        p99_ms=_ms(quantiles.p99),
        resolution=RESOLUTION,
        blind_to_stalls=not open_loop,
        timed_from="intended-send" if open_loop else "actual-send",
    )


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _NS_PER_MS


def _window(window: DocumentWindow) -> Window:
    seconds = window.counted_s
    return Window(
        end_s=window.end_s,
        throughput_per_s=window.done / seconds,
        latency_p95_ms=None if window.latency_ns is None else _ms(window.latency_ns.p95),
        errors_per_s=window.failed / seconds,
        reconnects_per_s=None,
    )


def _encryption(tls: Tls | None) -> Encryption | None:
    """Convert `TLSv1_3 TLS13_AES_256_GCM_SHA384` to the names of RFC 8446: TLSv1.3, TLS_AES_256_GCM_SHA384."""
    if tls is None:
        return None
    version, _, suite = tls.suite.partition(" ")
    median = None if tls.handshake_ns is None else tls.handshake_ns.p50 / _NS_PER_MS
    return Encryption(version.replace("_", "."), suite.replace("TLS13_", "TLS_"), median)


def _measured_rungs(own: TareLoadParameters, document: Document) -> list[MeasuredRung]:
    """Rungs of the climb: each window is one, with the latencies of the replies that came in it."""
    assert own.sustainable is not None  # noqa: S101 - for the type alone
    windows = [window for window in document.windows if window.phase == "measure"]
    rates = own.sustainable.rates_per_s
    if len(windows) != len(rates):
        raise RunFailed(f"tare-load reported {len(windows)} windows of {len(rates)} rates")
    found = []
    for rate, window in zip(rates, windows, strict=True):
        quantile = None if window.latency_ns is None else getattr(window.latency_ns, own.sustainable.quantile)
        seconds = window.end_s - window.start_s
        found.append(
            MeasuredRung(
                rate_per_s=rate,
                done_per_s=window.done / seconds,
                latency_ms=_ms(quantile),
                missed=window.missed,
            )
        )
    return found


def _parts(split: Split) -> Mapping[str, LatencyParts]:
    parts = {"p50": split.p50, "p99": split.p99, "p99.9": split.p999}
    return {
        percentile: LatencyParts(
            sampled=part.count,
            lag_ms=part.lag_ns / _NS_PER_MS,
            waiting_ms=part.waiting_ns / _NS_PER_MS,
            server_ms=part.server_ns / _NS_PER_MS,
            unread_ms=part.unread_ns / _NS_PER_MS,
        )
        for percentile, part in parts.items()
        if part is not None
    }


def _details(document: Document, own: TareLoadParameters, within: int) -> dict[str, float]:
    measured, cost = document.measure, document.measure.per_operation
    details: dict[str, float | None] = {"set_up_s": document.set_up.seconds}
    if measured.latency_ns is not None:
        details["latency_p999_ms"] = _ms(measured.latency_ns.p999)
    if cost is not None:
        details["client_cpu_us"] = cost.cpu_ns / _NS_PER_US
        details["client_run_queue_us"] = None if cost.run_queue_ns is None else cost.run_queue_ns / _NS_PER_US
        details["client_switches"], details["client_faults"] = cost.switches, cost.faults
    if document.client.peak_resident_kib is not None:
        details["client_peak_resident_kib"] = document.client.peak_resident_kib
    if own.open_loop:
        details["scheduled"], details["missed"] = measured.scheduled, measured.missed
        if document.turns is None:
            details["target_per_s"] = measured.scheduled / measured.seconds
            details["delivered_share"] = within / measured.scheduled if measured.scheduled else None
        polled_ns = None if measured.usage is None else measured.usage.polled_ns
        details["client_polled_s"] = None if polled_ns is None else polled_ns / _NS_PER_S
        details["lag_p99_ms"] = None if measured.lag_ns is None else _ms(measured.lag_ns.p99)
    return {name: float(value) for name, value in details.items() if value is not None}
