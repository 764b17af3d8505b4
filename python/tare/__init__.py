"""tare: what it costs a database, and its benchmark, to run in a container or a virtual machine."""

__version__ = "0.1.0"
