"""Examples that `--help` of each subcommand ends with."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "doctor": ("tare doctor", "tare doctor --sites sites.yaml"),
    "init": ("tare init my-study",),
    "plan": ("tare plan percona-2016 --scale demo", "tare plan my-study --verbose"),
    "advise": ("tare advise my-study --comparing systems --production container",),
    "sites": ("tare sites list",),
    "sites create": ("tare sites create plan.yaml --dry-run",),
    "sites list": ("tare sites list",),
    "sites destroy": ("tare sites destroy my-pair",),
    "run": (
        "tare run percona-2016 --scale demo --store demo-store",
        "tare run my-study --sites sites.yaml --serve",
    ),
    "serve": ("tare serve demo-store",),
    "sweep": ("tare sweep my-study --threads 1,2,4,8,16",),
    "weigh": ("tare weigh", "tare weigh --show"),
    "calibrate": ("tare calibrate --minutes 60",),
    "worker": ("tare worker --sites sites.yaml --site pair-1 --scheduler tls://head:8786",),
    "report": (
        "tare report demo-store",
        "tare report demo-store --format html --output report.html",
        "tare report demo-store --format paper --output paper/",
    ),
    "check": ("tare check demo-store --max-overhead 5%", "tare check demo-store --junit check.xml"),
    "explain": (
        "tare explain demo-store bridge",
        "tare explain demo-store bridge --format flamegraph --output bridge.svg",
    ),
    "compare": ("tare compare monday tuesday", "tare compare main-store pull-store --fail-on 3%"),
    "trend": ("tare trend stores/*",),
    "views": ("tare views b01-2-bridge --store demo-store",),
    "import": ("tare import results/ --store imported",),
    "store": ("tare store verify demo-store",),
    "store verify": ("tare store verify demo-store",),
    "store copy": ("tare store copy demo-store kept-store",),
    "store repair": ("tare store repair damaged-store --to repaired-store",),
    "knowledge": ("tare knowledge list --database postgresql", "tare knowledge add my-store"),
    "knowledge list": ("tare knowledge list --database postgresql",),
    "knowledge show": ("tare knowledge show percona-2016-bridge",),
    "knowledge export": ("tare knowledge export",),
    "knowledge add": ("tare knowledge add demo-store", "tare knowledge add demo-store --metric throughput"),
    "knowledge check": ("tare knowledge check my-claims/*.yaml",),
    "knowledge predicted": ("tare knowledge predicted demo-store other-store",),
    "site": ("tare site demo-store other-store public/",),
    "images": ("tare images list",),
    "images list": ("tare images list",),
    "images build": ("tare images build mariadb",),
    "images verify": ("tare images verify",),
    "images remove": ("tare images remove mariadb",),
    "clean": ("tare clean --dry-run", "tare clean --yes"),
    "inspect": ("tare inspect my-postgres", "tare inspect --all"),
}
"""Subcommand → its command lines, the usual one first."""
