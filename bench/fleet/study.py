"""The study of the benchmarks of fleets: arms whose runs nobody makes, in as many blocks as are requested."""

from __future__ import annotations

from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.study.model import Arm, ArmSettings, ClientSpec, Study, SutSpec
from tare.study.protocol_spec import InterleaveSpec


def plan_of_sleeps(blocks: int, arms: int, seed: int = 1) -> Plan:
    """So many blocks of so many runs, all of which are needed."""
    settings = ArmSettings(
        sut=SutSpec(image="tar:none", deployment="fake", database="fake"),
        client=ClientSpec(image="tar:none", deployment="fake"),
        workload_name="fake",
        workload={"measure_s": 1.0, "warmup_s": 0.0, "window_s": 1.0},
    )
    names = tuple(f"arm-{n}" for n in range(1, arms + 1))
    study = Study(
        name="sleeps",
        scale="full",
        question="What does handing out blocks cost?",
        source=None,
        arms=tuple(Arm(name=name, levels={"arm": name}, settings=settings) for name in names),
        baseline=names[0],
        factors={"arm": names},
        # A study may have 1000 blocks; what many studies' worth of them cost is the question here.
        protocol=InterleaveSpec.model_construct(
            name="interleave", blocks=blocks, target=None, seed=seed, retries=0
        ),
        published=(),
        deviations=(),
        text="format: 1\n",
    )
    return expand(study, seed)
