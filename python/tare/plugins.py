"""Plug-ins of other packages, found by their entry points and checked against the contract of their kind.

Importing this module looks for nothing. A plug-in that cannot be used is refused by name; all others keep working.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from tare.errors import EnvironmentLacks

T = TypeVar("T")
FAKE = "fake"
"""Prefix of the names of implementations for tests; no study may use them."""
_ADVICE = "update or uninstall that package"


@dataclass(frozen=True)
class Package:
    """An installed distribution."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Plugin(Generic[T]):
    """One entry point. If the plug-in is refused, `implementation` is `None`, and `refusal` says why."""

    kind: str
    name: str
    package: Package
    implementation: T | None
    refusal: str | None = None


class Implementations(Mapping[str, T]):
    """Name → implementation: the built-in ones first, then the plug-ins that keep the contract.

    Looking up a refused plug-in raises `EnvironmentLacks`; iteration leaves it out. `kind` is the singular
    of the entry points' group: `database` reads `tare.databases`.
    """

    def __init__(self, kind: str, built_in: Mapping[str, T], broken: Callable[[object], str | None]) -> None:
        self.kind = kind
        self.built_in = built_in
        self._broken = broken

    def __getitem__(self, name: str) -> T:
        if name in self.built_in:
            return self.built_in[name]
        plugin = self.plugins[name]
        if plugin.implementation is None:
            raise EnvironmentLacks(str(plugin.refusal), hint=_ADVICE)
        return plugin.implementation

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or any(name == usable for usable in self._usable())

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self._usable()

    def __len__(self) -> int:
        return len(self.built_in) + len(tuple(self._usable()))

    def package_of(self, name: str) -> Package | None:
        """Package that a name comes from; `None` for a built-in or an unknown name."""
        return None if name in self.built_in or name not in self.plugins else self.plugins[name].package

    @cached_property
    def plugins(self) -> Mapping[str, Plugin[T]]:
        """All entry points by name, refused ones too. Each is imported once, on first access."""
        by_name: dict[str, Plugin[T]] = {}
        for point in sorted(entry_points(group=f"tare.{self.kind}s"), key=lambda point: (point.name, point.value)):
            plugin = self._plugin(point)
            if (other := by_name.get(point.name)) is not None and other.package != plugin.package:
                plugin = self._refused(point, f"{other.package} registers that name too")
            by_name[point.name] = plugin
        return by_name

    def _usable(self) -> Iterator[str]:
        return (name for name, plugin in self.plugins.items() if plugin.implementation is not None)

    def _plugin(self, point: EntryPoint) -> Plugin[T]:
        if point.name in self.built_in:
            return self._refused(point, "that name is built in")
        if point.name.startswith(FAKE):
            return self._refused(point, f"names that begin with {FAKE!r} are for tests")
        try:
            loaded = point.load()
        except Exception as error:  # noqa: BLE001 - whatever somebody else's module raises
            last = traceback.format_exception_only(error)[-1].strip()
            return self._refused(point, f"{point.value} cannot be imported: {last}")
        if (why := self._broken(loaded)) is not None:
            return self._refused(point, f"{point.value} {why}")
        return Plugin(self.kind, point.name, _package(point), loaded)

    def _refused(self, point: EntryPoint, why: str) -> Plugin[T]:
        package = _package(point)
        return Plugin(
            self.kind, point.name, package, None, f"{self.kind} {point.name} of {package} is refused: {why}"
        )


def _package(point: EntryPoint) -> Package:
    return (
        Package("an unknown package", "?") if point.dist is None else Package(point.dist.name, point.dist.version)
    )


def breach_of(contract: type) -> Callable[[object], str | None]:
    """Make a check that says how an object breaks a `Protocol`; the check returns `None` if the object keeps it.

    Attributes must have their declared types. Methods must take the contract's parameters, by position and by name.
    """

    def breach(implementation: object) -> str | None:
        if inspect.isclass(implementation):
            return "is a class; the entry point must name an instance"
        return next(_breaches(contract, implementation), None)

    return breach


def breach_of_factory(contract: type) -> Callable[[object], str | None]:
    """Make the same check for a class that is made of (host, ledger, engine) and whose instances keep it."""

    def breach(implementation: object) -> str | None:
        if not inspect.isclass(implementation):
            return "must be a class"
        try:
            inspect.signature(implementation).bind("host", "ledger", "engine")
        except TypeError as error:
            return f"must accept (host, ledger, engine), but {error}"
        return next(_breaches(contract, implementation), None)

    return breach


def _breaches(contract: type, implementation: object) -> Iterator[str]:
    for name, declared in _attributes(contract).items():
        if not hasattr(implementation, name):
            yield f"has no attribute {name}"
        elif not _fits(getattr(implementation, name), declared):
            yield f"must have {name} of type {_shown(declared)}, got {getattr(implementation, name)!r}"
    for name, method in _methods(contract).items():
        given = getattr(implementation, name, None)
        if not callable(given):
            yield f"has no method {name}"
        elif (why := _wrong_signature(method, given, of_class=inspect.isclass(implementation))) is not None:
            yield f"has a method {name} with a wrong signature: {why}"


def _attributes(contract: type) -> Mapping[str, Any]:
    hints = get_type_hints(contract)
    return {name: get_args(hint)[0] if get_origin(hint) is ClassVar else hint for name, hint in hints.items()}


def _methods(contract: type) -> Mapping[str, Callable[..., Any]]:
    return {name: each for name, each in vars(contract).items() if inspect.isfunction(each) and name[0] != "_"}


def _fits(value: object, declared: Any) -> bool:
    adapter = TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True, strict=True))
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _shown(declared: Any) -> str:
    return declared.__name__ if inspect.isclass(declared) and not get_args(declared) else str(declared)


def _wrong_signature(method: Callable[..., Any], given: Callable[..., Any], *, of_class: bool) -> str | None:
    """Why `given` cannot be called like the contract's method. `of_class`: it takes `self` as well."""
    wanted = list(inspect.signature(method).parameters.values())[0 if of_class else 1 :]
    signature = inspect.signature(given)
    positional = [each.name for each in wanted if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    by_name = {each.name: None for each in wanted if each.kind is inspect.Parameter.KEYWORD_ONLY}
    named = dict.fromkeys(positional[1 if of_class else 0 :])
    try:
        signature.bind(*positional, **by_name)
        signature.bind(*positional[: 1 if of_class else 0], **named, **by_name)
    except TypeError as error:
        wanted_text = ", ".join(each.name for each in wanted)
        return f"it must take ({wanted_text}), and {error}"
    return None
