"""What runs lack because tare is not root or may not raise limits; they are made in any case."""

from __future__ import annotations

from tare.deployments.rlimits import ceilings
from tare.sites import Host
from tare.study.model import Study

_TIMEOUT_S = 30.0
_AS_USER = (
    "tare is not root: tare-probe samples without real-time priority and does not count block requests of control "
    "groups (`scheduler` and `block_source` in the record)"
)


def lowered_limits(study: Study, host: Host) -> tuple[str, ...]:
    """Return a sentence for each limit on open files that the study sets and this host lowers."""
    ceiling = ceilings(host).get("nofile")
    asked = {
        (side, placed.limits.nofile)
        for arm in study.arms
        for side, placed in arm.settings.sides.items()
        if "nofile" in placed.limits.model_fields_set and ceiling is not None and placed.limits.nofile > ceiling
    }
    return tuple(
        f"{side}.limits.nofile: {nofile} requested, but this host allows {ceiling} (no CAP_SYS_RESOURCE)"
        for side, nofile in sorted(asked)
    )


def missing_without_root(host: Host) -> tuple[str, ...]:
    """Return a sentence on what records lack if tare is not root on the host."""
    user = host.run(["id", "-u"], timeout_s=_TIMEOUT_S, check=False).text.strip()
    return () if user in ("", "0") else (_AS_USER,)
