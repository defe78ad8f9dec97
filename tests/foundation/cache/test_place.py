"""Where the cache is, and how large it may get."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel.foundation.cache.place import CachePlace, cache_limit, packed_cache, parse_size
from rocwheel.foundation.errors import InputError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("123", 123),
        ("20GB", 20_000_000_000),
        ("1.5 TiB", 1649267441664),
        ("2k", 2000),
        ("3mib", 3 << 20),
        (".5GB", 500_000_000),
    ],
)
def test_sizes_have_decimal_and_binary_units(text: str, size: int) -> None:
    assert parse_size(text, source="--limit") == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1PB", "1e9", "5 GB left", "\u0665MB", ".", "5.", "5\u212ab"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--limit: is '.*'; expected a size, such as 20GB or 500MiB"):
        parse_size(text, source="--limit")


def test_a_size_that_no_disk_has_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"--limit: is '9+'\.\.\. \(400 characters\); expected a size that a disk can have"
    ):
        parse_size("9" * 400, source="--limit")


def test_packed_members_have_a_folder_and_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", "/c")
    assert packed_cache({}) == CachePlace(Path("/c/packed"), 10_000_000_000)
    assert packed_cache({"ROCWHEEL_CACHE_LIMIT": "1GB"}).limit == 1_000_000_000


def test_a_limit_that_is_no_size_names_its_variable() -> None:
    with pytest.raises(InputError, match="ROCWHEEL_CACHE_LIMIT: is 'much'"):
        cache_limit({"ROCWHEEL_CACHE_LIMIT": "much"})
