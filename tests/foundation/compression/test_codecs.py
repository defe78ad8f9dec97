"""The identity of codecs: the one that the cache, the workers of a cluster and manifests have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.cluster.versions import worker_facts
from rocwheel.distributions.packing import codec_identity as identities
from rocwheel.foundation.compression import codecs
from rocwheel.foundation.compression.codecs import codec_samples, codec_tools
from rocwheel.packages.building.make_manifest import used_tools

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    known = (codecs.codec_sample, codecs.codec_tools, identities.codec_identity, identities.xz_identity)
    for function in known:
        function.cache_clear()
    yield
    for function in known:
        function.cache_clear()


def test_the_tools_are_the_libraries_and_the_machine() -> None:
    assert sorted(codec_tools()) == ["deflate", "libzlib-ng", "libzstd", "machine", "zlib-ng"]


def test_workers_and_manifests_have_the_same_codecs() -> None:
    assert codec_tools().items() <= used_tools().items()
    assert codec_tools().items() <= worker_facts().versions.items()
    assert worker_facts().samples == codec_samples()


@pytest.mark.parametrize(
    ("codec", "is_quick"), [("libdeflate", True), ("zlib-ng", True), ("zstd", True), ("xz", False)]
)
def test_a_codec_that_makes_other_bytes_has_other_entries_of_the_cache(
    codec: str, is_quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identities.codec_identity(), identities.xz_identity()
    pack = codecs._pack
    monkeypatch.setattr(codecs, "_pack", lambda name, *rest: pack(name, *rest) + b"." * (name == codec))
    for function in (codecs.codec_sample, identities.codec_identity, identities.xz_identity):
        function.cache_clear()
    after = identities.codec_identity(), identities.xz_identity()
    assert (before[0] != after[0], before[1] != after[1]) == (is_quick, True)


@pytest.mark.parametrize(("codec", "level"), [("zstd", 1), ("zstd", 3), ("libdeflate", 6), ("xz", 6)])
def test_a_sample_is_packed_at_the_levels_in_use(codec: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = codec_samples()[codec]
    pack = codecs._pack
    monkeypatch.setattr(codecs, "_pack", lambda name, at, data: pack(name, at, data) + b"." * (at == level))
    codecs.codec_sample.cache_clear()
    assert codec_samples()[codec] != before
