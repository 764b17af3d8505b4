"""nodetool, which asks a node over JMX; and the ring as each node of a cluster sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tare.databases import Exec, ServerPlan
from tare.errors import RunFailed
from tare.sites import Completed

HOME = "/opt/cassandra"
CLASSPATH = f"{HOME}/conf:{HOME}/lib/*"
YAML_FILE = "cassandra.yaml"
SEVERAL = "tare.nodetool.Several"
"""tare's own entry (java/nodetool), which tare's recipes have; a user's own image need not."""
_OWN = "/opt/tare/nodetool/*"
_BEFORE_EACH = "\x1e"
_NOT_THERE = f"Could not find or load main class {SEVERAL}"
_FRAMES = ("\tat ", "\t... ")
"""How the lines below the first one of a Java stack trace begin."""
_JMX_BELOW = 12000
"""JMX has the native port, or a port of the node's own, less this, below where tare looks for free ports."""


def jmx_port(plan: ServerPlan) -> int:
    """Where nodetool finds the node on 127.0.0.1, at which all JMX of a network namespace listens."""
    port = plan.port if plan.member is None else plan.member.own_port
    return port - _JMX_BELOW if port > _JMX_BELOW else port + _JMX_BELOW


def nodetool(plan: ServerPlan, inside: Exec, words: Sequence[str], timeout_s: float) -> Completed:
    """A JVM that carries out one command."""
    arguments = ("org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", str(jmx_port(plan)), *words)
    return inside(_jvm(plan, CLASSPATH, arguments), timeout_s, b"")


def several(
    plan: ServerPlan, inside: Exec, commands: Sequence[str], file: str, timeout_s: float
) -> tuple[str, ...] | None:
    """What each command prints as JSON, by one JVM over one connection, then a file of the server's.

    `commands`: names of classes of `org.apache.cassandra.tools.nodetool` that have an option `-F`. `None` where the
    image cannot do that.
    """
    arguments = (SEVERAL, str(jmx_port(plan)), file, *commands)
    done = inside(_jvm(plan, f"{_OWN}:{CLASSPATH}", arguments), timeout_s, b"")
    if done.code != 0 and _NOT_THERE in done.stderr.decode(errors="replace"):
        return None
    _, *printed = must(done, f"call {', '.join(commands)}").text.split(_BEFORE_EACH)
    if len(printed) != len(commands) + 1:
        raise RunFailed(f"nodetool printed {len(printed)} texts for {len(commands)} commands and a file")
    return tuple(printed)


def _jvm(plan: ServerPlan, classpath: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """A JVM that lives a second or two has no use for the optimising compiler, which would take the node's CPUs.

    Java 8 since update 331 refuses the URLs that the JMX of 3.11 uses, unless it is told to parse as before. Java
    17 needs options for what of its own 5.0 may reach, which Java 8 does not know.

    `stopdaemon` reads the node's configuration, and does nothing, in silence, where it does not find all of it.
    Moments are printed in the time zone of nodetool's own JVM: UTC.
    """
    return (
        "java",
        "-Xmx64M",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Duser.timezone=UTC",
        "-Dcom.sun.jndi.rmiURLParsing=legacy",
        "-XX:+IgnoreUnrecognizedVMOptions",
        "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        f"-Duser.home={plan.run_dir}",
        f"-Dcassandra.config=file://{plan.run_dir}/{YAML_FILE}",
        f"-Dcassandra.storagedir={plan.data_dir}",
        "-Dlogback.configurationFile=logback-tools.xml",
        "-cp",
        classpath,
        *arguments,
    )


def must(done: Completed, what: str) -> Completed:
    """The same, where it ended well; `RunFailed` with its last words else."""
    if done.code != 0:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        words = [line.strip() for line in lines if not line.startswith(_FRAMES)]
        raise RunFailed(f"Cassandra did not let tare {what}: {words[-1] if words else f'exit code {done.code}'}")
    return done


_TIMEOUT_S = 120.0
"""A JVM's start on a machine on which others start at the same time."""
_NODE = re.compile(r"^([UD?])([NLJM?])\s+(\S+)\s", re.MULTILINE)
"""Up or down; normal, leaving, joining or moving; address."""


class CassandraCluster:
    """Asks nodetool, a JVM each time."""

    def together(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether `nodetool status` of this node lists all of them as UN (up, normal), and no other."""
        if plan.member is None:
            raise RunFailed("a single node has no cluster")
        done = nodetool(plan, inside, ("status",), _TIMEOUT_S)
        if done.code != 0:
            return False  # its JMX comes up before its ring does, and after its port
        states = parse_status(done.text)
        return len(states) == plan.member.of and set(states.values()) == {"UN"}


def parse_status(text: str) -> dict[str, str]:
    """Address → state (`UN`, `DN`, `UJ`, …) of `nodetool status`."""
    return {address: up + state for up, state, address in _NODE.findall(text)}
