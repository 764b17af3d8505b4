"""Option files of the MySQL family: check settings, and render them so that no value can add a line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tare.databases import ServerPlan
from tare.databases.tls import CERTIFICATE_FILE, KEY_FILE
from tare.errors import StudyError

Setting = str | int | float | bool

RESERVED: frozenset[str] = frozenset(
    {
        "basedir", "bind_address", "bootstrap", "chroot", "datadir", "defaults_extra_file", "defaults_file",
        "defaults_group_suffix", "extra_port", "init_file", "log_error", "networking", "pid_file", "port",
        "print_defaults", "skip_grant_tables", "grant_tables", "socket",
        "ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "tmpdir", "user",
    }
)  # fmt: skip
"""Options that tare sets itself, or that would take control of the server away from tare."""

OUTSIDE_DATA_DIR: frozenset[str] = frozenset(
    {
        "aria_log_dir_path", "innodb_data_home_dir", "innodb_directories", "innodb_doublewrite_dir",
        "innodb_log_group_home_dir", "innodb_temp_tablespaces_dir", "innodb_undo_directory",
    }
)  # fmt: skip
"""Options that would put data outside the data directory, where no snapshot contains them."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PREFIX = re.compile(r"^(loose|skip|disable|enable|maximum)_(?=.)")
_BARE = re.compile(r"[A-Za-z0-9_.,:/+-]+")
_SIZE = re.compile(r"[-+]?\d+[KMGTPEkmgtpe]?")
"""Values of variables whose names end in `_size` ("Using Options to Set Program Variables" in MySQL's manual)."""
_QUOTABLE = re.compile(r"[ !#-&(-\[\]-~]*")
"""Printable ASCII without quotes and backslash."""


def tls_options(plan: ServerPlan) -> dict[str, Setting]:
    """Options that name the run's certificate; empty without a certificate."""
    if plan.secrets.certificate is None:
        return {}
    return {"ssl_cert": f"{plan.run_dir}/{CERTIFICATE_FILE}", "ssl_key": f"{plan.run_dir}/{KEY_FILE}"}


def log_options(plan: ServerPlan) -> dict[str, Setting]:
    """The option that sends the server's log to a file; empty where it goes to standard error."""
    return {} if plan.log_file is None else {"log_error": plan.log_file}


def check_settings(settings: Mapping[str, Setting], own: frozenset[str] = frozenset()) -> None:
    """Raise `StudyError` for the first setting that a study must not change. Unknown names are left to the server.

    `own`: options that tare sets for this server, in addition to those of all servers.

    Servers accept `-` for `_`, unambiguous beginnings of names, and the prefixes loose-, skip-, enable-, disable-
    and maximum-, so all of these forms are checked.
    """
    seen: dict[str, str] = {}
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            raise StudyError(
                f"{name!r} is not a server setting", hint="lowercase letters, digits, `_` and `-` only"
            )
        plain = name.replace("-", "_")
        if plain in seen:
            raise StudyError(f"the server setting {name!r} is given twice, also as {seen[plain]!r}")
        seen[plain] = name
        _refuse_reserved(name, plain, RESERVED | own)
        _render(name, value)
        if plain.endswith("_size") and (isinstance(value, bool) or not _SIZE.fullmatch(str(value))):
            raise StudyError(
                f"the server setting {name!r} must be a size, not {value!r}", hint="a whole number, or 512M, 2G"
            )


def render_section(section: str, settings: Mapping[str, Setting]) -> str:
    """Render one group of an option file, with one line for each setting."""
    lines = (f"{name} = {_render(name, value)}" for name, value in settings.items())
    return "\n".join((f"[{section}]", *lines, ""))


def _refuse_reserved(name: str, plain: str, reserved: frozenset[str]) -> None:
    forms = {plain, _PREFIX.sub("", plain)}
    if taken := _name_beginning_with(forms, reserved):
        raise StudyError(
            f"the server setting {name!r} is reserved for tare ({taken})", hint="remove it from `settings`"
        )
    if _name_beginning_with(forms, OUTSIDE_DATA_DIR):
        raise StudyError(
            f"the server setting {name!r} would put data outside the data directory",
            hint="snapshots and copies contain only the data directory",
        )


def _name_beginning_with(forms: set[str], names: frozenset[str]) -> str | None:
    return next((name for name in sorted(names) for form in sorted(forms) if name.startswith(form)), None)


def _render(name: str, value: Setting) -> str:
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    if isinstance(value, (int, float)):
        return repr(value)
    if _BARE.fullmatch(value):
        return value
    if not _QUOTABLE.fullmatch(value):
        raise StudyError(
            f"the value of the server setting {name!r} cannot be written in an option file: {value!r}",
            hint="printable ASCII without quotes and backslashes",
        )
    return f'"{value}"'
