"""Every provider by name, imported only when it is used: their libraries are an extra of tare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tare.errors import EnvironmentLacks
from tare.sites.cloud import Provider
from tare.sites.cloud.plan import MachinePlan


def _ec2(plan: MachinePlan) -> Provider:
    with _needing("boto3", "EC2"):
        from tare.sites.cloud.ec2.provider import Ec2
    return Ec2(plan.region)


def _openstack(plan: MachinePlan) -> Provider:
    with _needing("openstack", "OpenStack"):
        from tare.sites.cloud.openstack.provider import OpenStack
    return OpenStack(plan.region)


PROVIDERS: Mapping[str, Callable[[MachinePlan], Provider]] = {"ec2": _ec2, "openstack": _openstack}


def provider_of(plan: MachinePlan) -> Provider:
    """The provider of a plan. Raises `EnvironmentLacks` if its library is missing."""
    return PROVIDERS[plan.provider](plan)


_PACKAGES = {"boto3": "boto3", "openstack": "openstacksdk"}


@contextmanager
def _needing(module: str, cloud: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in (module, "botocore", "keystoneauth1"):
            raise
        raise EnvironmentLacks(
            f"machines from {cloud} need the Python package {_PACKAGES[module]}, which is not installed",
            hint="install tare with its extra: pip install 'tare-bench[cloud]'",
        ) from error
