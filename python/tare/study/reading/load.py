"""Study file → frozen Study at one scale, with every name known and every arm complete."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tare.errors import StudyError
from tare.study.model import Arm, ArmSettings, ClientSpec, MonitorSpec, Scalar, Study, SutSpec
from tare.study.protocol_spec import DuetSpec, Repetition
from tare.study.reading import baselines as published
from tare.study.reading.baselines import FileArms, baselines
from tare.study.reading.document import Document, KeyPath, dotted, parse, read
from tare.study.reading.factors import NamedLevels, arms, level_names, only, varies, with_levels
from tare.study.reading.file import DEFAULT_SCALE, ScaleSpec, StudyFile
from tare.study.reading.named_files import absolute, check_files, is_image, named_files, with_absolute_paths
from tare.study.reading.patches import SCALABLE, apply_all
from tare.study.reading.problems import check_key, checked, shown
from tare.study.reading.unused import AtScale, check_unused_levels, idle_values
from tare.study.registry import Registry
from tare.study.rules.levels import check_conditions, check_path_names, disk_bound_levels
from tare.study.rules.placement import (
    check_program,
    refuse_cluster,
    refuse_machine,
    refuse_placement,
    refuse_storage,
    vm_settings,
)
from tare.study.rules.repetition import check_looks, check_measuring, check_stages, margins_of, refuse_duet
from tare.study.rules.rotation import check_rotation, refuse_rotation
from tare.study.rules.server_settings import check_setting_value, refuse_log
from tare.study.rules.socket import refuse_ipv6, refuse_socket
from tare.study.rules.tls import refuse_tls
from tare.study.suggest import did_you_mean


def load(path: Path, registry: Registry, scale: str | None = None) -> Study:
    """Read the study file at `path`. Raises `StudyError` naming file, line, column and key path.

    Every scale is checked, not only the requested one, so that `full` stays valid while `demo` is used.
    """
    return resolve(read(path), registry, scale)


def loads(text: str, registry: Registry, scale: str | None = None, *, file: str = "study.yaml") -> Study:
    """Read a study from a text; `file` is its name in errors."""
    return resolve(parse(text, file), registry, scale)


def resolve(document: Document, registry: Registry, scale: str | None = None) -> Study:
    """Return the study in `document` at `scale` (default: full)."""
    scales = _scales(document, registry)
    wanted = DEFAULT_SCALE if scale is None else scale
    if wanted not in scales:
        hint = did_you_mean(wanted, scales, kind="its scales")
        raise StudyError(f"{document.file} has no scale {wanted!r}", hint=hint)
    return _at_each(document, registry, scales)[wanted]


def at_every_scale(path: Path, registry: Registry) -> Mapping[str, Study]:
    """Read the study file at `path` at all of its scales."""
    document = read(path)
    return _at_each(document, registry, _scales(document, registry))


def _scales(document: Document, registry: Registry) -> Mapping[str, ScaleSpec]:
    _check_format(document)
    _check_protocol(document, registry)
    given = checked(StudyFile, document).scales
    return given if DEFAULT_SCALE in given else {DEFAULT_SCALE: ScaleSpec(), **given}


def _at_each(document: Document, registry: Registry, scales: Mapping[str, ScaleSpec]) -> Mapping[str, Study]:
    read_at = {name: _at_scale(document, registry, name, spec) for name, spec in scales.items()}
    check_unused_levels(tuple(read_at.values()), partial(_check_unused, registry))
    for key, whole in idle_values(document, tuple(read_at.values())):
        _check_idle_value(whole, registry, key)
    return {name: each.study for name, each in read_at.items()}


def _check_format(document: Document) -> None:
    """Check the format first: this tare cannot know what a newer format means by its keys."""
    given = document.tree.get("format")
    if isinstance(given, bool):
        raise document.error(("format",), f"expected 1, got {shown(given)}")
    if isinstance(given, int) and given > 1:
        hint = "this tare reads format 1: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)


def _check_protocol(document: Document, registry: Registry) -> None:
    """Check the protocol's name before the keys, which depend on it."""
    given = document.tree.get("protocol")
    name = given.get("name") if isinstance(given, Mapping) else None
    if isinstance(name, str) and name not in registry.protocols:
        raise _unknown(document, ("protocol", "name"), "protocol", name, registry.protocols)


def _at_scale(document: Document, registry: Registry, scale: str, spec: ScaleSpec) -> AtScale:
    source: KeyPath = ("scales", scale, "set")
    scaled = apply_all(document, source, spec.set, SCALABLE)
    _check_protocol(scaled, registry)
    file = checked(StudyFile, scaled)
    names = level_names(scaled, file)
    varied = {factor: varies(given) for factor, given in file.factors.items()}
    every = arms(scaled, file)
    where: KeyPath = ("scales", scale, "only")
    kept, chosen = only(scaled, where, spec.only, names, every)
    baseline = baselines(scaled, file, names, chosen)
    check_stages(scaled, file, names, baseline)
    stages = file.stages if len(kept.get(file.stages or "", ())) > 1 else None  # a single one is no sequence
    check_conditions(scaled, file, names, baseline)
    if isinstance(file.protocol, DuetSpec) and baseline.levels:
        hint = "name one arm, or use `interleave`"
        raise scaled.error(("baseline",), "a duet needs one baseline, which runs with every arm", hint=hint)
    whole_arms = {arm.name: with_levels(scaled, file, arm.levels) for arm in chosen}
    resolved = tuple(_arm(whole_arms[arm.name], registry, arm, file.protocol) for arm in chosen)
    for arm, settled in zip(chosen, resolved, strict=True):
        check_path_names(whole_arms[arm.name], file, arm, settled.settings)
        _check_arm(whole_arms[arm.name], registry, file, settled)
    _refuse_idle_patches(scaled, source, spec, tuple(whole_arms.values()))
    check_measuring(scaled, file.protocol, resolved)
    check_looks(scaled, file)
    check_rotation(scaled, file, stages, resolved)
    study = Study(
        name=file.name,
        scale=scale,
        question=file.question,
        source=file.source.publication() if file.source else None,
        arms=resolved,
        baseline=baseline.first.name,
        baseline_levels=baseline.levels,
        factors=kept,
        varies=varied,
        protocol=file.protocol,
        published=published.published(scaled, file, FileArms(names, every, chosen), baseline),
        conditions=file.conditions,
        strata=file.strata,
        stages=stages,
        published_by=file.published_by,
        disk_bound=disk_bound_levels(scaled, file, names),
        quantities=file.quantities,
        margins=margins_of(file),
        max_overhead=file.max_overhead or {},
        deviations=(*file.deviations, *spec.deviations),
        text=document.text,
        files=named_files(resolved, registry),
    )
    return AtScale(study, scaled, file, every, tuple(whole_arms.values()))


def _check_unused(registry: Registry, at: AtScale, arm: NamedLevels) -> None:
    """Raise what an arm would be refused for if it ran."""
    document = with_levels(at.document, at.file, arm.levels)
    _check_arm(document, registry, at.file, _arm(document, registry, arm, at.file.protocol))


def _check_idle_value(document: Document, registry: Registry, key: KeyPath) -> None:
    """Raise for a value that is wrong by itself, in type, bounds or name; other keys are not considered."""
    side, rest = key[:1], key[1:]
    if side == ("workload",):
        name = _workload_name(document, registry)
        check_key(registry.workloads[name], _without_name(document), side, rest)
    elif side == ("monitors",):
        if document.at(key[:2]) is not None:
            check_key(MonitorSpec, document, key[:2], rest[1:])
    else:
        check_key(SutSpec if side == ("sut",) else ClientSpec, document, side, rest)
        _check_name(document, registry, key)
        if key[:2] == ("sut", "settings") and len(key) > 2:
            _check_setting(document, str(key[-1]), document.at(key))


def _without_name(document: Document) -> Document:
    parameters = {key: value for key, value in document.tree["workload"].items() if key != "name"}
    return replace(document, tree={**document.tree, "workload": parameters})


def _check_name(document: Document, registry: Registry, key: KeyPath) -> None:
    value = document.at(key)
    known = {
        "deployment": registry.deployments,
        "database": registry.databases,
        "storage.kind": registry.storages,
    }.get(kind := dotted(key[1:]))
    if kind == "image":
        _check_image(document, key, value, registry)
    elif known is not None and value is not None and value not in known:
        raise _unknown(document, key, kind.partition(".")[0], value, known, registry.refused)


def _check_arm(document: Document, registry: Registry, file: StudyFile, arm: Arm) -> None:
    """Check what only a complete arm can be refused for."""
    settings = arm.settings
    model = registry.workloads[settings.workload_name]
    parameters = model.model_validate_json(json.dumps(dict(settings.workload)))
    if settings.sut.database is not None and settings.workload_name in registry.drives:
        try:
            registry.drives[settings.workload_name](parameters, settings.sut.database)
        except StudyError as error:
            what = f"{error.what} (arm {arm.name!r})"
            raise document.error(
                _key_to_blame(document, (("workload", "name"), ("sut", "database"))), what, hint=error.hint
            ) from error
    refusal = refuse_duet(file.protocol, settings, parameters)
    refusal = refusal or refuse_rotation(file.protocol, settings, parameters)
    refusal = refusal or refuse_socket(settings, registry.socket_servers, registry.socket_clients)
    refusal = refusal or refuse_log(settings, registry.log_servers)
    refusal = refusal or refuse_ipv6(settings, registry.ipv6_servers)
    refusal = refusal or refuse_tls(settings, registry.tls_servers, registry.tls_clients)
    if refusal := refusal or refuse_cluster(settings, parameters, registry.clusters):
        what = f"{refusal.why} (arm {arm.name!r})"
        raise document.error(_key_to_blame(document, refusal.keys), what, hint=refusal.hint)


def _arm(document: Document, registry: Registry, arm: NamedLevels, protocol: Repetition) -> Arm:
    name = _workload_name(document, registry)
    sut, client = _sides(document, registry, name)
    refusal = refuse_machine(sut, client, protocol) or refuse_placement(
        sut,
        client,
        sut_isolates=registry.deployments[sut.deployment],
        client_isolates=client is not None and registry.deployments[client.deployment],
    )
    if refusal is not None:
        what = f"{refusal.why} (arm {arm.name!r})"
        raise document.error(_key_to_blame(document, refusal.keys), what, hint=refusal.hint)
    sut = with_absolute_paths(document, sut).model_copy(update={"vm": vm_settings(sut)})
    if client is not None:
        client = with_absolute_paths(document, client)
    settings = ArmSettings(
        sut=sut,
        client=client,
        workload_name=name,
        workload=_workload(document, registry, name),
        monitors=_monitors(document, registry),
    )
    return Arm(name=arm.name, levels=arm.levels, settings=settings)


def _sides(document: Document, registry: Registry, workload: str) -> tuple[SutSpec, ClientSpec | None]:
    """Return SUT and client, complete and with known names; no client if the workload needs no database."""
    if workload in registry.programs:
        check_program(document, workload)
    sut = checked(SutSpec, document, ("sut",))
    client = None
    if workload not in registry.programs:
        client = checked(ClientSpec, _with_client(document, workload), ("client",))
    for side, spec in (("sut", sut), ("client", client)):
        if spec is None:
            continue
        if spec.deployment not in registry.deployments:
            raise _unknown(
                document,
                (side, "deployment"),
                "deployment",
                spec.deployment,
                registry.deployments,
                registry.refused,
            )
        _check_image(document, (side, "image"), spec.image, registry)
        check_files(document, (side,), spec, registry)
    kind = sut.storage.kind
    if kind not in registry.storages:
        raise _unknown(document, ("sut", "storage", "kind"), "storage", kind, registry.storages, registry.refused)
    if refusal := refuse_storage(sut, registry.storages[kind]):
        raise document.error(_key_to_blame(document, refusal.keys), refusal.why, hint=refusal.hint)
    if client is not None:
        _check_database(document, sut, registry)
    return sut, client


def _with_client(document: Document, workload: str) -> Document:
    if document.tree.get("client") is None:
        hint = f"{workload} drives a database: name where it runs"
        raise document.error(("client",), "this key is missing", hint=hint)
    return document


def _monitors(document: Document, registry: Registry) -> Mapping[str, MonitorSpec]:
    """Return the enabled monitors: `NAME: null` disables a monitor of the template."""
    monitors = {}
    for name, written in document.tree.get("monitors", {}).items():
        if name not in registry.monitors:
            raise _unknown(document, ("monitors", name), "monitor", name, registry.monitors, registry.refused)
        if written is not None:
            monitors[name] = checked(MonitorSpec, document, ("monitors", name))
    return monitors


def _workload_name(document: Document, registry: Registry) -> str:
    name = document.tree["workload"].get("name")
    if name is None:
        raise document.error(("workload", "name"), "this key is missing")
    if not isinstance(name, str):
        raise document.error(("workload", "name"), f"expected text, got {shown(name)}")
    if name not in registry.workloads:
        raise _unknown(document, ("workload", "name"), "workload", name, registry.workloads, registry.refused)
    return name


def _workload(document: Document, registry: Registry, name: str) -> Mapping[str, object]:
    without_name = _without_name(document)
    parameters = without_name.tree["workload"]
    for key in registry.workloads[name].paths:
        parameters = _with_absolute_path(document, parameters, tuple(key.split(".")))
    whole = replace(without_name, tree={**without_name.tree, "workload": parameters})
    return checked(registry.workloads[name], whole, ("workload",)).model_dump(mode="json")


def _with_absolute_path(document: Document, parameters: Any, key: Sequence[str]) -> Any:
    """Return `parameters` with the path at `key`, if any, made absolute."""
    if not key:
        return absolute(document, parameters) if isinstance(parameters, str) else parameters
    if not isinstance(parameters, Mapping) or key[0] not in parameters:
        return parameters
    return {**parameters, key[0]: _with_absolute_path(document, parameters[key[0]], key[1:])}


def _check_database(document: Document, sut: SutSpec, registry: Registry) -> None:
    """Check the database and its settings: one more setting at a time, to identify the refused one."""
    if sut.database is None:
        raise document.error(("sut", "database"), "this key is missing")
    if sut.database not in registry.databases:
        raise _unknown(
            document, ("sut", "database"), "database", sut.database, registry.databases, registry.refused
        )
    asked: dict[str, Scalar] = {}
    for name, value in sut.settings.items():
        asked[name] = value
        _check_setting(document, name, value)
        try:
            registry.databases[sut.database](asked)
        except StudyError as error:
            raise document.error(("sut", "settings", name), error.what, hint=error.hint) from error


def _check_setting(document: Document, name: str, value: Scalar) -> None:
    try:
        check_setting_value(name, value)
    except StudyError as error:
        raise document.error(("sut", "settings", name), error.what, hint=error.hint) from error


def _check_image(document: Document, where: KeyPath, image: str, registry: Registry) -> None:
    if is_image(image, registry.recipes):
        return
    if ":" in image or "/" in image:
        hint = "a recipe's name, the path of a recipe (.yaml), docker://REF, oci:PATH or tar:PATH"
        raise document.error(where, f"{shown(image)} is not an image reference", hint=hint)
    raise _unknown(document, where, "image recipe", image, registry.recipes)


def _key_to_blame(document: Document, keys: Sequence[KeyPath]) -> KeyPath:
    """Return the key to blame: of those that clash, the one that a patch set."""
    patched = (key for key in keys if document.origin(key).path[:1] in {("factors",), ("scales",)})
    return next(patched, keys[0])


def _unknown(  # noqa: PLR0913, PLR0917 - what is unknown, where, and what is known
    document: Document,
    where: KeyPath,
    kind: str,
    given: object,
    known: Iterable[str],
    refused: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> StudyError:
    if (why := refused.get((kind, str(given)))) is not None:
        return document.error(where, why, hint="`tare doctor` lists the plug-ins")
    return document.error(where, f"there is no {kind} {shown(given)}", hint=did_you_mean(given, known))


def _refuse_idle_patches(
    document: Document, source: KeyPath, spec: ScaleSpec, whole_arms: Sequence[Document]
) -> None:
    """Refuse a scale's value that the levels of every arm replace: it would never be used."""
    used = {
        origin.path[: len(source) + 1]
        for arm in whole_arms
        for path, origin in arm.origins.items()
        if path[:1] != ("scales",)
    }
    for key in spec.set:
        written = (*source, key)
        if written not in used:
            raise document.error(written, "every arm's levels set this key, so the scale's value is never used")
