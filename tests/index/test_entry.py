"""Tests of `rocwheel.index.entry`."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.entry import About, ReadEntry, describe, read_entry, read_requires_txt
from rocwheel.wheels.file_names import parse_file_name
from rocwheel.wheels.metadata import parse_core_metadata
from tests.support.example_counts import examples
from tests.support.variant_wheels import add_variant_wheel, variant_document
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.conftest import AddWheel, MakeSdist


def about(*lines: str, declared: bytes = b"") -> About:
    text = "\n".join(["Metadata-Version: 2.4", "Name: a", "Version: 1", *lines, ""])
    return describe(parse_core_metadata(text.encode())[0], declared)


def test_requirements_are_grouped_by_extra() -> None:
    found = about(
        "Summary: It is a",
        "Provides-Extra: Device_GFX90a",
        "Provides-Extra: empty",
        "Requires-Dist: B_b==1",
        'Requires-Dist: c[x]; (sys_platform == "linux") and extra == "device-gfx90a"',
    )
    assert found == About("It is a", (), {"device-gfx90a": (("c", ""), ("c", "x")), "empty": (), "": (("b-b", ""),)})


def test_extras_whose_requirements_cannot_be_satisfied_are_omitted() -> None:
    found = about(
        "Provides-Extra: device-gfx803",
        "Requires-Dist: core==1+gfx803.is.not.in.this.release.which.has.gfx906; extra == 'device-gfx803'",
    )
    assert found.requires == {}


@pytest.mark.parametrize("extra", ["$(id)", "a b", '"', "\u00e4"])
def test_extras_with_invalid_names_are_omitted(extra: str) -> None:
    assert about(f"Provides-Extra: {extra}").requires == {}


def test_targets_are_read_from_the_declaration_in_a_wheel(tmp_path: Path) -> None:
    declared = b'{"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx906", "gfx90a:xnack+", "<b>"]}'
    wheel = make_wheel(tmp_path, "a", {"a-1.0.dist-info/rocm_targets.json": declared})
    assert read_entry(wheel).entry.about.targets == ("gfx906", "gfx90a:xnack+")


@pytest.mark.parametrize("declared", [b"", b"[", b'{"rocm_targets": 5}', b"[" * 100_000, b"\xff"])
def test_an_unreadable_declaration_is_ignored(declared: bytes) -> None:
    assert about(declared=declared).targets == ()


@given(st.binary())
def test_any_bytes_as_a_declaration_are_read_without_an_error(declared: bytes) -> None:
    assert isinstance(about(declared=declared).targets, tuple)


def test_sections_of_requires_txt_are_read_as_extras_and_markers() -> None:
    text = (
        "core==1\n\n[libraries]\nlibs==1\n\n[profiler:sys_platform == 'linux']\nprof==1\n\n[:python_version<'3']\nold\n"
    )
    assert list(read_requires_txt(text)) == [
        ("", "core==1"), ("libraries", "libs==1"), ("profiler", "prof==1"), ("", "old")
    ]  # fmt: skip


def test_a_long_summary_is_truncated() -> None:
    assert len(about(f"Summary: {'x' * 10_000}").summary) == 512


def test_malformed_requirements_are_omitted(add_wheel: AddWheel) -> None:
    assert read_entry(add_wheel("a", "1.0", "Requires-Dist: ===", "Requires-Dist: b")).entry.about.requires == {
        "": (("b", ""),)
    }


def test_an_sdist_without_a_list_of_requirements_has_no_requirements(make_sdist: MakeSdist) -> None:
    assert read_entry(make_sdist("rocm", "7.0", pkg_info=("Summary: S",))).entry.about == About("S")


INFO = "demo-1.0.dist-info"


def test_the_entry_of_a_wheel_has_its_names_size_hash_and_metadata(add_wheel: AddWheel) -> None:
    path = add_wheel("ROCm-SDK.core", "7.0.0", "Requires-Python: >=3.9", filename="rocm_sdk_core-7.0-py3-none-any.whl")
    reading = read_entry(path)
    found = reading.entry
    assert (found.project, found.version, found.filename) == ("rocm-sdk-core", "7.0", path.name)
    assert found.size == path.stat().st_size
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.requires_python == ">=3.9"
    assert reading.metadata == b"Metadata-Version: 2.4\nName: ROCm-SDK.core\nVersion: 7.0.0\nRequires-Python: >=3.9\n"


@pytest.mark.parametrize(
    ("metadata_version", "dynamic", "is_static"),
    [
        pytest.param("2.4", (), True, id="nothing-dynamic"),
        pytest.param("2.4", ("Description",), True, id="dynamic-description"),
        pytest.param("2.4", ("Requires-Dist",), False, id="dynamic-requirements"),
        pytest.param("2.2", ("provides-extra",), False, id="dynamic-extras"),
        pytest.param("2.1", (), False, id="before-static-fields-existed"),
        pytest.param("two", (), False, id="no-version"),
    ],
)
def test_an_sdist_has_metadata_only_if_its_build_cannot_change_it(
    make_sdist: MakeSdist, metadata_version: str, dynamic: tuple[str, ...], is_static: bool
) -> None:
    path = make_sdist("rocm", "7.0.0", dynamic=dynamic, metadata_version=metadata_version)
    assert (read_entry(path).metadata is not None) == is_static


def fail(path: Path) -> str:
    with pytest.raises((InputError, ProblemsError)) as caught:
        read_entry(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "\N{LATIN SMALL LETTER U WITH DIAERESIS}-1.0-py3-none-any.whl",
        "_-1.0-py3-none-any.whl",
        "\N{LATIN SMALL LETTER U WITH DIAERESIS}-1.0.tar.gz",
        pytest.param("thing.whl", id="one-part"),
        pytest.param("a-1.0-py3-none-any-GFX942.whl", id="no variant label"),
        pytest.param("a-one-py3-none-any.whl", id="wheel-version"),
        pytest.param("thing.tar.gz", id="no-version"),
        pytest.param("a-one.tar.gz", id="sdist-version"),
        pytest.param("a-1.0-py3-none-any (1).whl", id="wheel downloaded twice"),
        pytest.param("a-1.0 (1).tar.gz", id="sdist downloaded twice"),
        pytest.param("a-1.0-py3-none-Kopie von any.whl", id="blanks in a tag"),
    ],
)
def test_an_invalid_distribution_name_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    expected = "expected NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz"
    assert (
        fail(tmp_path / name)
        == f"{tmp_path / name}: isn't a valid wheel or sdist file name; {expected}. Rename or remove the file."
    )


def test_a_file_that_is_not_a_zip_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a-1.0-py3-none-any.whl"
    path.write_bytes(b"not a zip archive")
    assert fail(path) == f"{path}: is a damaged archive (File is not a zip file). Build or download it again."


def test_a_zip_archive_without_dist_info_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", "")
    assert fail(path) == f"{path}: has no .dist-info folder; expected one *.dist-info/METADATA of a 1.0"


def test_metadata_of_another_project_is_reported(add_wheel: AddWheel) -> None:
    path = add_wheel("a", name_inside="b")
    assert fail(path) == f"{path}: its metadata has the project name 'b'; expected 'a', as in the file name"


@pytest.mark.parametrize("version", ["1.1", "", "one"])
def test_metadata_of_another_version_is_reported(add_wheel: AddWheel, version: str) -> None:
    path = add_wheel("a", "1.0", version_inside=version)
    assert fail(path) == f"{path}: its metadata has the version {version!r}; expected '1.0', as in the file name"


def test_a_bad_requires_python_is_reported(add_wheel: AddWheel) -> None:
    path = add_wheel("a", "1.0", "Requires-Python: three")
    expected = "expected a version specifier such as '>=3.10'"
    assert fail(path) == f"{path}: has metadata with Requires-Python 'three'; {expected}"


def test_a_dangling_symlink_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a-1.0-py3-none-any.whl"
    path.symlink_to("gone")
    assert fail(path) == f"{path}: can't be read (No such file or directory). Check its permissions."


@pytest.mark.parametrize("name", ["a-1.0-py3-none-any.whl", "a-1.0.tar.gz"])
def test_a_pipe_does_not_block_the_reading(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    assert fail(path) == f"{path}: can't be read (it isn't a regular file). Check its permissions."


def test_metadata_that_is_too_large_is_reported_and_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a-1.0.dist-info/METADATA", b"\n" * (16 << 20) + b"\n")
    assert fail(path) == (
        f"{path}!a-1.0.dist-info/METADATA: has 16777217 bytes; expected at most 2097152 bytes for this file type. "
        "Build or download the wheel again."
    )


def test_an_sdist_without_pkg_info_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a-1.0/setup.py"))
        archive.addfile(tarfile.TarInfo("a-1.0/a.egg-info/PKG-INFO"))
    assert fail(path) == f"{path}: is not an sdist, because it has no NAME-VERSION/PKG-INFO"


@pytest.mark.parametrize("data", [b"", b"plain", gzip.compress(b"plain")], ids=["empty", "no-gzip", "no-tar"])
def test_a_file_that_is_not_a_tar_archive_is_reported(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a-1.0.tar.gz"
    path.write_bytes(data)
    assert re.search(r"isn't a readable \.tar\.gz archive \(.+\)\. Build or fetch it again\.$", fail(path))


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150), deadline=None)
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_damaged_file_is_read_or_reported_without_a_traceback(
    add_wheel: AddWheel, make_sdist: MakeSdist, kind: str, data: st.DataObject
) -> None:
    path = add_wheel("a") if kind == "wheel" else make_sdist("a")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        result = read_entry(path)
    except (InputError, ProblemsError):  # the one problem, or several
        return
    assert isinstance(result, ReadEntry)


@pytest.mark.parametrize(
    ("name", "reason"), [("../evil.so", "a path that points outside the wheel"), ("/abs", "an absolute path")]
)
def test_a_member_with_an_unsafe_path_is_refused_as_in_audits(add_wheel: AddWheel, name: str, reason: str) -> None:
    path = add_wheel("demo")
    write_wheel(path, INFO, {**_contents(path), name: b"x"})
    expected = f"{path}!{name}: {reason}; expected a path inside the environment. Build the wheel again."
    assert fail(path) == expected


def test_members_with_the_same_fault_are_reported_together(add_wheel: AddWheel) -> None:
    path = add_wheel("demo")
    outside = {f"../{number}.so": b"x" for number in range(12)}
    write_wheel(path, INFO, {**_contents(path), **outside, "a/../b": b"", "/abs": b""})
    names = ", ".join(f"../{number}.so" for number in range(10))
    many = f"{path}: 13 members ({names} and 3 more): a path that points outside the wheel"
    end = "; expected a path inside the environment. Build the wheel again."
    assert fail(path).splitlines() == [
        f"{path}: 2 problems",
        f"  {many}{end}",
        f"  {path}!/abs: an absolute path{end}",
    ]


def test_all_damaged_members_are_reported(add_wheel: AddWheel) -> None:
    path = add_wheel("demo")
    write_wheel(path, INFO, {**_contents(path), "one": b"some bytes", "other": b"other bytes"})
    with zipfile.ZipFile(path) as archive:
        starts = [archive.getinfo(name).header_offset + 30 + len(name) for name in ("one", "other")]
    data = bytearray(path.read_bytes())
    for start in starts:
        data[start + 3] ^= 0xFF
    path.write_bytes(data)
    found = fail(path)
    assert [name for name in ("one", "other", "demo.py") if f"!{name}" in found or f" {name}" in found] == [
        "one",
        "other",
    ]


AGAIN = "Build or download the wheel again."


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (b"", ["doesn't list 3 files (demo.py, demo-1.0.dist-info/METADATA, demo-1.0.dist-info/WHEEL)"]),
        (
            b"demo.py,,\ndemo.py,,\ngone.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\n",
            [
                "lists demo.py 2 times",
                "lists gone.py, which doesn't exist",
                (
                    "has no hash for 3 files (demo.py, demo-1.0.dist-info/METADATA, demo-1.0.dist-info/WHEEL); "
                    "expected sha256, sha384, or sha512"
                ),
            ],
        ),
    ],
    ids=["empty", "absent and repeated"],
)
def test_a_record_that_does_not_match_the_members_is_reported(
    add_wheel: AddWheel, record: bytes, expected: list[str]
) -> None:
    path = add_wheel("demo")
    _with_record(path, record)
    lines = fail(path).splitlines()
    source = f"{path}!{INFO}/RECORD"
    assert [line.strip() for line in lines[-len(expected) :]] == [f"{source}: {what}. {AGAIN}" for what in expected]


def test_a_wheel_without_a_record_is_reported(add_wheel: AddWheel) -> None:
    path = add_wheel("demo")
    _with_record(path, None)
    expected = f"has no {INFO}/RECORD; expected a RECORD that lists its members. Build the wheel again."
    assert fail(path) == f"{path}: {expected}"


def test_signature_files_need_no_row_in_the_record(add_wheel: AddWheel) -> None:
    path = add_wheel("demo")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{INFO}/RECORD.jws", "{}")
    assert read_entry(path).entry.project == "demo"


def _contents(path: Path) -> dict[str, bytes]:
    return {name: data for name, data in members(path).items() if name != f"{INFO}/RECORD"}


def _with_record(path: Path, record: bytes | None) -> None:
    contents = _contents(path) | ({f"{INFO}/RECORD": record} if record is not None else {})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


def test_a_variant_wheel_is_read_with_its_label_and_metadata(tmp_path: Path) -> None:
    document = variant_document("gfx942", ["gfx942"])
    entry = read_entry(add_variant_wheel(tmp_path, "rocm-sdk-device", "gfx942", document)).entry
    assert (entry.project, entry.version, entry.label) == ("rocm-sdk-device", "7.0.0", "gfx942")
    assert json.loads(entry.variant) == document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            None,
            (
                "has the variant label 'gfx942' in its name, but no rocm_sdk_device-7.0.0.dist-info/variant.json; "
                "expected a variant wheel in the format of PEP 825 (a draft)"
            ),
        ),
        (b"{", "rocm_sdk_device-7.0.0.dist-info/variant.json: is malformed (Input data was truncated)"),
        (variant_document("gfx1100", ["gfx1100"]), "describes 'gfx1100'; expected only 'gfx942', as in the file name"),
    ],
    ids=["none", "damaged", "another"],
)
def test_a_wheel_whose_variant_metadata_does_not_match_its_name_is_refused(
    tmp_path: Path, document: dict[str, Any] | bytes | None, message: str
) -> None:
    assert message in fail(add_variant_wheel(tmp_path, "rocm-sdk-device", "gfx942", document))


def test_a_variant_wheel_without_a_label_in_its_name_is_refused(tmp_path: Path) -> None:
    made = add_variant_wheel(tmp_path, "rocm-sdk-device", "gfx942", variant_document("gfx942", ["gfx942"]))
    path = made.rename(tmp_path / "rocm_sdk_device-7.0.0-py3-none-any.whl")
    message = "has rocm_sdk_device-7.0.0.dist-info/variant.json, as variant wheels do, but no label in its file name"
    with pytest.raises(InputError, match=re.escape(message)):
        read_entry(path)


def test_a_path_is_not_a_distribution_file_name() -> None:
    with pytest.raises(InputError, match=r"^m-7/x-7\.tar\.gz: isn't a valid wheel or sdist file name"):
        parse_file_name("m-7/x-7.tar.gz")
