"""Settings of a study for Cassandra: check them, and turn them into files and JVM options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tare.databases.cassandra.release import V3_11, Release
from tare.databases.option_file import Setting
from tare.errors import StudyError

HEAP, NEW, OPTIONS = "heap", "new_size", "jvm"
"""Settings that are not in cassandra.yaml: -Xms and -Xmx, -Xmn, and further options of the JVM."""

DEFAULT_HEAP = "512M"

_OWN = frozenset(
    {
        "allocate_tokens_for_keyspace", "audit_logging_options", "authenticator", "authorizer", "auto_bootstrap",
        "back_pressure_strategy", "cidr_authorizer", "client_encryption_options", "cluster_name",
        "encryption_options", "initial_token", "internode_authenticator", "listen_address", "listen_interface",
        "listen_on_broadcast_address", "native_transport_port", "native_transport_port_ssl", "network_authorizer",
        "request_scheduler", "request_scheduler_options", "role_manager", "seed_provider",
        "server_encryption_options", "ssl_storage_port", "start_native_transport", "start_rpc", "storage_port",
        "transparent_data_encryption_options",
    }
)  # fmt: skip
_OWN_BEGINNINGS = ("broadcast_", "rpc_", "thrift_framed", "thrift_max")
_OUTSIDE_DATA_DIR = ("_directory", "_directories")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SIZE = re.compile(r"([1-9]\d*)([MG])")
_OPTION = re.compile(r"-(X|D|ea|da)[!-~]*")
_TAKEN = ("-Xmx", "-Xms", "-Xmn", "-Dcassandra.", "-Dcom.sun.", "-Djava.io.tmpdir", "-Dlogback.", "-Duser.home")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(B|KiB|MiB|GiB)?")
_TEXT = re.compile(r"[ -~]*")


@dataclass(frozen=True)
class Checked:
    """Checked settings. `yaml`: keys of cassandra.yaml, `None`: the server chooses. `jvm`: options, with heap."""

    yaml: Mapping[str, Setting | None]
    jvm: tuple[str, ...]


def checked(settings: Mapping[str, Setting], release: Release = V3_11) -> Checked:
    """Merge settings over the shipped ones. Raises `StudyError` for settings that a study must not change.

    Cassandra itself judges whether it knows a key: it exits with the names of unknown ones.
    """
    yaml: dict[str, Setting | None] = {**release.shipped, **dict.fromkeys(sorted(release.auto))}
    for name, value in settings.items():
        if name in (HEAP, NEW, OPTIONS):
            continue
        _refuse(name, value)
        automatic = name in release.auto and value == "auto"
        if not automatic:
            _refuse_type(name, value, release)
        yaml[name] = None if automatic else value
    return Checked(yaml, (*release.jvm, *_heap(settings, release), *_options(settings.get(OPTIONS, ""))))


def render_yaml(values: Mapping[str, object]) -> str:
    """Render one line for each key, with its value as JSON, which is valid YAML."""
    return "".join(f"{name}:{'' if value is None else f' {json.dumps(value)}'}\n" for name, value in values.items())


def _refuse(name: str, value: Setting) -> None:
    if not _NAME.fullmatch(name):
        raise StudyError(f"{name!r} is not a setting of Cassandra", hint="lowercase letters, digits and `_` only")
    if name.endswith(_OUTSIDE_DATA_DIR):
        raise StudyError(
            f"the server setting {name!r} would put data outside the data directory",
            hint="snapshots and copies contain only the data directory",
        )
    if name in _OWN or name.startswith(_OWN_BEGINNINGS):
        raise StudyError(f"the server setting {name!r} is reserved for tare", hint="remove it from `settings`")
    if isinstance(value, str) and not _TEXT.fullmatch(value):
        raise StudyError(f"the value of the server setting {name!r} must be printable ASCII: {value!r}")


def _refuse_type(name: str, value: Setting, release: Release) -> None:
    """Refuse a value whose type differs from the shipped value's; settings derived from the heap are sizes."""
    shipped = release.shipped.get(name)
    if isinstance(shipped, bool) and not isinstance(value, bool):
        raise StudyError(f"the server setting {name!r} must be true or false, not {value!r}")
    if isinstance(shipped, bool) or not (name in release.auto or isinstance(shipped, int | float)):
        return
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
        hint = "or auto: the server chooses" if name in release.auto else None
        raise StudyError(f"the server setting {name!r} must be a number, not {value!r}", hint=hint)
    if isinstance(shipped, int | float) and shipped > 0 and str(value).startswith("-"):
        raise StudyError(f"the server setting {name!r} must be 0 or more, not {value!r}")


def _heap(settings: Mapping[str, Setting], release: Release) -> tuple[str, ...]:
    heap_mib = _mib(HEAP, settings.get(HEAP, DEFAULT_HEAP))
    size = (f"-Xms{heap_mib}M", f"-Xmx{heap_mib}M")
    if NEW not in settings and not release.young:
        return size
    new_mib = _mib(NEW, settings[NEW]) if NEW in settings else max(heap_mib // 4, 1)
    if new_mib >= heap_mib:
        raise StudyError(f"the server setting {NEW!r} ({new_mib}M) must be smaller than the heap ({heap_mib}M)")
    return (*size, f"-Xmn{new_mib}M")


def _mib(name: str, value: Setting) -> int:
    match = _SIZE.fullmatch(str(value))
    if match is None:
        raise StudyError(f"the server setting {name!r} must be a size like 512M or 2G, not {value!r}")
    return int(match.group(1)) * (1024 if match.group(2) == "G" else 1)


def _options(value: Setting) -> tuple[str, ...]:
    words = tuple(str(value).split())
    for word in words:
        if not _OPTION.fullmatch(word):
            raise StudyError(f"{word!r} in the server setting {OPTIONS!r} is not an option of a JVM")
        if word.startswith(_TAKEN):
            raise StudyError(
                f"{word!r} in the server setting {OPTIONS!r} is reserved for tare", hint=f"see {HEAP!r} and {NEW!r}"
            )
    return words
