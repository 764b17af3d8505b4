"""What is fuzzed: each target makes an input from a seed and has tare read it, which may end in a `TareError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tools.fuzz.archives import image, saved
from tools.fuzz.documents import claim, mapping, recipe, sites, study
from tools.fuzz.imports import runs, unmapped, watched
from tools.fuzz.outputs import arrivals, cadvisor, generator, monitor, profile, samples, trace
from tools.fuzz.stores import explanation, report, store

Case = Callable[[Random, Path], object]
"""Takes a source of chance and an empty directory. Whatever it raises that is no `TareError` is a finding."""

TARGETS: Mapping[str, Case] = {
    "study": study, "claim": claim, "mapping": mapping, "sites": sites, "recipe": recipe, "generator": generator,
    "monitor": monitor, "cadvisor": cadvisor, "trace": trace, "profile": profile, "samples": samples,
    "arrivals": arrivals, "runs": runs, "unmapped": unmapped, "watched": watched, "store": store,
    "explanation": explanation, "report": report, "image": image, "saved": saved,
}  # fmt: skip
