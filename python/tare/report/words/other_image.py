"""That arms run other programs than their baseline: another image, and the settings in which its server differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tare.databases.registry import DATABASES
from tare.plural import counted
from tare.record.run_record import RunRecord
from tare.report.plain import plain
from tare.report.words.headlines import Headline
from tare.study.model import Study

_NAMES: Mapping[str, str] = {
    "cassandra": "Cassandra",
    "cassandra-5": "Cassandra",
    "ferretdb": "FerretDB",
    "mariadb": "MariaDB",
    "mongodb": "MongoDB",
    "mysql": "MySQL",
    "postgresql": "PostgreSQL",
    "redis": "Redis",
    "valkey": "Valkey",
}
_VERSIONS = ("version", "server_version", "info.valkey_version", "info.redis_version", "release_version")
"""Settings by which servers report their version; the first that one has counts."""
_TELLING = (
    "character_set_server", "collation_server", "lc_collate", "innodb_buffer_pool_size", "shared_buffers",
    "maxmemory", "innodb_flush_log_at_trx_commit", "sync_binlog", "fsync", "synchronous_commit", "appendonly",
    "innodb_flush_method", "innodb_use_native_aio", "max_connections",
)  # fmt: skip
"""Settings that are named before all others, as they often explain a difference."""
_NAMED, _LONGEST = 3, 60


def other_images(study: Study, records: Sequence[RunRecord]) -> Iterator[Headline]:
    """Yield a sentence for each image that arms run from in place of their baseline's; none if all are alike."""
    first: dict[str, RunRecord] = {}
    for record in records:
        if record.outcome.ok:
            first.setdefault(record.arm, record)
    arms: dict[str, list[str]] = {}
    for arm in study.arms:
        own, baseline = first.get(arm.name), first.get(study.baseline_of(arm.name))
        if own is not None and baseline is not None and _digest(own) != _digest(baseline):
            arms.setdefault(_sentence(own, baseline), []).append(arm.name)
    for sentence, names in arms.items():
        of = names[0] if len(names) == 1 else f"{names[0]} and {counted(len(names) - 1, 'more arm')}"
        yield Headline(f"{sentence} ({plain(of, _LONGEST)}).", grave=False, lead=True)


def _digest(record: RunRecord) -> object:
    image = record.images.get("sut")
    return image and image.digest


def _sentence(own: RunRecord, baseline: RunRecord) -> str:
    (mine, version), (theirs, older) = _product(own), _product(baseline)
    full, other = f"{mine} {version}".strip(), older if mine == theirs and older else f"{theirs} {older}".strip()
    alike = (mine, version) == (theirs, older)
    which = f"Another image of {full}" if alike else f"Another image: {full} against {other}"
    unlike = _unlike(own, baseline)
    if unlike is None:
        return f"{which}; its settings are unknown"
    if not unlike:
        return f"{which}; no setting differs"
    named = sorted(unlike, key=lambda name: (_TELLING.index(name) if name in _TELLING else len(_TELLING), name))
    shown = ", ".join(named[:_NAMED])
    verb = "differs" if len(unlike) == 1 else "differ"
    among = f": {shown}" if len(unlike) <= _NAMED else f", among them {shown}"
    return f"{which}; {counted(len(unlike), 'setting')} {verb}{among}"


def _product(record: RunRecord) -> tuple[str, str]:
    """Name and version of the server; without settings, the version is empty."""
    name = (record.settings.get("sut") or {}).get("database")
    known = _NAMES.get(str(name), str(name or "the program"))
    version = next((each for key in _VERSIONS if (each := (record.effective or {}).get(key))), None)
    return plain(known, _LONGEST), plain(version.split()[0].split("-")[0], _LONGEST) if version else ""


def _unlike(own: RunRecord, baseline: RunRecord) -> frozenset[str] | None:
    """Settings that both servers have, with different values; not those that differ in every run."""
    one, other = own.effective, baseline.effective
    if one is None or other is None:
        return None
    database = DATABASES.get(str((own.settings.get("sut") or {}).get("database")))
    per_run = frozenset() if database is None else database.per_run
    shared = (one.keys() & other.keys()) - per_run
    return frozenset(name for name in shared if one[name] != other[name] and not _is_version(name))


def _is_version(name: str) -> bool:
    return name in _VERSIONS or "version" in name
