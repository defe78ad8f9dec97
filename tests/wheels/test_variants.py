"""Tests of `rocwheel.wheels.variants`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError
from rocwheel.wheels.variants import make_metadata, parse_metadata, render_metadata
from tests.support.variant_wheels import variant_document

GFX942 = """\
{
  "$schema": "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json",
  "default-priorities": {
    "namespace": [
      "amd"
    ]
  },
  "providers": {
    "amd": {
      "static-properties": {
        "gfx_arch": [
          "gfx942",
          "gfx1100"
        ]
      },
      "feature-order": [
        "gfx_arch"
      ]
    }
  },
  "variants": {
    "gfx942": {
      "amd": {
        "gfx_arch": [
          "gfx942"
        ]
      }
    }
  }
}
"""


def test_a_variant_names_its_gpu_and_the_provider_of_the_names() -> None:
    assert render_metadata(make_metadata("gfx942", ["gfx942"], ["gfx942", "gfx1100"])).decode() == GFX942


def test_the_null_variant_has_a_provider_but_no_properties() -> None:
    document = json.loads(render_metadata(make_metadata("null", [], ["gfx942"])))
    assert document["variants"] == {"null": {}}
    assert document["providers"]["amd"]["static-properties"] == {"gfx_arch": ["gfx942"]}


@pytest.mark.parametrize("value", ["gfx90a:xnack+", "gfx9-4-generic", "gfx90a+", "GFX942", "", "gfx942\n"])
def test_values_that_the_drafts_do_not_allow_are_refused(value: str) -> None:
    with pytest.raises(RocwheelError, match=r"can't be a value; expected \[a-z0-9_\.\]\{1,64\} \(a draft: PEP 825"):
        make_metadata("gfx90a", [value], ["gfx90a"])


def test_variant_metadata_round_trips() -> None:
    made = make_metadata("gfx94x_dcgpu", ["gfx940", "gfx942"], ["gfx942"])
    assert parse_metadata(render_metadata(made), source="x", label="gfx94x_dcgpu") == made


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "x: is malformed (it is empty); expected variant metadata in the format of PEP 825 (a draft)"),
        (b"[]", ("x: is malformed (Expected `object`, got `array`); expected variant metadata "
                 "in the format of PEP 825 (a draft)")),
        (b"\xff", ("x: is malformed (JSON is malformed: invalid character (byte 0)); expected variant "
                   "metadata in the format of PEP 825 "
         "(a draft)")),
        (b'{"x":' + b"[" * 100_000,
         "x: is malformed (it is nested too deeply); expected variant metadata in the format of PEP 825 (a draft)"),
        (b" " * (1 << 20) + b"{}", "x: is 1048578 bytes long; expected at most 1048576"),
        ({"variants": {}}, "x: describes no variant; expected only 'gfx942', as in the file name"),
        ({"variants": {"gfx1100": {"amd": {"gfx_arch": ["gfx1100"]}}}},
         "x: describes 'gfx1100'; expected only 'gfx942', as in the file name"),
        ({"variants": {"gfx942": {}}},
         ("x: has no properties for 'gfx942'; expected no properties for 'null', and at least one for every other "
          "label")),
        ({"variants": {"gfx942": {"amd": {"gfx_arch": []}}}}, "x: has no value for 'amd'; expected at least one"),
        ({"variants": {"gfx942": {"amd": {}}}}, "x: has no value for 'amd'; expected at least one"),
        ({"variants": {"gfx942": {"nvidia": {"sm": ["90"]}}}},
         ("x: has properties of 'nvidia', which default-priorities doesn't list; "
          "expected each namespace in default-priorities")),
        ({"variants": {"gfx942": {"amd": {"gfx_arch": "gfx942"}}}},
         ("x: is malformed (Expected `array`, got `str` - at `$.variants[...][...][...]`); "
          "expected variant metadata in the format of "
          "PEP 825 (a draft)")),
        ({"providers": []}, ("x: is malformed (Expected `object`, got `array` - at `$.providers`); expected variant "
         "metadata in the format of PEP 825 (a draft)")),
        ({"providers": {"amd": {"x": [[1]]}}}, ("x: is malformed (Expected `str`, got `array` - at "
         "`$.providers[...][...][0]`); expected variant metadata in the format of PEP 825 (a draft)")),
    ],
)  # fmt: skip
def test_errors_in_a_foreign_file_are_explained(document: bytes | dict[str, Any], message: str) -> None:
    data = document if isinstance(document, bytes) else json.dumps(variant_document("gfx942", ["gfx942"], **document))
    with pytest.raises(RocwheelError) as raised:
        parse_metadata(data.encode() if isinstance(data, str) else data, source="x", label="gfx942")
    assert str(raised.value) == message


def test_a_schema_unknown_to_the_drafts_is_refused() -> None:
    document = variant_document("gfx942", ["gfx942"], **{"$schema": "https://example.org/1.json"})
    with pytest.raises(RocwheelError, match=r"^x: has the schema 'https://example\.org/1\.json'; expected one of http"):
        parse_metadata(json.dumps(document).encode(), source="x", label="gfx942")


def test_all_errors_are_reported_at_once() -> None:
    document = variant_document("gfx942", ["gfx90a:xnack+"], **{"$schema": ""})
    with pytest.raises(RocwheelError, match="x: 2 problems"):
        parse_metadata(json.dumps(document).encode(), source="x", label="gfx942")


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    _parse(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["$schema", "default-priorities", "providers", "variants", "x"]), json_values))
def test_any_document_in_place_of_a_part_is_read_or_refused(changes: dict[str, Any]) -> None:
    _parse(json.dumps(variant_document("gfx942", ["gfx942"], **changes)).encode())


def _parse(data: bytes) -> None:
    try:
        metadata = parse_metadata(data, source="x", label="gfx942")
    except RocwheelError:
        return
    assert parse_metadata(render_metadata(metadata), source="x", label="gfx942") == metadata
