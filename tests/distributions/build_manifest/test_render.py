"""Manifests and checksums as text, and read again."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.build_manifest.read import parse_manifest
from rocwheel.distributions.build_manifest.render import render_manifest, render_sums
from rocwheel.distributions.build_manifest.values import BuildManifest, ManifestInput, ManifestOutput, ManifestRecipe
from tests.distributions.build_manifest.manifests import manifest_of

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\udc80\udcff"), max_size=20)
PLACES = TEXTS.filter(lambda place: "\0" not in place)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
SIZES = st.integers(0, 2**60)
NAMES = st.text("abz019._-", min_size=1, max_size=12).filter(lambda name: set(name) != {"."})
MANIFESTS = st.builds(
    BuildManifest,
    TEXTS,
    st.integers(0, 253402300799),
    st.dictionaries(TEXTS, st.none() | TEXTS | SIZES | st.lists(TEXTS)),
    st.builds(ManifestRecipe, TEXTS, DIGESTS, PLACES),
    st.lists(st.builds(ManifestInput, TEXTS, SIZES, SIZES, DIGESTS, PLACES)).map(tuple),
    st.lists(
        st.builds(ManifestOutput, NAMES.map("dist/{}".format), SIZES, DIGESTS), unique_by=lambda one: one.path
    ).map(tuple),
    st.dictionaries(TEXTS, TEXTS),
    st.dictionaries(TEXTS, TEXTS),
)


@given(MANIFESTS)
def test_what_is_written_is_read_again(manifest: BuildManifest) -> None:
    assert parse_manifest(render_manifest(manifest), "m") == manifest


def test_the_schema_comes_first_and_the_text_is_ascii() -> None:
    text = render_manifest(manifest_of({"dist/a.whl": b"a"})).decode("ascii")
    assert text.startswith('{\n  "schema": "rocwheel.build-manifest/1",\n  "rocwheel": "1.0",\n')
    assert json.loads(text)["outputs"] == [
        {
            "path": "dist/a.whl",
            "size": 1,
            "sha256": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
        }
    ]


def test_checksums_have_a_line_for_each_output() -> None:
    assert render_sums(manifest_of({"dist/a.whl": b"a", "dist/f/b.whl": b""})).decode() == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  dist/a.whl\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  dist/f/b.whl\n"
    )
