"""nodetool, which queries a node over JMX, and the ring as a node of a cluster sees it."""

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
"""tare's Java class (java/nodetool) that runs several commands. tare's recipes have it; other images need not."""
_OWN = "/opt/tare/nodetool/*"
_BEFORE_EACH = "\x1e"
_NOT_THERE = f"Could not find or load main class {SEVERAL}"
_FRAMES = ("\tat ", "\t... ")
"""Beginnings of the lines of a Java stack trace after its first line."""
_JMX_BELOW = 12000
"""Distance of the JMX port below the node's own port, which puts it below the ports that tare picks."""


def jmx_port(plan: ServerPlan) -> int:
    """JMX port of the node. All JMX listeners of a network namespace share 127.0.0.1."""
    port = plan.port if plan.member is None else plan.member.own_port
    return port - _JMX_BELOW if port > _JMX_BELOW else port + _JMX_BELOW


def nodetool(plan: ServerPlan, inside: Exec, words: Sequence[str], timeout_s: float) -> Completed:
    """Run one command of nodetool in a JVM of its own."""
    arguments = ("org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", str(jmx_port(plan)), *words)
    return inside(_jvm(plan, CLASSPATH, arguments), timeout_s, b"")


def run_several(
    plan: ServerPlan, inside: Exec, commands: Sequence[str], file: str, timeout_s: float
) -> tuple[str, ...] | None:
    """Run commands in one JVM over one connection; return the JSON of each, then the content of a file.

    `commands`: classes of `org.apache.cassandra.tools.nodetool` that have an option `-F`. Returns `None` if the
    image lacks tare's class.
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
    """Command line of a JVM for nodetool.

    The JVM lives a second or two, so the optimising compiler is off: it would only take the node's CPUs. Since
    update 331, Java 8 rejects the URLs of 3.11's JMX unless it parses as before. Java 17 needs options for the
    internal packages that 5.0 uses, which Java 8 does not know. `stopdaemon` silently does nothing unless it finds
    the node's whole configuration. nodetool prints times in the time zone of its own JVM: UTC.
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
    """Return a call that succeeded; raise `RunFailed` with its last line of output if it failed."""
    if done.code != 0:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        words = [line.strip() for line in lines if not line.startswith(_FRAMES)]
        raise RunFailed(f"Cassandra did not let tare {what}: {words[-1] if words else f'exit code {done.code}'}")
    return done


_TIMEOUT_S = 120.0
"""Long enough for a JVM to start while others start on the same machine."""
_NODE = re.compile(r"^([UD?])([NLJM?])\s+(\S+)\s", re.MULTILINE)
"""Up or down; normal, leaving, joining or moving; address."""


class CassandraCluster:
    """Queries a cluster's nodes by nodetool, which starts a JVM each time."""

    def is_complete(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether `nodetool status` of this node lists all nodes as UN (up, normal), and no others."""
        if plan.member is None:
            raise RunFailed("a single node has no cluster")
        done = nodetool(plan, inside, ("status",), _TIMEOUT_S)
        if done.code != 0:
            return False  # JMX starts after the native port and before the ring
        states = parse_status(done.text)
        return len(states) == plan.member.of and set(states.values()) == {"UN"}


def parse_status(text: str) -> dict[str, str]:
    """Parse address → state (`UN`, `DN`, `UJ`, …) from `nodetool status`."""
    return {address: up + state for up, state, address in _NODE.findall(text)}
