"""Encryption: in force as declared, and the same version and cipher in runs that are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.run.parity.test_compare import record, settings, study

from tare.record.measurement import Encryption, Measurement
from tare.run.parity.compare import differences
from tare.run.parity.declared import undeclared_encryption

AGREED = Encryption("TLSv1.3", "TLS_AES_256_GCM_SHA384", 0.4)


@pytest.mark.parametrize(
    ("tls", "agreed", "sentences"),
    [
        (True, AGREED, ()),
        (False, None, ()),
        (True, None, ("connections: TLS declared, the client's are in clear text",)),
        (False, AGREED, ("connections: no TLS declared, TLSv1.3 in force",)),
    ],
)
def test_what_connections_agreed_on_is_held_against_the_study(
    tls: bool, agreed: Encryption | None, sentences: tuple[str, ...]
) -> None:
    assert undeclared_encryption(settings("container", tls=tls), agreed) == sentences


def test_another_cipher_is_a_difference_and_a_measurement_to_come_is_none() -> None:
    before, to_come = record("bridge"), record("bridge")
    one, other = (
        before.model_copy(update={"measurement": Measurement(encryption=replace(AGREED, cipher=cipher))})
        for cipher in ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256")
    )
    clear = before.model_copy(update={"measurement": Measurement()})
    (difference,) = differences(study(), one, other)
    text = "connections: TLS cipher suite: TLS_AES_256_GCM_SHA384 in bridge, TLS_AES_128_GCM_SHA256 in bridge"
    assert str(difference) == text
    assert differences(study(), one, to_come) == ()
    assert differences(study(), clear, one) == ()
