"""Settings of a study for PostgreSQL: check and render them, and list those that differ from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tare.databases.kinds import check_kind
from tare.databases.option_file import Setting
from tare.errors import StudyError

CHECKSUMS, SEGMENT = "data_checksums", "wal_segment_size"
LOCALES: Mapping[str, str] = {
    "locale_provider": "--locale-provider",
    "icu_locale": "--icu-locale",
    "lc_collate": "--lc-collate",
    "lc_ctype": "--lc-ctype",
}
"""Setting → option of `initdb`: how text is sorted and classified."""
_FIXED = frozenset({CHECKSUMS, SEGMENT, *LOCALES})
"""Settings that `initdb` fixes for the life of a data directory."""

PER_RUN: frozenset[str] = frozenset({"listen_addresses", "port", "ssl_cert_file", "ssl_key_file"})
"""Settings that may differ between two runs or arms that are otherwise equal. All others must agree."""

LOG: frozenset[str] = frozenset(
    {"log_directory", "log_filename", "log_rotation_age", "log_rotation_size", "logging_collector"}
)
"""Settings that send the log to one file."""
_SHARED_MEMORY = frozenset({"shared_memory_size", "shared_memory_size_in_huge_pages"})
DERIVED: Mapping[str, frozenset[str]] = {
    "sut.tls": frozenset({"ssl"}),
    "sut.network": frozenset({"unix_socket_directories"}),
    "sut.log_target": LOG,
    "sut.settings.shared_buffers": _SHARED_MEMORY | {"wal_buffers"},
    "sut.settings.wal_segment_size": _SHARED_MEMORY | {"max_wal_size", "min_wal_size", "wal_buffers"},
    "sut.settings.huge_page_size": _SHARED_MEMORY,
    "sut.settings.lc_ctype": frozenset({"default_text_search_config"}),
    **{
        f"sut.settings.{name}": _SHARED_MEMORY
        for name in (
            "autovacuum_max_workers", "max_connections", "max_locks_per_transaction",
            "max_pred_locks_per_transaction", "max_prepared_transactions", "max_replication_slots",
            "max_wal_senders",
            "max_worker_processes", "track_activity_query_size", "wal_buffers",
        )
    },
}  # fmt: skip
"""Settings that the server derives from something else unless they are set (their pages in its manual)."""

_OWN = frozenset(
    {
        "config_file", "data_directory", "event_source", "external_pid_file", "hba_file", "ident_file", "include",
        "include_dir", "include_if_exists", "listen_addresses", "log_destination", "log_filename",
        "logging_collector", "port", "ssl", "ssl_ca_file", "ssl_cert_file", "ssl_crl_dir", "ssl_crl_file",
        "ssl_key_file", "ssl_passphrase_command", "syslog_facility", "syslog_ident", "unix_socket_directories",
        "unix_socket_group", "unix_socket_permissions",
    }
)  # fmt: skip
_OUTSIDE_DATA_DIR = frozenset({"default_tablespace", "log_directory", "stats_temp_directory", "temp_tablespaces"})
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")
_LOCALE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@=-]*")
_SEGMENT = re.compile(r"(1|2|4|8|16|32|64|128|256|512|1024)MB")
_SIZED = re.compile(r"[a-z_]*(_buffers|_mem|_size)")
"""Names of settings that are an amount of memory or disk; names with a dot belong to extensions."""
_SIZE = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|0[xX][0-9A-Fa-f]+)\s*(B|kB|MB|GB|TB)?")
"""Numbers with a unit ("Numeric with Unit" in the manual)."""
_PRINTABLE = re.compile(r"[ -~]*")


@dataclass(frozen=True)
class Checked:
    """Checked settings. `initdb`: options of that program; `server`: settings of the server."""

    initdb: tuple[str, ...]
    server: Mapping[str, Setting]


def checked(settings: Mapping[str, Setting]) -> Checked:
    """Check settings. Raises `StudyError` for the first that a study must not change; the server judges its names.

    The server ignores the case of names; only small letters are allowed here, so that no setting is given twice.
    """
    server = {name: value for name, value in settings.items() if name not in _FIXED}
    for name, value in server.items():
        _refuse(name)
        _render(name, value)
        if _SIZED.fullmatch(name) and (isinstance(value, bool) or not _SIZE.fullmatch(str(value))):
            raise StudyError(
                f"the server setting {name!r} must be a size, not {value!r}", hint="a number, or 512MB, 2GB"
            )
        check_kind("postgresql", name, value)
    return Checked(_initdb(settings), server)


def render(settings: Mapping[str, Setting]) -> str:
    """Render settings as lines of postgresql.conf."""
    return "".join(f"{name} = {_render(name, value)}\n" for name, value in settings.items())


def _initdb(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    options = []
    if (sums := settings.get(CHECKSUMS, False)) not in (True, False):
        raise StudyError(f"the server setting {CHECKSUMS!r} is true or false, not {sums!r}")
    if sums:
        options.append("--data-checksums")
    if (size := settings.get(SEGMENT)) is not None:
        match = _SEGMENT.fullmatch(str(size))
        if match is None:
            raise StudyError(f"the server setting {SEGMENT!r} must be a power of two like 64MB, not {size!r}")
        options.append(f"--wal-segsize={match.group(1)}")
    for name, option in LOCALES.items():
        if (locale := settings.get(name)) is None:
            continue
        if not isinstance(locale, str) or not _LOCALE.fullmatch(locale):
            raise StudyError(f"the server setting {name!r} must be a name such as C, en-US or icu, not {locale!r}")
        options.append(f"{option}={locale}")
    return tuple(options)


def _refuse(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise StudyError(
            f"{name!r} is not a setting of PostgreSQL",
            hint="lowercase letters, digits and `_`; settings of extensions have one dot",
        )
    if name in _OWN:
        raise StudyError(f"the server setting {name!r} is reserved for tare", hint="remove it from `settings`")
    if name in _OUTSIDE_DATA_DIR:
        raise StudyError(
            f"the server setting {name!r} would put data outside the data directory",
            hint="snapshots and copies contain only the data directory",
        )


def _render(name: str, value: Setting) -> str:
    """Render a value; quotes and backslashes of strings are doubled (manual, "Parameter Names and Values")."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        return repr(value)
    if not _PRINTABLE.fullmatch(value):
        raise StudyError(f"the value of the server setting {name!r} must be printable ASCII: {value!r}")
    doubled = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
