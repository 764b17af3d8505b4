"""A client that has the counter count, in a closed loop of one connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.errors import RunFailed, StudyError
from tare.workloads import ClientCommand, Latency, Measurement, Parameters, Target, Window

_COUNT = """
import json, socket, sys, time
address, port, seconds, window = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
with socket.create_connection((address, port), timeout=5) as connection:
    stream = connection.makefile("rw")
    began, latencies, counted = time.monotonic(), [], []
    while (sent := time.monotonic()) < began + seconds:
        stream.write("count\\n")
        stream.flush()
        int(stream.readline())
        now = time.monotonic()
        latencies.append((now - sent) * 1000)
        index = int((now - began) / window)
        counted.extend([0] * (index + 1 - len(counted)))
        counted[index] += 1
    print(json.dumps({"seconds": time.monotonic() - began, "latencies_ms": latencies, "windows": counted}))
"""
_MARGIN_S = 10.0


class Count:
    """The client above. It times from the actual send, so stalls hide what waits behind them."""

    parameters: ClassVar[type[Parameters]] = Parameters
    needs_database: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Nothing is loaded."""
        return {}

    def load(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Not asked for without a data set; checks the target."""
        return _command(parameters, target, 0.0)

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        """As `measure`, not counted."""
        return None if parameters.warmup_s == 0 else _command(parameters, target, parameters.warmup_s)

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Count for `measure_s`."""
        return _command(parameters, target, parameters.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read the one line that the client prints."""
        if code != 0:
            raise RunFailed(f"the counting client ended with {code}: {stderr.read_text().strip()[-200:]}")
        try:
            printed = json.loads(stdout.read_text())
            seconds, latencies = float(printed["seconds"]), sorted(float(each) for each in printed["latencies_ms"])
        except (ValueError, KeyError, TypeError) as error:
            raise RunFailed(f"the counting client's output is not whole: {error!r}") from error
        if seconds < parameters.measure_s or not latencies:
            raise RunFailed(f"the counting client was cut short after {seconds:g} s")
        whole = printed["windows"][: int(parameters.measure_s / parameters.window_s)]
        return Measurement(
            operations=len(latencies),
            unit="counts",
            duration_s=seconds,
            throughput_per_s=len(latencies) / seconds,
            queries_per_s=None,
            errors=0,
            reconnects=None,
            latency=_latency(latencies),
            histogram=(),
            windows=tuple(
                Window((number + 1) * parameters.window_s, count / parameters.window_s, None, 0.0, None)
                for number, count in enumerate(whole)
            ),
        )


def _command(parameters: Parameters, target: Target, seconds: float) -> ClientCommand:
    if target.database != "counter":
        raise StudyError(f"count does not drive {target.database} (it drives counter)")
    endpoint = target.endpoint
    words = (endpoint.address, str(endpoint.port), f"{seconds:g}", f"{parameters.window_s:g}")
    return ClientCommand(("python3", "-I", "-c", _COUNT, *words), {}, {}, timeout_s=seconds + _MARGIN_S)


def _latency(latencies: list[float]) -> Latency:
    def at(share: float) -> float:
        return latencies[min(len(latencies) - 1, int(share * len(latencies)))]

    return Latency(
        mean_ms=sum(latencies) / len(latencies),
        min_ms=latencies[0],
        max_ms=latencies[-1],
        p50_ms=at(0.5),
        p95_ms=at(0.95),
        p99_ms=at(0.99),
        resolution=None,
        blind_to_stalls=True,
        timed_from="actual-send",
    )


COUNT = Count()
"""What the entry point names."""
