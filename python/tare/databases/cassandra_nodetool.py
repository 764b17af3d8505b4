"""nodetool of Cassandra, called without its shell script."""

from __future__ import annotations

from collections.abc import Sequence

from tare.databases import Exec, ServerPlan
from tare.errors import RunFailed
from tare.sites import Completed

HOME = "/opt/cassandra"
CLASSPATH = f"{HOME}/conf:{HOME}/lib/*"
YAML_FILE = "cassandra.yaml"
_FRAMES = ("\tat ", "\t... ")
"""How the lines below the first one of a Java stack trace begin."""
_JMX_BELOW = 12000
"""JMX has the native port, or a port of the node's own, less this, below where tare looks for free ports."""


def jmx_port(plan: ServerPlan) -> int:
    """Where nodetool finds the node on 127.0.0.1, at which all JMX of a network namespace listens."""
    port = plan.port if plan.member is None else plan.member.own_port
    return port - _JMX_BELOW if port > _JMX_BELOW else port + _JMX_BELOW


def nodetool(plan: ServerPlan, inside: Exec, words: Sequence[str], timeout_s: float) -> Completed:
    """A JVM that lives a second or two has no use for the optimising compiler, which would take the node's CPUs.

    Java 8 since update 331 refuses the URLs that the JMX of 3.11 uses, unless it is told to parse as before. Java
    17 has to be told what of its own 5.0 may reach, of which Java 8 knows nothing.

    `stopdaemon` reads the node's configuration, and does nothing, in silence, where it does not find all of it.
    Moments are printed in the time zone of nodetool's own JVM: UTC.
    """
    argv = (
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
        CLASSPATH,
        "org.apache.cassandra.tools.NodeTool",
        *("-h", "127.0.0.1", "-p", str(jmx_port(plan))),
        *words,
    )
    return inside(argv, timeout_s, b"")


def must(done: Completed, what: str) -> Completed:
    """The same, where it ended well; `RunFailed` with its last words else."""
    if done.code != 0:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        words = [line for line in lines if not line.startswith(_FRAMES)]
        raise RunFailed(f"Cassandra did not let tare {what}: {words[-1] if words else f'exit code {done.code}'}")
    return done
