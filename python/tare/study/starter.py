"""The study that `tare init` writes: small, commented, and valid as it is."""

from __future__ import annotations

_STARTER = """\
# A study asks one question by running the same database in arms that differ in what is asked about.
#
#   tare plan NAME                   what would run, in what order, about how long
#   tare run NAME --scale demo       run it small first
#
# A key that is neither here nor in schemas/study.schema.json is refused, with its line.

format: 1
name: "NAME"
question: What does a container on a network of its own cost, against the same server bare?

# SUT: the database, and all that an arm puts around it. This is the template that levels patch.
sut:
  image: mariadb            # a recipe's name, docker://REF, oci:PATH or tar:PATH
  database: mariadb
  deployment: container     # bare: the same image, without an engine
  network: host             # host, bridge, published-loopback or published-address
  limits:
    cpus: "0"               # the CPUs it may use; keep those of SUT and client apart
    memory: 1G
  settings:                 # the server's own settings, by their own names
    innodb_buffer_pool_size: 256M

# Client: the load generator. network: host, bridge, or shared (in the SUT's namespace).
client:
  image: sysbench
  deployment: bare
  network: host
  limits:
    cpus: "1"

# The workload's own parameters. Times are in seconds; nothing of the warm-up is measured.
workload:
  name: sysbench
  script: oltp_read_only
  tables: 4
  table_size: 100000
  threads: 8
  warmup_s: 10
  measure_s: 60

# Every arm, and a second instance of the baseline as a control, runs once in each block, in random order; the unit
# of comparison is the block. It ends when every interval is as narrow as the target, from 8 blocks on, or at a cap.
protocol:
  name: interleave
  target: 0.02              # half-width of the interval on relative throughput
  blocks: 24                # the caps: blocks, and minutes of machine time
  max_minutes: 240
  retries: 1                # how often a failed run is tried again
  seed: 1                   # the same seed gives the same order

# A factor's levels say what they set. The arms are all combinations of levels, except those in `exclude`.
# A factor that varies one key is shorter:
#   threads:
#     sets: workload.threads
#     levels: [1, 8, 64]
factors:
  path:
    levels:
      bare:
        sut.deployment: bare
      host: {}              # as in the template above
      bridge:
        sut.network: bridge

# The arm that the others are compared with: its name, or its levels ({path: bare}).
baseline: bare

# `full` is the study as written above. Other scales set dotted keys and list their deviations.
scales:
  full: {}
  demo:
    set:
      workload.table_size: 10000
      workload.warmup_s: 1
      workload.measure_s: 4
      protocol.max_minutes: 5
    deviations:
      - The tables are a tenth of their size, and a run lasts 4 seconds.
      - It ends after 5 minutes, whatever is known by then.
"""


def starter(name: str) -> str:
    """Return the text of a study with this name."""
    return _STARTER.replace("NAME", name)
