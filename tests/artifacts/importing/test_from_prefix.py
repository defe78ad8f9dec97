"""Install prefixes become artifacts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.importing.from_prefix import import_prefix
from rocwheel.artifacts.importing.table import load_table
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError

if TYPE_CHECKING:
    from pathlib import Path

ROCM = load_table("prefix.toml")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    root = tmp_path / "rocm"
    files = {
        ".info/version": b"6.2.0-66\n",
        "bin/rocminfo": b"program",
        "lib/libamdhip64.so.6.2": b"library",
        "lib/llvm/bin/clang": b"compiler",
        "share/new/thing": b"?",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "bin/rocminfo").chmod(0o555)
    (root / "lib/libamdhip64.so.6").symlink_to("libamdhip64.so.6.2")
    (root / "lib/libamdhip64.so").symlink_to(root / "lib/libamdhip64.so.6")
    (root / "llvm").symlink_to("lib/llvm")
    return root


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def text_of(error: pytest.ExceptionInfo[RocwheelError]) -> str:
    return str(error.value)


def test_prefix_becomes_artifacts_under_therocks_names(prefix: Path, dest: Path) -> None:
    report = import_prefix(prefix, dest, ROCM)

    with open_catalog(dest) as catalog:
        entries = {
            entry.path: (str(entry.artifact), entry.link)
            for entry in catalog.entries
            if (entry.mode and entry.source) or entry.link
        }
    assert entries == {
        ".info/version": ("base_run_generic", None),
        "bin/rocminfo": ("core-runtime_run_generic", None),
        "lib/libamdhip64.so": ("core-hip_lib_generic", "libamdhip64.so.6"),
        "lib/libamdhip64.so.6": ("core-hip_lib_generic", "libamdhip64.so.6.2"),
        "lib/libamdhip64.so.6.2": ("core-hip_lib_generic", None),
        "lib/llvm/bin/clang": ("amd-llvm_run_generic", None),
        "llvm": ("amd-llvm_run_generic", "lib/llvm"),
        "share/new/thing": ("unsorted_run_generic", None),
        "share/therock/dist_info.json": ("base_lib_generic", None),
        "share/therock/therock_manifest.json": ("base_lib_generic", None),
    }
    assert (report.version, report.unmatched) == ("6.2.0", ("share/new/thing",))
    assert prefix.joinpath("bin/rocminfo").stat().st_mode & 0o777 == 0o555
    copy = dest / "core-runtime_run_generic/core-runtime/stage/bin/rocminfo"
    assert oct(copy.stat().st_mode & 0o777) == "0o755", "a copy can be replaced and removed"


def test_strict_refuses_what_no_rule_takes(prefix: Path, dest: Path) -> None:
    with pytest.raises(ProblemsError) as error:
        import_prefix(prefix, dest, ROCM, strict=True)

    assert text_of(error) == (
        f"the import: 1 problem\n  share/new/thing of {prefix}: no rule of the table matches it. "
        "Add a rule, or leave it out with [[skip]]."
    )
    assert not dest.exists()


def test_manifest_of_a_prefix_is_kept(prefix: Path, dest: Path) -> None:
    manifest = {"rocm_version": "6.2.0", "flags": {"KPACK_SPLIT_ARTIFACTS": True}}
    (prefix / "share/therock").mkdir()
    (prefix / "share/therock/therock_manifest.json").write_text(json.dumps(manifest))

    import_prefix(prefix, dest, ROCM)

    place = dest / "base_lib_generic/base/aux-overlay/stage/share/therock/therock_manifest.json"
    assert json.loads(place.read_text()) == manifest
    with open_catalog(dest) as catalog:
        assert catalog.manifest is not None
        assert catalog.manifest.kpack_split


def test_symlink_out_of_the_prefix_is_refused(prefix: Path, dest: Path) -> None:
    (prefix / "bin/clinfo").symlink_to("../../usr/bin/clinfo")

    with pytest.raises(ProblemsError) as error:
        import_prefix(prefix, dest, ROCM)

    assert text_of(error) == (
        f"the import: 1 problem\n  bin/clinfo of {prefix}: is a symlink that leaves the tree through "
        "'../../usr/bin/clinfo'; expected links to what is in the same source"
    )


def test_absolute_symlink_to_elsewhere_is_dropped_and_reported(prefix: Path, dest: Path) -> None:
    (prefix / "bin/clinfo").symlink_to("/usr/bin/clinfo")

    assert import_prefix(prefix, dest, ROCM).dangling == ("bin/clinfo",)


def test_absolute_symlink_to_elsewhere_is_not_taken_for_the_prefixs_own(prefix: Path, dest: Path) -> None:
    (prefix / "etc").mkdir()
    (prefix / "etc/passwd").write_text("of the prefix")
    (prefix / "share/users").symlink_to("/etc/passwd")
    (prefix / "share/etc").symlink_to("/etc")
    (prefix / "share/more").symlink_to("etc/passwd")
    assert import_prefix(prefix, dest, ROCM).dangling == ("share/etc", "share/more", "share/users")


@pytest.mark.parametrize("given", ["rocm-6.2.0", "rocm"], ids=["real name", "other name"])
@pytest.mark.parametrize("written", ["rocm-6.2.0", "rocm"], ids=["links to real name", "links to other name"])
def test_absolute_symlink_into_the_prefix_by_any_of_its_names_is_its_own(
    prefix: Path, tmp_path: Path, dest: Path, given: str, written: str
) -> None:
    prefix.rename(tmp_path / "rocm-6.2.0")
    (tmp_path / "rocm").symlink_to("rocm-6.2.0")
    link = tmp_path / "rocm-6.2.0/lib/libamdhip64.so"
    link.unlink()
    link.symlink_to(tmp_path / written / "lib/libamdhip64.so.6")
    import_prefix(tmp_path / given, dest, ROCM)
    with open_catalog(dest) as catalog:
        links = {entry.path: entry.link for entry in catalog.entries if entry.path == "lib/libamdhip64.so"}
    assert links == {"lib/libamdhip64.so": "libamdhip64.so.6"}


def test_relative_symlink_through_folders_named_like_the_way_to_the_prefix_is_followed(
    prefix: Path, dest: Path
) -> None:
    inner = prefix / "share/inner" / prefix.relative_to("/")
    inner.mkdir(parents=True)
    (inner / "note").write_text("right")
    (prefix / "share/inner/note").write_text("wrong")
    (prefix / "share/link").symlink_to(f"inner{prefix}/note")
    import_prefix(prefix, dest, ROCM)
    (link,) = (path for path in dest.rglob("link") if path.is_symlink())
    assert link.read_text() == "right"


def test_pipe_is_refused(prefix: Path, dest: Path) -> None:
    os.mkfifo(prefix / "bin/pipe")

    with pytest.raises(InputError) as error:
        import_prefix(prefix, dest, ROCM)

    assert text_of(error) == f"{prefix}/bin/pipe: is a device node, socket or pipe; expected files, links and folders"


def test_absent_prefix_is_refused(tmp_path: Path, dest: Path) -> None:
    with pytest.raises(InputError) as error:
        import_prefix(tmp_path / "absent", dest, ROCM)

    assert text_of(error) == f"{tmp_path}/absent: is not a folder; expected an install prefix such as /opt/rocm"


def test_artifacts_inside_the_prefix_are_refused(prefix: Path) -> None:
    with pytest.raises(InputError) as error:
        import_prefix(prefix, prefix / "artifacts", ROCM)

    assert text_of(error) == f"{prefix}/artifacts: is inside the prefix {prefix}. Choose a folder outside."


@pytest.mark.parametrize("name", ["bin", "bin/rocminfo"])
def test_what_may_not_be_read_is_refused(prefix: Path, dest: Path, name: str) -> None:
    (prefix / name).chmod(0)
    if os.access(prefix / name, os.R_OK):
        pytest.skip("this user may read everything")

    with pytest.raises(
        InputError, match=r"can't be read \(Permission denied\)\. Check that it exists and may be read\."
    ):
        import_prefix(prefix, dest, ROCM)

    (prefix / name).chmod(0o755)


def test_a_folder_without_rocm_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("x")
    with pytest.raises(InputError) as error:
        import_prefix(tmp_path / "notes", tmp_path / "dest", load_table("prefix.toml"))
    found = "holds no file that tells it is ROCm, among 1 file. Check the path, or the --table option."
    assert str(error.value) == f"{tmp_path}/notes: {found}"
    assert not (tmp_path / "dest").exists()
