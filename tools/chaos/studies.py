"""Studies to play faults on, with short runs: what tare offers, in as many forms as faults may find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.chaos.session import SESSION_S


@dataclass(frozen=True)
class Chosen:
    """`images`: that it needs; `longest_s`: from a fault to the next; `end_s`: of the whole study, undisturbed.

    `machines`: whether a server of it is in a virtual machine. `beside_s`: longest of a second tare, which makes
    one block. `awaits`: a part without which most sessions play no fault yet.
    """

    text: str
    images: tuple[str, ...] = ()
    longest_s: float = 8.0
    end_s: float = 900.0
    machines: bool = False
    beside_s: float = SESSION_S
    awaits: str = ""


FAKES = """
format: 1
name: chaos
question: Do the fakes survive?
sut: {image: "tar:/nowhere", database: fake, deployment: fake}
client: {image: "tar:/nowhere", deployment: fake}
workload: {name: fake, measure_s: 0.4, window_s: 0.1}
protocol: {name: fixed, blocks: 4, retries: 500, seed: 1, control: false}
factors:
  delay:
    sets: [sut.settings.delay_ms]
    levels:
      short: {}
      long: {sut.settings.delay_ms: 3}
baseline: short
"""

_JOB = """\
  job:
    generators: {key: {uniform: {from: 0, to: 99}}, value: {text: {length: 10}}}
    operations: [{name: set, steps: [{send: "SET key:{key} {value}"}]}]
    load: {records: 100, steps: [{send: "SET key:{record} {value}"}]}
"""

_REDIS = """\
sut:
  image: redis-7
  database: redis
  deployment: container
  limits: {memory: 256M}
  settings: {save: "", appendonly: true, appendfsync: everysec}
"""

_CLIENT = f"""\
client: {{image: tare-load, deployment: bare, limits: {{memory: 256M}}}}
workload:
  name: tare-load
  connections: 2
{_JOB}  warmup_s: 1
  measure_s: 3
  window_s: 1
"""

REDIS = f"""\
format: 1
name: chaos-redis
question: Do runs of Redis survive?
{_REDIS}{_CLIENT}protocol: {{name: fixed, blocks: 3, retries: 500, seed: 1, control: false}}
factors:
  path:
    sets: [sut.deployment, sut.network, client.deployment, client.network]
    levels:
      bare: {{sut.deployment: bare}}
      host: {{}}
      bridge: {{sut.network: bridge}}
      published: {{sut.network: published-loopback}}
      both-on-bridge: {{sut.network: bridge, client.deployment: container, client.network: bridge}}
baseline: bare
"""

POD = f"""\
format: 1
name: chaos-pod
question: Do runs of Redis in pods survive?
{_REDIS}{_CLIENT}protocol: {{name: fixed, blocks: 2, retries: 500, seed: 1, control: false}}
factors:
  piece:
    sets: [sut.deployment, sut.network, sut.pod.sandbox, sut.pod.cni, sut.pod.proxy, sut.pod.services, sut.pod.qos]
    levels:
      bare: {{sut.deployment: bare}}
      sandbox: {{sut.network: bridge, sut.pod.sandbox: pause}}
      cni-bridge: {{sut.network: pod, sut.pod.cni: bridge, sut.pod.qos: burstable}}
      cni-macvlan: {{sut.network: pod, sut.pod.cni: macvlan}}
      host-port: {{sut.network: host-port, sut.pod.cni: bridge}}
      service: {{sut.network: cluster-ip, sut.pod.services: 10}}
      node-port: {{sut.network: node-port, sut.pod.proxy: nftables, sut.pod.services: 10}}
baseline: bare
"""

MARIADB = """\
format: 1
name: chaos-mariadb
question: Do runs of MariaDB survive?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  limits: {memory: 512M}
  storage: {kind: block, size: 256M, file_system: ext4}
  settings: {innodb_buffer_pool_size: 16M, innodb_log_file_size: 8M}
client: {image: sysbench, deployment: bare, limits: {memory: 256M}}
workload:
  {name: sysbench, script: oltp_insert, table_size: 1000, threads: 2, warmup_s: 1, measure_s: 4, window_s: 1}
protocol: {name: fixed, blocks: 3, retries: 500, seed: 1, control: false}
factors:
  around:
    sets: [sut.deployment, sut.network]
    levels:
      bare: {sut.deployment: bare}
      host: {}
      published: {sut.network: published-loopback}
baseline: bare
"""

DUET = """\
format: 1
name: chaos-duet
question: Do two runs at once survive?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  limits: {memory: 512M}
  settings: {innodb_buffer_pool_size: 16M, innodb_log_file_size: 8M}
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_point_select, table_size: 1000, threads: 2, warmup_s: 1, measure_s: 12}
protocol: {name: duet, blocks: 3, retries: 500, seed: 2}
factors:
  around:
    sets: [sut.deployment]
    levels: {bare: {sut.deployment: bare}, boxed: {}}
baseline: bare
"""

STAGES = f"""\
format: 1
name: chaos-stages
question: Do two stages on one server survive?
{_REDIS}client: {{image: tare-load, deployment: bare}}
workload:
  name: tare-load
{_JOB}  measure_s: 2
  window_s: 1
protocol: {{name: fixed, blocks: 3, retries: 500, seed: 1, control: false}}
factors:
  model:
    sets: [sut.deployment, sut.network]
    levels:
      bare: {{sut.deployment: bare}}
      bridge: {{sut.network: bridge}}
  phase:
    sets: workload.connections
    levels: [2, 4]
stages: phase
baseline: {{model: bare}}
"""

MACHINE = f"""\
format: 1
name: chaos-vm
question: Do runs in virtual machines survive?
sut:
  image: redis-7
  database: redis
  deployment: bare
  limits: {{cpus: "0-1", memory: 256M}}
  settings: {{save: "", appendonly: false}}
client: {{image: tare-load, deployment: bare}}
workload:
  name: tare-load
  connections: 2
{_JOB}  measure_s: 3
  window_s: 1
protocol: {{name: fixed, blocks: 1, retries: 500, seed: 1, control: false}}
factors:
  model:
    sets: [sut.deployment, sut.network]
    levels:
      bare: {{}}
      vm-user: {{sut.deployment: vm, sut.network: user}}
      vm-tap: {{sut.deployment: vm, sut.network: tap}}
baseline: bare
"""

CASSANDRA = """\
format: 1
name: chaos-cassandra
question: Do runs of Cassandra survive?
sut:
  {image: cassandra-3.11, database: cassandra, deployment: bare, settings: {heap: 256M, num_tokens: 16}}
client: {image: cassandra-3.11, deployment: bare}
workload:
  {name: cassandra-stress, command: mixed, records: 300, threads: 4, measure_s: 5, window_s: 1, heap: 256M}
protocol: {name: fixed, blocks: 1, retries: 500, seed: 1, control: false}
factors: {around: {sets: sut.deployment, levels: [bare, container]}}
baseline: bare
"""

CLUSTER = """\
format: 1
name: chaos-cluster
question: Do runs of two nodes survive?
sut:
  {image: cassandra-3.11, database: cassandra, deployment: bare, nodes: 2, settings: {heap: 256M, num_tokens: 16}}
client: {image: cassandra-3.11, deployment: bare}
workload:
  {name: cassandra-stress, command: mixed, records: 300, replication: 2, consistency: QUORUM, threads: 4,
   measure_s: 5, window_s: 1, heap: 256M}
protocol: {name: fixed, blocks: 1, retries: 500, seed: 1, control: false}
factors: {around: {sets: sut.deployment, levels: [bare, container]}}
baseline: bare
"""

PAIR = """\
format: 1
name: chaos-pair
question: Does what is measured between two hosts survive its connections?
sut: {image: redis-7, database: redis, deployment: bare, settings: {save: "", appendonly: false}}
client: {image: tare-load, deployment: bare, own_host: true}
workload:
  name: tare-load
  connections: 2
  job:
    generators: {key: {uniform: {from: 0, to: 99}}, value: {text: {length: 10}}}
    operations: [{name: set, steps: [{send: "SET key:{key} {value}"}]}]
    load: {records: 100, steps: [{send: "SET key:{record} {value}"}]}
  warmup_s: 1
  measure_s: 2
  window_s: 1
protocol: {name: fixed, blocks: 4, retries: 500, seed: 1, control: false}
factors:
  connections: {sets: workload.connections, levels: [2, 4]}
baseline: connections-2
"""

STUDIES: Mapping[str, Chosen] = {
    "redis": Chosen(REDIS, ("redis-7", "tare-load")),
    "pod": Chosen(POD, ("redis-7", "tare-load")),
    "mariadb": Chosen(MARIADB, ("mariadb", "sysbench")),
    "duet": Chosen(DUET, ("mariadb", "sysbench"), longest_s=20.0),
    "stages": Chosen(STAGES, ("redis-7", "tare-load")),
    # A machine is emulated where KVM refuses, and then it takes a minute or more until its server answers: faults
    # that came after each other from a session's start on would all find tare before its first machine.
    "vm": Chosen(
        MACHINE,
        ("redis-7", "tare-load"),
        longest_s=40.0,
        end_s=1800.0,
        machines=True,
        beside_s=900.0,
        awaits="QEMU",
    ),
    # Its data take a minute to prepare on a busy machine: with faults closer together no run would ever begin.
    "cassandra": Chosen(CASSANDRA, ("cassandra-3.11",), longest_s=120.0, end_s=1800.0),
    # Twice as many JVMs start one after the other, and each query starts one.
    "cluster": Chosen(CLUSTER, ("cassandra-3.11",), longest_s=120.0, end_s=1800.0, beside_s=900.0, awaits="server"),
}
