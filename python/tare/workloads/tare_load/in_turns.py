"""tare-load in turns with other arms' clients."""

from __future__ import annotations

from dataclasses import replace

from tare.workloads import TURNS_FILE, ClientCommand, Parameters, Target
from tare.workloads.tare_load.parameters import TareLoadParameters
from tare.workloads.tare_load.tare_load import TareLoad

_REPLACED = ("--warm-up=", "--duration=")


class TareLoadInTurns:
    """Describes calls of tare-load with `--turns`."""

    def refusal(self, parameters: Parameters) -> str | None:
        """Turns have their own length and clock."""
        assert isinstance(parameters, TareLoadParameters)  # noqa: S101 - for the type alone
        if parameters.trace or parameters.sustainable is not None:
            return "a trace or a climb of rates cannot be cut into turns"
        if parameters.work.ends_after is not None:
            return "a number of operations cannot end a run that takes turns"
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Describe the command of a run alone, with the schedule in place of its lengths."""
        alone = TareLoad().measure(parameters, target, run_dir)
        argv = [part for part in alone.argv if not part.startswith(_REPLACED)]
        return replace(alone, argv=(*argv, f"--turns={run_dir}/{TURNS_FILE}"))
