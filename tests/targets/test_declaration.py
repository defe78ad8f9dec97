"""The file in which a wheel declares its GPU targets."""

from __future__ import annotations

import re

import pytest

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.environment.coherence import PackageTargets, check_coherence
from rocwheel.targets.declaration import decode_declaration, encode_declaration


def test_targets_are_declared_in_canonical_order() -> None:
    targets = [TargetId("gfx1030"), TargetId("gfx906"), TargetId("gfx90a", xnack=True), TargetId("gfx906")]
    assert encode_declaration(targets) == (
        b'{\n  "schema": "rocwheel.rocm-targets/1",\n'
        b'  "rocm_targets": [\n    "gfx906",\n    "gfx90a:xnack+",\n    "gfx1030"\n  ]\n}\n'
    )


def test_a_coherence_check_is_recorded() -> None:
    carriers = [PackageTargets("blas", (TargetId("gfx906"),)), PackageTargets("fft", (TargetId("gfx1030"),), ("blas",))]
    document = decode_declaration(encode_declaration([], check_coherence(carriers).recorded), source="x")
    assert document.coherence is not None
    assert document.coherence.packages == ("blas", "fft")
    assert document.coherence.gaps == ("blas lacks gfx1030, which fft has; blas has gfx906",)


def test_a_declaration_round_trips() -> None:
    targets = (TargetId("gfx906"), TargetId("gfx9-4-generic"))
    assert decode_declaration(encode_declaration(targets), source="x").targets == targets


def test_targets_of_newer_compilers_are_declared_unchanged() -> None:
    targets = (TargetId("gfx1999", xnack=True), TargetId("amdgcnspirv"))
    assert decode_declaration(encode_declaration(targets), source="x").targets == targets


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"{", "x: is malformed (Input data was truncated)", id="cut off"),
        pytest.param(
            b'{"schema": "other/1", "rocm_targets": []}',
            "x: has the schema 'other/1'; expected rocwheel.rocm-targets/1",
            id="other schema",
        ),
        pytest.param(
            b'{"schema": "rocwheel.rocm-targets/1", "rocm_targets": "gfx906"}',
            "x: is malformed (Expected `array`, got `str` - at `$.rocm_targets`)",
            id="wrong type",
        ),
    ],
)
def test_a_malformed_declaration_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        decode_declaration(data, source="x")
