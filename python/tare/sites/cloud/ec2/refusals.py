"""Errors of EC2, or of the connection to it, as one sentence with a way forward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import (
    ConnectionError as NoConnection,
)

from tare.errors import EnvironmentLacks
from tare.sites.cloud import StillUsed, Unanswered

_CREDENTIALS = (
    "boto3 takes them from AWS_PROFILE, ~/.aws or AWS_ACCESS_KEY_ID; check with: aws sts get-caller-identity"
)
_FEWER = "try another zone or machine type, fewer sites, or later"
_QUOTA = "ask AWS for a higher quota (Service Quotas, EC2), or plan fewer or smaller machines"
_HINTS = {
    "InsufficientInstanceCapacity": _FEWER,
    "InsufficientHostCapacity": _FEWER,
    "Unsupported": _FEWER,
    "SpotMaxPriceTooLow": "leave out spot, or try another zone",
    "VcpuLimitExceeded": _QUOTA,
    "InstanceLimitExceeded": _QUOTA,
    "MaxSpotInstanceCountExceeded": _QUOTA,
    "VolumeLimitExceeded": _QUOTA,
    "SecurityGroupLimitExceeded": _QUOTA,
    "PlacementGroupLimitExceeded": _QUOTA,
    "AuthFailure": _CREDENTIALS,
    "InvalidClientTokenId": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "ExpiredToken": _CREDENTIALS,
    "RequestExpired": "is this machine's clock right? Else renew the credentials",
    "UnauthorizedOperation": "the credentials lack this right: docs/reference/machine-plan.md lists what is needed",
    "OptInRequired": "enable the region for this account first",
    "RequestLimitExceeded": "wait some minutes: this account sends too many requests",
    "Throttling": "wait some minutes: this account sends too many requests",
    "VPCIdNotSpecified": "the region has no default network: name a subnet as network",
    "DefaultVpcDoesNotExist": "the region has no default network: name a subnet as network",
    "InvalidSubnetID.NotFound": "name a subnet of this region as network",
}
_USED = frozenset({"DependencyViolation", "InvalidPlacementGroup.InUse", "VolumeInUse", "InvalidGroup.InUse"})
_GONE = (".NotFound", ".Unknown", ".NotFoundException")
_SERVER_ERROR = 500


def code_of(error: ClientError) -> str:
    """EC2's code of an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_gone(error: ClientError) -> bool:
    """Whether the error says that the resource does not exist."""
    return code_of(error).endswith(_GONE)


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Turn any error of boto3 in the context into `EnvironmentLacks`; `what`: what was tried."""
    try:
        yield
    except ClientError as error:
        raise _refusal(what, error) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise EnvironmentLacks(f"{what} was not tried: {_flat(error)}", hint=_CREDENTIALS) from error
    except (NoConnection, HTTPClientError) as error:
        hint = "is this machine online, and the region spelt right?"
        raise Unanswered(f"{what}: EC2 did not answer: {_flat(error)}", hint=hint) from error
    except BotoCoreError as error:
        raise EnvironmentLacks(f"{what} was not possible: {_flat(error)}", hint=_CREDENTIALS) from error


def _refusal(what: str, error: ClientError) -> EnvironmentLacks:
    code = code_of(error)
    words = str(error.response.get("Error", {}).get("Message", "")).strip().rstrip(".")
    if code in _USED:
        return StillUsed(f"{what} was refused: {words} ({code})")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= _SERVER_ERROR and code not in _HINTS:
        return Unanswered(f"{what} failed at EC2: {words} ({code})", hint="try again later")
    return EnvironmentLacks(f"{what} was refused: {words} ({code})", hint=_HINTS.get(code))


def _flat(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
