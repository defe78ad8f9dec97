"""Tests of `rocwheel.artifacts.from_deb`."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.from_deb import import_debs
from rocwheel.artifacts.import_table import ImportTable, load_import_table
from rocwheel.artifacts.importer import IncompletePackage, MachineNeed, system_requirements
from rocwheel.artifacts.sdk_files import SourcePackage
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from tests.artifacts.conftest import deb_tar

if TYPE_CHECKING:
    from tests.artifacts.conftest import MakeDeb


MULTIARCH = "./usr/lib/x86_64-linux-gnu"
DEBIAN = load_import_table("debian.toml")


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def text_of(error: pytest.ExceptionInfo[RocwheelError]) -> str:
    return str(error.value)


def test_packages_become_artifacts_in_the_layout_of_therock(make_deb: MakeDeb, dest: Path) -> None:
    runtime = make_deb(
        "libamdhip64-5",
        {
            f"{MULTIARCH}/libamdhip64.so.5.2": b"library",
            f"{MULTIARCH}/libamdhip64.so.5": "libamdhip64.so.5.2",
            "./usr/share/doc/libamdhip64-5/copyright": b"MIT",
            "./usr/share/lintian/overrides/libamdhip64-5": b"x",
        },
    )
    devel = make_deb("libamdhip64-dev", {f"{MULTIARCH}/libamdhip64.so": "libamdhip64.so.5"})

    report = import_debs([runtime, devel], dest, DEBIAN)

    stage = "core-hip/stage"
    assert files_below(dest) == [
        "base_lib_generic/artifact_manifest.txt",
        "base_lib_generic/base/aux-overlay/stage/share/therock/dist_info.json",
        "base_lib_generic/base/aux-overlay/stage/share/therock/therock_manifest.json",
        "core-hip_doc_generic/artifact_manifest.txt",
        f"core-hip_doc_generic/{stage}/share/doc/libamdhip64-5/copyright",
        "core-hip_lib_generic/artifact_manifest.txt",
        f"core-hip_lib_generic/{stage}/lib/libamdhip64.so",
        f"core-hip_lib_generic/{stage}/lib/libamdhip64.so.5",
        f"core-hip_lib_generic/{stage}/lib/libamdhip64.so.5.2",
    ]
    assert (dest / "core-hip_lib_generic/artifact_manifest.txt").read_text() == "core-hip/stage\n"
    assert (dest / "core-hip_lib_generic" / stage / "lib/libamdhip64.so.5").readlink() == Path("libamdhip64.so.5.2")
    assert report.version == "5.2.3"
    assert report.skipped == {
        "not part of an SDK: package checks, shell completion, translations, manual pages": 1,
    }


def test_the_catalog_can_read_imported_artifacts(make_deb: MakeDeb, dest: Path) -> None:
    import_debs([make_deb("libamdhip64-5", {f"{MULTIARCH}/libamdhip64.so.5": b"library"})], dest, DEBIAN)

    with open_catalog(dest) as catalog:
        paths = [entry.path for entry in catalog.entries if entry.source]
        assert catalog.manifest is not None
        assert (catalog.manifest.rocm_version, catalog.manifest.flags) == ("5.2.3", {})
    assert paths == ["lib/libamdhip64.so.5", "share/therock/dist_info.json", "share/therock/therock_manifest.json"]


def test_the_manifest_lists_the_debian_packages_of_each_artifact(make_deb: MakeDeb, dest: Path) -> None:
    maintainer = "A <a@amd.com>"
    debs = [
        make_deb("librocrand1", {"usr/lib/x86_64-linux-gnu/librocrand.so.1": b"x"}, fields="Origin: AMD\n"),
        make_deb("librocrand-dev", {"usr/include/rocrand.h": b"x"}, fields=f"Maintainer: {maintainer}\n"),
    ]
    import_debs(debs, dest, DEBIAN)
    with open_catalog(dest) as catalog:
        assert catalog.manifest is not None
        assert catalog.manifest.debian_packages == (
            SourcePackage("librocrand-dev", "5.2.3-8", "amd64", ("rand_dev_generic",), maintainer=maintainer),
            SourcePackage("librocrand1", "5.2.3-8", "amd64", ("rand_lib_generic",), origin="AMD"),
        )


def test_programs_stay_executable_and_hard_links_become_files(make_deb: MakeDeb, dest: Path) -> None:
    second = tarfile.TarInfo("./usr/bin/b")
    second.type, second.linkname, second.mode = tarfile.LNKTYPE, "./usr/bin/a", 0o755
    import_debs([make_deb("rocminfo", {"./usr/bin/a": b"program", "./usr/bin/b": second})], dest, DEBIAN)

    folder = dest / "core-runtime_run_generic/core-runtime/stage/bin"
    assert [(path.name, path.read_bytes(), oct(path.stat().st_mode)) for path in sorted(folder.iterdir())] == [
        ("a", b"program", "0o100755"),
        ("b", b"program", "0o100755"),
    ]


def test_links_from_the_table_are_added_if_their_target_exists(make_deb: MakeDeb, dest: Path) -> None:
    import_debs([make_deb("clang-15", {"./usr/lib/llvm-15/bin/clang": b"program"})], dest, DEBIAN)

    stage = dest / "base_run_generic/base/stage"
    assert files_below(stage) == ["bin/amdclang", "llvm"]
    assert (stage / "bin/amdclang").readlink() == Path("../lib/llvm/bin/clang")


def test_device_libraries_in_the_clang_resource_folder_get_the_usual_link(make_deb: MakeDeb, dest: Path) -> None:
    library = "./usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode/hip.bc"
    import_debs([make_deb("rocm-device-libs-21", {library: b"bitcode"})], dest, DEBIAN)

    stage = dest / "base_run_generic/base/stage"
    assert (stage / "amdgcn").readlink() == Path("lib/llvm/amdgcn")
    assert (stage / "lib/llvm/amdgcn").readlink() == Path("lib/clang/21/amdgcn")
    assert (dest / "amd-llvm_run_generic/amd-llvm/stage/lib/llvm/lib/clang/21/amdgcn/bitcode/hip.bc").is_file()


def test_clang_gets_a_config_file_with_the_hip_path(make_deb: MakeDeb, dest: Path) -> None:
    import_debs([make_deb("clang-21", {"./usr/lib/llvm-21/bin/clang": b"program"})], dest, DEBIAN)

    told = dest / "amd-llvm_run_generic/amd-llvm/stage/lib/llvm/bin/clang++.cfg"
    assert told.read_text() == "--hip-path=<CFGDIR>/../../..\n"


def test_files_from_the_table_are_added_only_next_to_the_files_they_are_for(make_deb: MakeDeb, dest: Path) -> None:
    import_debs([make_deb("lld-21", {"./usr/lib/llvm-21/bin/lld": b"program"})], dest, DEBIAN)

    assert not list(dest.rglob("*.cfg"))


def test_an_identical_file_in_two_packages_is_imported_once(make_deb: MakeDeb, dest: Path) -> None:
    tree = {"./usr/include/hip/a.h": b"same"}
    report = import_debs([make_deb("libamdhip64-dev", tree), make_deb("hipcc", tree)], dest, DEBIAN)

    assert [(item.name, item.files) for item in report.artifacts] == [("core-hip_dev_generic", 1)]


def test_different_files_for_the_same_path_are_refused_with_both_packages(make_deb: MakeDeb, dest: Path) -> None:
    one = make_deb("hipcc", {"./usr/include/hip/a.h": b"one"})
    other = make_deb("libamdhip64-dev", {"./usr/include/hip/a.h": b"other"})

    with pytest.raises(ProblemsError) as error:
        import_debs([other, one], dest, DEBIAN)

    assert text_of(error) == (
        "the import: 1 problem\n"
        f"  usr/include/hip/a.h in {other}: goes to 'include/hip/a.h', but usr/include/hip/a.h in "
        f"{one} has different content for that path. Exclude one of the files."
    )
    assert list(dest.parent.iterdir()) == [dest.parent / "debs"], "nothing may be left behind"


def test_a_folder_instead_of_a_package_is_refused_with_a_suggestion(
    make_deb: MakeDeb, dest: Path, tmp_path: Path
) -> None:
    packages = make_deb("hipcc", {"./usr/bin/hipcc": b"x"}).parent
    (tmp_path / "rocm").mkdir()
    with pytest.raises(ProblemsError) as error:
        import_debs([packages, tmp_path / "rocm"], dest, DEBIAN)
    prefix = "Specify .deb files. For an install prefix, use 'rocwheel artifacts import'."
    assert text_of(error).splitlines()[1:] == [
        f"  {packages}: is a folder; expected a Debian package. Specify the packages in the folder: {packages}/*.deb.",
        f"  {tmp_path / 'rocm'}: is a folder; expected a Debian package. {prefix}",
    ]


def test_a_file_below_another_file_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    one = make_deb("hipcc", {"./usr/bin/a": b"file"})
    other = make_deb("rocminfo", {"./usr/bin/a/b": b"below"})

    with pytest.raises(ProblemsError) as error:
        import_debs([one, other], dest, DEBIAN)

    assert text_of(error) == (
        "the import: 1 problem\n"
        f"  usr/bin/a/b in {other}: goes below 'bin/a', which is not a folder: it is the file usr/bin/a in {one}"
    )


def test_a_link_at_the_path_of_a_folder_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    one = make_deb("hipcc", {"./usr/include/hip/a.h": b"a", "./usr/include/other/b.h": b"b"})
    other = make_deb("libamdhip64-dev", {"./usr/include/hip": "other"})

    with pytest.raises(ProblemsError) as error:
        import_debs([one, other], dest, DEBIAN)

    assert text_of(error) == (
        f"the import: 1 problem\n  usr/include/hip in {other}: goes to 'include/hip', which is a folder"
    )


def test_files_and_links_that_match_no_rule_are_refused_together(make_deb: MakeDeb, dest: Path) -> None:
    path = make_deb("hipcc", {"./etc/a": b"a", "./usr/bin/b": b"b", "./usr/bin/c": "../../../etc/passwd"})

    with pytest.raises(ProblemsError) as error:
        import_debs([path], dest, msgspec.structs.replace(DEBIAN, catch_all=""))

    assert text_of(error) == (
        "the import: 2 problems\n"
        f"  etc/a in {path}: does not match any rule in the table. Add a rule for the file, or exclude the file with "
        "[[skip]].\n"
        f"  usr/bin/c in {path}: is a symlink that points out of the tree through '../../../etc/passwd'; "
        "expected a link to a path in the same source"
    )


def test_files_that_match_no_rule_are_kept_and_listed(make_deb: MakeDeb, dest: Path) -> None:
    report = import_debs([make_deb("hipcc", {"./etc/a": b"a", "./usr/bin/b": b"b"})], dest, DEBIAN)

    assert report.unmatched == ("etc/a",)
    assert (dest / "unsorted_run_generic/unsorted/stage/etc/a").read_bytes() == b"a"


@pytest.mark.parametrize(
    "fields",
    [
        "Maintainer: Debian ROCm Team <a@example.org>\n",
        "Source: rocm-hipamd\n",
        "Depends: libc6, libamdhip64-6 (>= 5)\n",
    ],
    ids=["maintainer", "source", "dependency"],
)
def test_packages_missing_from_the_table_are_placed_by_their_content(
    make_deb: MakeDeb, dest: Path, fields: str
) -> None:
    known = make_deb("libamdhip64-6", {f"{MULTIARCH}/libamdhip64.so.6": b"x"}, fields="Source: rocm-hipamd\n")
    split = make_deb("libnew6", {f"{MULTIARCH}/libroctx64.so.4": b"y", f"{MULTIARCH}/libnew.so.6": b"z"}, fields=fields)

    report = import_debs([known, split], dest, DEBIAN)

    assert report.unknown == ("libnew6",)
    assert report.unmatched == ("usr/lib/x86_64-linux-gnu/libnew.so.6",)
    assert (dest / "rocprofiler-sdk_lib_generic/rocprofiler-sdk/stage/lib/libroctx64.so.4").read_bytes() == b"y"
    assert (dest / "base_lib_generic/base/stage/lib/libnew.so.6").read_bytes() == b"z"


def compile_library(folder: Path, soname: str, *needs: Path) -> bytes:
    path = folder / soname
    folder.mkdir(exist_ok=True)
    options = [
        "-shared",
        "-nostdlib",
        f"-Wl,-soname,{soname}",
        "-Wl,--no-as-needed",
        "-x",
        "c",
        "/dev/null",
        "-x",
        "none",
    ]
    subprocess.run(["gcc", *options, "-o", path, *needs], check=True)
    return path.read_bytes()


@pytest.fixture
def closure(make_deb: MakeDeb, tmp_path: Path) -> list[Path]:
    """Return a HIP runtime, the libraries that it needs, directly or not, and a package that it has no use for."""
    built = tmp_path / "built"
    blob = compile_library(built, "libblob.so.2")
    sqlite = compile_library(built, "libsqlite3.so.0", built / "libblob.so.2")
    runtime = compile_library(built, "libamdhip64.so.6", built / "libsqlite3.so.0")
    return [
        make_deb(
            "libamdhip64-6",
            {f"{MULTIARCH}/libamdhip64.so.6": runtime},
            fields="Depends: libc6 (>= 2.38), libsqlite3-0 (>= 3), perl:any | perl-base, virtual-sql\n",
        ),
        make_deb(
            "libsqlite3-0",
            {f"{MULTIARCH}/libsqlite3.so.0": sqlite, "./etc/sqlite": b"x"},
            fields="Provides: virtual-sql\nDepends: libblob2\n",
            shlibs="libsqlite3 0 libsqlite3-0",
            version="3.53.4-2",
        ),
        make_deb("libblob2", {f"{MULTIARCH}/libblob.so.2": blob}, shlibs="libblob 2 libblob2"),
        make_deb("bash", {"./usr/bin/bash": b"x"}),
    ]


def test_libraries_are_found_in_packages_missing_from_the_table(closure: list[Path], dest: Path) -> None:
    report = import_debs(closure, dest, DEBIAN, bundle_system=True)

    folder = dest / "sysdeps_lib_generic/sysdeps/stage/lib/rocm_sysdeps/lib"
    assert sorted(path.name for path in folder.iterdir()) == ["libblob.so.2", "libsqlite3.so.0"]
    assert (report.libraries, report.unmatched, report.unknown) == ((), (), ())
    assert report.unneeded == ("bash",)
    assert report.packages == (MachineNeed("perl | perl-base", ("libamdhip64-6",)),)


def test_packages_missing_from_the_table_are_left_out_by_default(closure: list[Path], dest: Path) -> None:
    report = import_debs(closure, dest, DEBIAN)

    assert (report.left_out, report.unneeded) == (("libsqlite3-0",), ("bash", "libblob2"))
    assert report.libraries == (MachineNeed("libsqlite3.so.0", ("lib/libamdhip64.so.6",)),)
    assert [need.name for need in report.packages] == ["libsqlite3-0", "perl | perl-base", "virtual-sql"]


def test_required_packages_that_were_not_given_are_listed(closure: list[Path], dest: Path) -> None:
    report = import_debs(closure[:1], dest, DEBIAN, bundle_system=True)

    assert [need.name for need in report.packages] == ["libsqlite3-0", "perl | perl-base", "virtual-sql"]


def test_cmake_packages_with_missing_files_are_listed(make_deb: MakeDeb, dest: Path) -> None:
    text = "".join(
        f'list(APPEND _cmake_import_check_files_for_roc::x "${{_IMPORT_PREFIX}}/lib/x86_64-linux-gnu/{name}" )\n'
        for name in ("libhipsolver.so.1.0", "libhipsolver_fortran.so.1.0")
    )
    targets = f"{MULTIARCH}/cmake/hipsolver/hipsolver-targets-release.cmake"
    devel = make_deb("libhipsolver-dev", {targets: text.encode(), f"{MULTIARCH}/libhipsolver.so.1.0": b"x"})
    absent = make_deb("libhipsolver-fortran1", {f"{MULTIARCH}/libhipsolver_fortran.so.1.0": b"x"})

    assert import_debs([devel], dest, DEBIAN).incomplete == (
        IncompletePackage("lib/cmake/hipsolver/hipsolver-targets-release.cmake", ("lib/libhipsolver_fortran.so.1.0",)),
    )
    assert import_debs([devel, absent], dest.with_name("complete"), DEBIAN).incomplete == ()


def test_a_package_for_another_machine_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    debs = [make_deb(name, {}) for name in ("hipcc", "rocminfo")]
    everywhere = make_deb("rocm-cmake", {}, architecture="all")
    foreign = make_deb("libelf1", {}, architecture="arm64")

    with pytest.raises(InputError) as error:
        import_debs([*debs, everywhere, foreign], dest, DEBIAN)

    assert text_of(error) == (f"{foreign}: is a package for arm64; expected amd64, like most of the packages")
    assert not dest.exists()


def elf_for(machine: int, *, bits: int = 64) -> bytes:
    """Return the header of an ELF file for a machine, little-endian."""
    return b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + b"\1\0" + machine.to_bytes(2, "little") + bytes(44)


def test_a_package_with_code_for_another_machine_than_declared_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    names = [f"./usr/share/x/{name}.o" for name in "abcd"]
    right = make_deb("rocminfo", {"./usr/share/x/e.o": elf_for(62)})
    wrong = make_deb("hipcc", {**dict.fromkeys(names, elf_for(183)), "./usr/share/x/f.o": elf_for(62)})

    with pytest.raises(ProblemsError) as error:
        import_debs([right, wrong], dest, DEBIAN)

    listed = "usr/share/x/a.o, usr/share/x/b.o, usr/share/x/c.o and 1 more"
    assert text_of(error) == (
        f"the import: 1 problem\n  {wrong}: is a package for amd64, but contains code for arm64: {listed}. "
        "Download the package again, or exclude these files with [[skip]]."
    )
    assert not dest.exists()


@pytest.mark.parametrize(
    ("architecture", "content"),
    [
        pytest.param("amd64", elf_for(3, bits=32), id="32-bit code that amd64 runs"),
        pytest.param("amd64", elf_for(224), id="code for GPUs"),
        pytest.param("amd64", elf_for(247), id="code for the kernel's virtual machine"),
        pytest.param("all", elf_for(183), id="a package for every machine"),
        pytest.param("amd64", b"\x7fELF", id="no whole header"),
        pytest.param("amd64", b"", id="nothing"),
    ],
)
def test_files_without_code_for_another_processor_are_imported(
    make_deb: MakeDeb, dest: Path, architecture: str, content: bytes
) -> None:
    import_debs([make_deb("hipcc", {"./usr/share/x/a.o": content}, architecture=architecture)], dest, DEBIAN)
    assert [path.read_bytes() for path in dest.rglob("a.o")] == [content]


def test_packages_from_two_releases_are_refused(make_deb: MakeDeb, dest: Path) -> None:
    source = "Source: rocm-hipamd\n"
    old = make_deb("libamdhip64-6", {}, version="6.4.3-5+b1", fields=source)
    same = make_deb("libhiprtc6", {}, version="6.4.3-5", fields=source)
    new = make_deb("libhiprtc7", {}, version="7.2.4-1", fields=source)

    with pytest.raises(InputError) as error:
        import_debs([old, same, new], dest, DEBIAN)

    assert text_of(error) == (
        f"{new}: was built from rocm-hipamd 7.2.4-1; expected 6.4.3-5, the version of {old}. Use packages from one "
        "release."
    )


def test_a_package_that_needs_another_version_of_a_given_package_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    runtime = make_deb("libamdhip64-6", {}, version="6.4.3-5")
    devel = make_deb("hipcc", {}, version="7.0.2-3", fields="Depends: libamdhip64-6 (>= 7.0) | libamdhip64-7\n")

    with pytest.raises(InputError) as error:
        import_debs([runtime, devel], dest, DEBIAN)

    assert text_of(error) == (
        f"{devel}: needs libamdhip64-6 (>= 7.0) | libamdhip64-7, but {runtime} is 6.4.3-5. Use packages from one "
        "release."
    )


def test_a_package_that_needs_a_library_from_another_release_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    old = make_deb("libamdhip64-5", {}, fields="Source: rocm-hipamd\n")
    new = make_deb("librocblas4", {}, version="6.4.4-4", fields="Depends: libc6, libamdhip64-6 (>= 6.4.1)\n")

    with pytest.raises(InputError) as error:
        import_debs([old, new], dest, DEBIAN)

    assert text_of(error) == (
        f"{new}: needs libamdhip64-6 (>= 6.4.1), but {old} is libamdhip64-5. Use packages from one release."
    )
    assert not dest.exists()


def test_two_llvm_releases_are_accepted_if_their_dependencies_are_met(make_deb: MakeDeb, dest: Path) -> None:
    tree = {"./usr/lib/llvm-21/bin/clang": b"program"}
    clang = make_deb("clang-21", tree, fields="Depends: libllvm21\n")
    libraries = [make_deb(f"libllvm{version}", {}) for version in (19, 21)]

    assert import_debs([clang, *libraries], dest, DEBIAN).packages == ()


def test_a_package_given_twice_is_imported_once(make_deb: MakeDeb, dest: Path) -> None:
    path = make_deb("hipcc", {"./usr/bin/hipcc": b"x"})

    assert [(one.name, one.files) for one in import_debs([path, path], dest, DEBIAN).artifacts] == [
        ("core-hip_run_generic", 1)
    ]


def test_bad_packages_are_reported_together(make_deb: MakeDeb, dest: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.deb"
    bad.write_bytes(b"rubbish")
    one, two = make_deb("hipcc", {}, version="1-1"), make_deb("hipcc", {}, version="2-1")

    with pytest.raises(ProblemsError) as error:
        import_debs([two, one, bad], dest, DEBIAN)

    assert text_of(error) == (
        "the packages: 2 problems\n"
        f"  {bad}: is not an ar archive; expected a Debian package (.deb)\n"
        f"  {two}: is hipcc in version 2-1, but {one} is hipcc in version 1-1. "
        "Specify only one of them."
    )


def test_a_package_for_two_machines_is_refused_with_both_files(make_deb: MakeDeb, dest: Path) -> None:
    one, two = make_deb("hipcc", {}, version="1-1"), make_deb("hipcc", {}, version="1-1", architecture="arm64")
    with pytest.raises(InputError) as error:
        import_debs([one, two], dest, DEBIAN)
    found = f"{one} is hipcc in version 1-1 for amd64"
    assert text_of(error) == f"{two}: is hipcc in version 1-1 for arm64, but {found}. Specify only one of them."


def test_packages_without_any_file_for_an_artifact_are_refused(make_deb: MakeDeb, dest: Path) -> None:
    deb = make_deb("hipcc", {})
    with pytest.raises(ProblemsError) as error:
        import_debs([deb], dest, DEBIAN)
    found = "contains no ROCm files: no file belongs to an artifact. Check the path, or the --table option."
    assert text_of(error) == f"the import: 1 problem\n  {deb}: {found}"
    assert not dest.exists()


def test_a_nonempty_output_folder_is_refused(make_deb: MakeDeb, dest: Path) -> None:
    dest.mkdir()
    (dest / "something").touch()

    with pytest.raises(InputError) as error:
        import_debs([make_deb("hipcc", {"./usr/bin/hipcc": b"x"})], dest, DEBIAN)

    assert (
        text_of(error)
        == f"{dest}: already exists; expected a new or empty folder. Choose another folder, or remove this folder."
    )
    assert [path.name for path in dest.iterdir()] == ["something"]


def test_an_input_package_as_output_folder_is_refused_without_advice_to_remove_it(make_deb: MakeDeb) -> None:
    deb = make_deb("hipcc", {"./usr/bin/hipcc": b"x"})
    with pytest.raises(InputError) as error:
        import_debs([deb], deb, DEBIAN)
    assert text_of(error) == f"{deb}: is an input file; expected a new or empty folder. Choose another folder."


def test_an_empty_output_folder_is_accepted(make_deb: MakeDeb, dest: Path) -> None:
    dest.mkdir()
    import_debs([make_deb("hipcc", {"./usr/bin/hipcc": b"x"})], dest, DEBIAN)

    assert (dest / "core-hip_run_generic/core-hip/stage/bin/hipcc").read_bytes() == b"x"


def test_an_output_folder_that_cannot_be_created_is_a_work_error(make_deb: MakeDeb, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    dest = tmp_path / "file/folder/artifacts"

    with pytest.raises(WorkError) as error:
        import_debs([make_deb("hipcc", {"./usr/bin/hipcc": b"x"})], dest, DEBIAN)

    assert text_of(error) == (
        f"{dest}: can't be written (Not a directory). Choose another output, or remove the file at the path of its "
        "parent folder."
    )


def test_a_truncated_package_leaves_no_output_behind(make_deb: MakeDeb, dest: Path) -> None:
    data = lzma.compress(deb_tar({"./usr/bin/a": bytes(range(256)) * 4000}))
    path = make_deb("hipcc", {}, members={"data.tar": None, "data.tar.xz": data[:-200]})

    with pytest.raises(InputError, match=r"data\.tar\.xz is corrupt or truncated"):
        import_debs([path], dest, DEBIAN)

    assert list(dest.parent.iterdir()) == [dest.parent / "debs"]


def test_system_libraries_are_left_out_by_default(make_deb: MakeDeb, dest: Path, tmp_path: Path) -> None:
    debs = [
        make_deb("rocminfo", {"./usr/bin/rocminfo": b"x"}),
        make_deb("libelf1", {f"{MULTIARCH}/libelf-0.188.so": b"y", f"{MULTIARCH}/libelf.so.1": "libelf-0.188.so"}),
    ]

    without = import_debs(debs, dest, DEBIAN)
    bundled = import_debs(debs, tmp_path / "bundled", DEBIAN, bundle_system=True)

    assert without.left_out == ("libelf1",)
    assert [item.name for item in without.artifacts] == ["core-runtime_run_generic"]
    assert bundled.left_out == ()
    folder = tmp_path / "bundled/sysdeps_lib_generic/sysdeps/stage/lib/rocm_sysdeps/lib"
    assert sorted(path.name for path in folder.iterdir()) == ["libelf-0.188.so", "libelf.so.1"]


def test_libraries_missing_from_the_packages_are_required_from_the_system() -> None:
    needed = {"lib/liba.so.1": ("libc.so.6", "libelf.so.1", "libb.so.2"), "bin/a": ("libelf.so.1", "liba.so.1")}

    assert system_requirements(needed, ["liba.so.1", "libb.so.2"], ["libc.so.6"]) == (
        MachineNeed("libelf.so.1", ("bin/a", "lib/liba.so.1")),
    )


def test_the_needs_of_a_real_program_and_a_script_are_reported(make_deb: MakeDeb, dest: Path) -> None:
    program = Path("/bin/cat").resolve().read_bytes()
    tree = {
        "./usr/bin/cat": program,
        "./usr/bin/hipcc": b"#!/usr/bin/perl -w\n",
        "./usr/bin/e": b"#!/usr/bin/env python3\n",
    }
    table = ImportTable(DEBIAN.artifact, DEBIAN.place, DEBIAN.component, base_libraries=())

    report = import_debs([make_deb("hipcc", tree)], dest, table)

    assert "libc.so.6" in [requirement.name for requirement in report.libraries]
    assert report.programs == (MachineNeed("/usr/bin/perl", ("bin/hipcc",)), MachineNeed("python3", ("bin/e",)))


CONFIG = """\
get_filename_component(PACKAGE_PREFIX_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../../" ABSOLUTE)

# Use original install prefix when loaded through a "/usr move"
# cross-prefix symbolic link such as /lib -> /usr/lib.
get_filename_component(_realCurr "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_realOrig "/usr/lib/x86_64-linux-gnu/cmake/rocsparse" REALPATH)
if(_realCurr STREQUAL _realOrig)
  set(PACKAGE_PREFIX_DIR "/usr")
endif()
unset(_realOrig)
unset(_realCurr)
include("${CMAKE_CURRENT_LIST_DIR}/rocsparse-targets.cmake")
message(STATUS "prefix ${PACKAGE_PREFIX_DIR}")
get_filename_component(_DIR "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_REAL_PREFIX "${_DIR}/../../../../" REALPATH)
message(STATUS "real prefix ${_REAL_PREFIX}")
"""
TARGETS = """\
get_filename_component(_IMPORT_PREFIX "${CMAKE_CURRENT_LIST_FILE}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
if(_IMPORT_PREFIX STREQUAL "/")
  set(_IMPORT_PREFIX "")
endif()
message(STATUS "library ${_IMPORT_PREFIX}/lib/x86_64-linux-gnu/librocsparse.so.0")
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake, which reads the package files, is not installed")
def test_cmake_package_files_work_from_their_new_location(make_deb: MakeDeb, dest: Path, tmp_path: Path) -> None:
    folder = f"{MULTIARCH}/cmake/rocsparse"
    files = {"rocsparse-config.cmake": CONFIG, "rocsparse-targets.cmake": TARGETS}
    import_debs(
        [make_deb("librocsparse-dev", {f"{folder}/{name}": text.encode() for name, text in files.items()})],
        dest,
        DEBIAN,
    )
    prefix = tmp_path / "elsewhere"
    shutil.move(dest / "blas_dev_generic/blas/stage", prefix)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(x LANGUAGES NONE)\nfind_package(rocsparse REQUIRED CONFIG)\n"
    )

    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={prefix}"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    assert f"-- prefix {prefix}" in said
    assert f"-- real prefix {prefix}" in said
    assert f"-- library {prefix}/lib/librocsparse.so.0" in said
