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
  image: mariadb            # a recipe's name or file, docker://REF, oci:PATH or tar:PATH
  database: mariadb
  deployment: container     # bare: the same image, without an engine
  network: host             # host, bridge, published-loopback or published-address
  limits:
    memory: 1G              # of each of four servers at once
  settings:                 # the server's own settings, by their own names
    innodb_buffer_pool_size: 256M

# Client: the load generator. network: host, bridge, or shared (in the SUT's namespace).
client:
  image: tare-load
  deployment: bare
  network: host

# The workload's own parameters. Times are in seconds; nothing of the warm-up is measured.
workload:
  name: tare-load
  connections: 8
  sysbench:
    script: oltp_read_only
    tables: 4
    table_size: 100000
  warmup_s: 2
  measure_s: 10

# The servers of all arms, and of a second instance of the baseline as a control, are started together, a
# generation, and driven one at a time in short turns, in random order. The unit of comparison is the generation.
# It ends when every interval is as narrow as the target, from 8 generations on, or at a cap.
# Programs other than tare-load, virtual machines and writes to disk need `interleave`: one arm after the other.
protocol:
  name: rotate
  cpus: ["0", "1"]          # CPUs of the servers, and of the clients
  target: 0.02              # half-width of the interval on relative throughput
  generations: 24           # the caps: generations, and minutes of machine time
  max_minutes: 60
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
      workload.sysbench.table_size: 10000
      workload.warmup_s: 0.5
      workload.measure_s: 3
      protocol.max_minutes: 5
    deviations:
      - The tables are a tenth of their size, and an arm is measured for 3 seconds in a generation.
      - It ends after 5 minutes, whatever is known by then.
"""


def starter(name: str) -> str:
    """Return the text of a study with this name."""
    return _STARTER.replace("NAME", name)
