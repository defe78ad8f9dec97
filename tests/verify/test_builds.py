"""Outputs of builds compared with their manifests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.core.progress import SILENT
from rocwheel.verify import builds
from rocwheel.verify.builds import verify_build
from rocwheel.verify.files import Fault, Verified
from rocwheel.wheels.build_manifest import write_manifest
from tests.support.wheels import make_wheel
from tests.wheels.build_manifest.manifests import manifest_of

if TYPE_CHECKING:
    from pathlib import Path

OUTPUTS = {"dist/a.whl": b"aaaa", "dist/f/b.whl": b"bb", "dist/rocm-1.tar.gz": b""}
A4 = "61be55a8e2f6b4e172338bddf184d6dbee29c98853e0a0485ecee7f27b9af0b4"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a build, whose wheels are no archives and aren't opened."""
    monkeypatch.setattr(builds, "verify_wheel", lambda path, *_: Verified(str(path), "wheel", 0, 0))
    for path, data in OUTPUTS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    write_manifest(tmp_path, manifest_of(OUTPUTS))
    return tmp_path


def faults(build: Path) -> list[Fault]:
    with ThreadPoolExecutor(2) as executor:
        return list(verify_build(build / "rocwheel-build.json", executor, SILENT).faults)


def test_an_unchanged_build_has_no_faults(build: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        found = verify_build(build / "rocwheel-build.json", executor, SILENT)
    assert (found.kind, found.files, found.size, found.faults) == ("build", 3, 6, ())


def test_the_wheels_of_a_build_are_verified_too(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "a", {"a/x": b"1"})
    with ZipFile(wheel, "a") as archive:  # a manifest can vouch for a file that was changed before it was hashed
        archive.writestr("a/planted.py", b"import os")
    write_manifest(tmp_path, manifest_of({f"dist/{wheel.name}": wheel.read_bytes()}))
    assert faults(tmp_path) == [
        Fault("extra", f"{wheel}!a/planted.py", "isn't in RECORD", "only members that RECORD lists")
    ]


def test_changed_missing_and_extra_files_are_reported_together(build: Path) -> None:
    (build / "dist/a.whl").write_bytes(b"aaab")
    (build / "dist/f/b.whl").unlink()
    (build / "dist/f/c.whl").touch()
    assert faults(build) == [
        Fault(
            "changed",
            f"{build}/dist/a.whl",
            "has the SHA-256 85e90f7f0e71079806469831895acd620133bbe0937cc5403562968bbc7d8d1e",
            A4,
        ),
        Fault("missing", f"{build}/dist/f/b.whl", "is missing", "a file"),
        Fault("extra", f"{build}/dist/f/c.whl", "isn't in the manifest", "only files from this build"),
    ]


def test_a_different_size_is_reported_without_hashing(build: Path) -> None:
    (build / "dist/a.whl").write_bytes(b"a")
    assert faults(build) == [Fault("changed", f"{build}/dist/a.whl", "has 1 byte", "4 bytes")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["dist/a.whl", "dist/f/b.whl"]), st.integers(0, 1), st.integers(1, 255))
def test_any_flipped_byte_is_found(build: Path, name: str, place: int, mask: int) -> None:
    data = bytearray(OUTPUTS[name])
    data[place] ^= mask
    (build / name).write_bytes(data)
    [fault] = faults(build)
    (build / name).write_bytes(OUTPUTS[name])
    assert (fault.kind, fault.place) == ("changed", str(build / name))
    assert faults(build) == []


def test_symlinks_are_reported_and_not_followed(build: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "b.whl").write_bytes(b"bb")
    (build / "dist/a.whl").rename(elsewhere / "a.whl")
    (build / "dist/a.whl").symlink_to(elsewhere / "a.whl")
    (build / "dist/f/b.whl").unlink()
    (build / "dist/f").rmdir()
    (build / "dist/f").symlink_to(elsewhere)
    assert [(fault.kind, fault.place, fault.found) for fault in faults(build)] == [
        ("link", f"{build}/dist/a.whl", "is a symlink"),
        ("link", f"{build}/dist/f/b.whl", f"is reached through a symlink to {elsewhere}"),
        ("extra", f"{build}/dist/f", "isn't in the manifest"),
    ]


def test_a_build_folder_may_be_given_through_a_link(build: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("links") / "latest"
    link.symlink_to(build)
    assert faults(link) == []


def test_index_files_and_unfinished_files_are_not_extra(build: Path) -> None:
    for name in ("index.html", "index.json", "a.whl.metadata", ".a.whl.abcdefgh.rocwheel"):
        (build / "dist" / name).touch()
    assert faults(build) == []


def test_different_checksums_beside_the_manifest_are_reported(build: Path) -> None:
    (build / "SHA256SUMS").write_text("")
    assert faults(build) == [
        Fault("changed", f"{build}/SHA256SUMS", "contains different checksums", "the checksums in the manifest"),
    ]
    (build / "SHA256SUMS").unlink()
    assert faults(build) == []


def test_a_folder_in_place_of_an_output_is_reported_as_changed(build: Path) -> None:
    (build / "dist/a.whl").unlink()
    (build / "dist/a.whl").mkdir()
    assert faults(build) == [Fault("changed", f"{build}/dist/a.whl", "isn't a file", "a file")]


def test_missing_checksums_are_not_a_fault_but_a_dangling_link_is(build: Path) -> None:
    (build / "SHA256SUMS").unlink()
    assert faults(build) == []
    (build / "SHA256SUMS").symlink_to("nowhere")
    assert faults(build) == [Fault("link", f"{build}/SHA256SUMS", "is a symlink", "a file")]
