"""Tests of `rocwheel.artifacts.import_table`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.artifact import ArtifactName
from rocwheel.artifacts.import_table import (
    Destination,
    EditRule,
    FolderMove,
    ImportRules,
    ImportTable,
    Origin,
    TextEdit,
    load_import_table,
)
from rocwheel.artifacts.import_tree import ImportTree
from rocwheel.core.errors import InputError, ProblemsError
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import find_harness

if TYPE_CHECKING:
    from pathlib import Path


EMPTY = "artifact = []\nplace = []\ncomponent = []\nbase_libraries = []\n"


@pytest.mark.parametrize("name", ["debian.toml", "prefix.toml"])
def test_the_built_in_tables_are_valid(name: str) -> None:
    table = load_import_table(name)

    ImportRules(table)
    assert all("_" not in rule.name for rule in table.artifact), "no field of an artifact's name may hold an underscore"
    assert all(edit.reason for edit in table.edit)


@pytest.mark.parametrize(
    ("place", "path", "destination"),
    [
        (FolderMove("usr/lib/*-linux-gnu", "lib"), "usr/lib/x86_64-linux-gnu/cmake/hip/a", "lib/cmake/hip/a"),
        (FolderMove("usr/lib/*-linux-gnu", "lib"), "usr/lib/libx.so", None),
        (FolderMove("usr/lib/*-linux-gnu", "lib"), "usr/lib/x86_64-linux-gnu", None),
        (FolderMove("usr/lib/llvm-*", "lib/llvm"), "usr/lib/llvm-15/bin/clang", "lib/llvm/bin/clang"),
        (FolderMove("usr", ""), "usr/bin/hipcc", "bin/hipcc"),
        (FolderMove("usr", ""), "usrlocal/bin", None),
        (FolderMove("", ""), "bin/hipcc", "bin/hipcc"),
        (FolderMove("", "sub"), "bin/hipcc", "sub/bin/hipcc"),
    ],
)
def test_a_folder_move_applies_to_paths_in_the_folder(place: FolderMove, path: str, destination: str | None) -> None:
    assert place.move(path) == destination


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.toml"
    path.write_text(text)
    return path


def test_the_smallest_table_can_be_read(tmp_path: Path) -> None:
    assert load_import_table(write(tmp_path, EMPTY)) == ImportTable((), (), (), ())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("artifact = [", "is not an import table: Invalid value (at end of document)"),
        (EMPTY + "color = 1\n", "is not an import table: Object contains unknown field `color`"),
        ("artifact = []\n", "is not an import table: Object missing required field `place`"),
        (
            EMPTY + "[[link]]\npath = 3\nto = 'a'\nartifact = 'b'\n",
            "is not an import table: Expected `str`, got `int` - at `$.link[0].path`",
        ),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = '('\nreplace = ''\nreason = 'r'\n",
            "is not an import table: missing ), unterminated subpattern at position 0",
        ),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = 'x'\nreplace = '\\2'\nreason = 'r'\n",
            "is not an import table: invalid group reference 2 at position 1",
        ),
        ("a = " + "[" * 60000, "is not an import table: it is nested too deeply"),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = 'x'\nreplace = '\\g<n>'\nreason = 'r'\n",
            "is not an import table: unknown group name 'n'",
        ),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = 'x{99999999999}'\nreplace = ''\nreason = 'r'\n",
            "is not an import table: the repetition number is too large",
        ),
        (
            EMPTY + f"[[edit]]\nfiles = ['a']\nfind = '{'(' * 3000}'\nreplace = ''\nreason = 'r'\n",
            "is not an import table: maximum recursion depth exceeded",
        ),
    ],
    ids=[
        *("not TOML", "unknown field", "missing field", "wrong type", "bad expression", "bad replacement"),
        *("deep TOML", "unknown group", "huge repetition", "deep expression"),
    ],
)
def test_a_bad_table_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(InputError) as error:
        load_import_table(path)

    assert str(error.value) == f"{path}: {fault}; expected TOML as described in docs/debian.md"


def test_invalid_names_and_paths_are_refused_together(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "component = []\nbase_libraries = []\n[[artifact]]\nname = 'my_rocm'\n[[place]]\nfrom = 'usr'\nto = '../usr'\n"
        "[[link]]\npath = '/llvm'\nto = 'lib/llvm'\nartifact = 'base'\n",
    )

    with pytest.raises(ProblemsError) as error:
        load_import_table(path)

    assert str(error.value) == (
        f"{path}: 3 problems\n"
        "  my_rocm_run_generic: is not an artifact name; "
        "expected {name}_{component}_{target} with letters, digits, and '.+:~-', such as blas_lib_gfx942\n"
        "  '../usr': contains '..'; expected a path inside the prefix\n"
        "  '/llvm': is absolute; expected a path inside the prefix"
    )


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"

    with pytest.raises(InputError) as error:
        load_import_table(path)

    assert str(error.value) == f"{path}: can't be read (No such file or directory). Check the --table option."


def edit(**fields: object) -> TextEdit:
    rule = {"files": ("**/*.cmake",), "find": "/usr", "replace": "${PREFIX}", "reason": "it moves"} | fields
    return TextEdit(EditRule(**rule))  # type: ignore[arg-type]


def test_an_edit_replaces_and_counts_every_occurrence() -> None:
    it = edit()

    assert it.make("a /usr b\n/usr\n", "x.cmake") == "a ${PREFIX} b\n${PREFIX}\n"
    assert (it.changes, it.problem) == (2, None)


def test_an_edit_applies_only_if_both_patterns_match() -> None:
    it = edit(sources=("usr/lib/*-linux-gnu/**",))

    assert it.applies_to("lib/cmake/a.cmake", "usr/lib/x86_64-linux-gnu/cmake/a.cmake")
    assert not it.applies_to("lib/cmake/a.cmake", "usr/lib/cmake/a.cmake")
    assert not it.applies_to("lib/cmake/a.txt", "usr/lib/x86_64-linux-gnu/cmake/a.txt")


def test_an_edit_that_a_file_does_not_need_is_not_a_problem() -> None:
    it = edit(when="PREFIX /")

    assert it.make("set(PREFIX here)", "a.cmake of one.deb") == "set(PREFIX here)"
    assert (it.changes, it.problem) == (0, None)


def test_a_required_edit_that_does_not_match_is_reported() -> None:
    it = edit(when="PREFIX /")
    it.make("set(PREFIX /usr)", "a.cmake of one.deb")
    it.make("set(PREFIX /opt)", "b.cmake of two.deb")

    assert str(it.problem) == (
        "the edit '/usr': does not match b.cmake of two.deb, even though there is a match for 'PREFIX /'; expected a "
        "match "
        "(the reason for the edit: it moves). Check the file, and adjust the table (--table)."
    )


@pytest.mark.parametrize(
    "word",
    [
        "/llvm",
        "hip::device",
        "BASE_DIR",
        "# Use original install prefix when loaded through\n",
        'get_filename_component(a "${CURRENT_LIST_DIR',
        "CURRENT_LIST_DIR",
    ],
)
def test_an_endlessly_repeated_word_does_not_take_long(word: str) -> None:
    text = 'get_filename_component(a "${' + word * (600_000 // len(word))
    assert attempt(find_harness("imports.text_edits"), text.encode()) is None


def test_a_file_too_large_for_text_edits_is_refused(tmp_path: Path) -> None:
    tree = ImportTree(tmp_path, ImportRules(load_import_table("debian.toml")))
    content = SimpleNamespace(read=bytes)
    with pytest.raises(InputError) as caught:
        tree.add_file(
            Destination("hip", "dev", "bin/hipvars.pm"), Origin("usr/bin/hipvars.pm", "a.deb"), content, 0o644
        )
    assert str(caught.value) == (
        "usr/bin/hipvars.pm in a.deb: is larger than 16 MiB, but the table edits its text; "
        "expected a smaller file, such as a script or CMake file. "
        "Check the file, or remove the file's edits from the table (--table)."
    )


@pytest.fixture(scope="module")
def debian() -> ImportRules:
    return ImportRules(load_import_table("debian.toml"))


@pytest.fixture
def fresh() -> ImportRules:
    """Return rules that count their edits for one test."""
    return ImportRules(load_import_table("debian.toml"))


@pytest.fixture(scope="module")
def prefix() -> ImportRules:
    return ImportRules(load_import_table("prefix.toml"))


MULTIARCH = "usr/lib/x86_64-linux-gnu"


@pytest.mark.parametrize(
    ("package", "path", "placement"),
    [
        ("libamdhip64-5", f"{MULTIARCH}/libamdhip64.so.5", Destination("core-hip", "lib", "lib/libamdhip64.so.5")),
        (
            "libamdhip64-dev",
            f"{MULTIARCH}/cmake/hip/hip-config.cmake",
            Destination("core-hip", "dev", "lib/cmake/hip/hip-config.cmake"),
        ),
        ("libamdhip64-dev", "usr/include/hip/hip_vector.h", Destination("core-hip", "dev", "include/hip/hip_vector.h")),
        ("hipcc", "usr/bin/hipcc", Destination("core-hip", "run", "bin/hipcc")),
        ("libamd-comgr2", f"{MULTIARCH}/libamd_comgr.so.2", Destination("amd-llvm", "lib", "lib/libamd_comgr.so.2")),
        ("libllvm15", f"{MULTIARCH}/libLLVM-15.so.1", Destination("amd-llvm", "lib", "lib/llvm/lib/libLLVM-15.so.1")),
        ("clang-15", "usr/lib/llvm-15/bin/clang", Destination("amd-llvm", "run", "lib/llvm/bin/clang")),
        (
            "libclang-common-15-dev",
            "usr/lib/llvm-15/lib/clang/15.0.6/include/stddef.h",
            Destination("amd-llvm", "run", "lib/llvm/lib/clang/15.0.6/include/stddef.h"),
        ),
        (
            "rocm-device-libs",
            f"{MULTIARCH}/amdgcn/bitcode/ocml.bc",
            Destination("amd-llvm", "run", "lib/llvm/amdgcn/bitcode/ocml.bc"),
        ),
        ("librocsparse0", f"{MULTIARCH}/librocsparse.so.0", Destination("blas", "lib", "lib/librocsparse.so.0")),
        ("zlib1g", "lib/x86_64-linux-gnu/libz.so.1", Destination("sysdeps", "lib", "lib/rocm_sysdeps/lib/libz.so.1")),
        ("libelf1", f"{MULTIARCH}/libelf.so.1", Destination("sysdeps", "lib", "lib/rocm_sysdeps/lib/libelf.so.1")),
        ("libelf1", "usr/share/doc/libelf1/copyright", Destination("sysdeps", "doc", "share/doc/libelf1/copyright")),
        (
            "librocblas0",
            "usr/lib/aarch64-linux-gnu/librocblas.so.0",
            Destination("blas", "lib", "lib/librocblas.so.0"),
        ),
        ("hipcc", "etc/hipcc.conf", None),
        ("bash", "usr/bin/bash", None),
    ],
)
def test_a_debian_file_goes_to_the_artifact_of_its_package(
    debian: ImportRules, package: str, path: str, placement: Destination | None
) -> None:
    assert debian.place(path, package) == placement


@pytest.mark.parametrize(
    ("path", "artifact", "component"),
    [
        ("bin/hipcc", "amd-llvm", "run"),
        ("bin/hipify-perl", "hipify", "run"),
        ("bin/rocminfo", "core-runtime", "run"),
        ("bin/rocm-smi", "base", "run"),
        ("bin/rocprofv3", "rocprofiler-sdk", "run"),
        ("bin/rocprof-compute", "rocprofiler-compute", "run"),
        ("bin/rocprof-sys-run", "rocprofiler-systems", "run"),
        ("lib/libamdhip64.so.6", "core-hip", "lib"),
        ("lib/libhsa-runtime64.so", "core-runtime", "lib"),
        ("lib/librocblas.so.4", "blas", "lib"),
        ("lib/rocblas/library/TensileLibrary_gfx906.dat", "blas", "lib"),
        ("lib/cmake/hipsparse/hipsparse-config.cmake", "blas", "dev"),
        ("lib/libMIOpen.so.1", "miopen", "lib"),
        ("share/miopen/db/gfx906.db", "miopen", "lib"),
        ("lib/librccl.so.1", "rccl", "lib"),
        ("lib/llvm/lib/clang/19/include/stddef.h", "amd-llvm", "run"),
        ("lib/llvm/lib/libclang.a", "amd-llvm", "dev"),
        ("lib/rocm_sysdeps/lib/librocm_sysdeps_elf.so.1", "sysdeps", "lib"),
        ("include/rocprim/rocprim.hpp", "prim", "dev"),
        ("share/doc/rocsparse/LICENSE.md", "blas", "doc"),
        ("lib/.build-id/ab/cdef.debug", "unsorted", "dbg"),
        ("llvm", "amd-llvm", "run"),
        (".info/version", "base", "run"),
        ("share/something/new", "unsorted", "run"),
    ],
)
def test_a_prefix_file_goes_to_the_same_artifact_as_in_therock(
    prefix: ImportRules, path: str, artifact: str, component: str
) -> None:
    assert (prefix.place(path, "") or prefix.place_rest(path)) == Destination(artifact, component, path)


def test_a_skipped_file_has_a_reason(debian: ImportRules) -> None:
    assert (
        debian.skip_reason("usr/bin/clang-15", "clang-15")
        == "additional names of LLVM's files, which are all in the folder lib/llvm"
    )
    assert debian.skip_reason("usr/bin/hipcc", "hipcc") is None


HIPCC = "usr/bin/hipcc", "bin/hipcc"
TARGETS = "usr/lib/x86_64-linux-gnu/cmake/a/a-targets.cmake", "lib/cmake/a/a-targets.cmake"
STEP = 'get_filename_component({0} "${{{0}}}" PATH)\n'


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [
        (
            TARGETS,
            'get_filename_component(P "${CMAKE_CURRENT_LIST_DIR}/../../../../" ABSOLUTE)',
            'get_filename_component(P "${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE)',
        ),
        (
            TARGETS,
            'get_filename_component(P "${_ROCM_CMAKE_CURRENT_LIST_DIR_REAL}/../../../.." ABSOLUTE)',
            'get_filename_component(P "${_ROCM_CMAKE_CURRENT_LIST_DIR_REAL}/../../.." ABSOLUTE)',
        ),
        # Counted from a file: one level more than from its folder. With four, it reached lib/ only, and now the prefix.
        (
            TARGETS,
            'get_filename_component(P "${_FILE_PATH}/../../../../../" ABSOLUTE)',
            'get_filename_component(P "${_FILE_PATH}/../../../../" ABSOLUTE)',
        ),
        (
            TARGETS,
            'get_filename_component(P "${_FILE_PATH}/../../../../" ABSOLUTE)',
            'get_filename_component(P "${_FILE_PATH}/../../../../" ABSOLUTE)',
        ),
        # Any variable, and as many steps as there are; three lead to lib/ in both places.
        (TARGETS, STEP.format("AMD_COMGR_PREFIX") * 4, STEP.format("AMD_COMGR_PREFIX") * 3),
        (TARGETS, STEP.format("_IMPORT_PREFIX") * 3, STEP.format("_IMPORT_PREFIX") * 3),
        (
            ("usr/share/cmake/a/a-targets.cmake", "lib/cmake/a/a-targets.cmake"),
            'get_filename_component(P "${CMAKE_CURRENT_LIST_DIR}/../../../../" ABSOLUTE)',
            'get_filename_component(P "${CMAKE_CURRENT_LIST_DIR}/../../../../" ABSOLUTE)',
        ),
        (TARGETS, 'include("${AMD_COMGR_PREFIX}/lib/x86_64-linux-gnu/a")', 'include("${AMD_COMGR_PREFIX}/lib/a")'),
        (
            ("usr/share/cmake/a/a-config.cmake", "lib/cmake/a/a-config.cmake"),
            "set_and_check(F ${PACKAGE_PREFIX_DIR}/share/cmake/a/a-targets.cmake)",
            "set_and_check(F ${PACKAGE_PREFIX_DIR}/lib/cmake/a/a-targets.cmake)",
        ),
        # A program keeps its length.
        (HIPCC, "\x7fELF\x00lib/llvm-21/bin\x00", "\x7fELF\x00lib/llvm/.//bin\x00"),
    ],
)
def test_debian_files_are_edited_according_to_their_content(
    fresh: ImportRules, place: tuple[str, str], before: str, after: str
) -> None:
    source, destination = place
    for one in fresh.edits:
        if one.applies_to(destination, source):
            before = one.make(before, source)

    assert before == after
    assert not [one.problem for one in fresh.edits if one.problem]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (
            ("usr/lib/x86_64-linux-gnu/cmake/hip/hip-config.cmake", "lib/cmake/hip/hip-config.cmake"),
            "set(ROCM_PATH /usr/rocm)",
        ),
        (HIPCC, "\x00lib/llvm-121/bin\x00"),
        (("usr/bin/rocm_agent_enumerator", "bin/rocm_agent_enumerator"), "for node in os.listdir(topology_dir):"),
    ],
)
def test_debian_files_whose_required_edit_does_not_match_are_reported(
    fresh: ImportRules, place: tuple[str, str], text: str
) -> None:
    source, destination = place
    for one in fresh.edits:
        if one.applies_to(destination, source):
            one.make(text, source)

    assert [one.missed for one in fresh.edits if one.problem] == [[source]]


@pytest.mark.parametrize(
    ("path", "package", "destination"),
    [
        # Packages that no entry names are placed by what they hold.
        ("usr/lib/x86_64-linux-gnu/libroctx64.so.4", "libroctx64-4", ("rocprofiler-sdk", "lib", "lib/libroctx64.so.4")),
        (
            "usr/lib/x86_64-linux-gnu/librocm-dbgapi.so.0",
            "librocm-dbgapi0",
            ("amd-dbgapi", "lib", "lib/librocm-dbgapi.so.0"),
        ),
        ("usr/bin/rocm-new", "rocm-new", None),
        # Kernels belong to their library, device libraries may be in clang's folder.
        ("usr/lib/x86_64-linux-gnu/rocblas/4.4.1/a.hsaco", "librocblas4", ("blas", "lib", "lib/rocblas/4.4.1/a.hsaco")),
        (
            "usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode/hip.bc",
            "rocm-device-libs-21",
            ("amd-llvm", "run", "lib/llvm/lib/clang/21/amdgcn/bitcode/hip.bc"),
        ),
        ("usr/share/cmake/rocprim/a.cmake", "librocprim-dev", ("prim", "dev", "lib/cmake/rocprim/a.cmake")),
    ],
)
def test_files_from_newer_packages_are_placed(
    debian: ImportRules, path: str, package: str, destination: tuple[str, str, str] | None
) -> None:
    assert debian.place(path, package) == (Destination(*destination) if destination else None)


def test_unmatched_libraries_go_to_base_and_other_unmatched_files_to_unsorted(debian: ImportRules) -> None:
    assert debian.place_rest("usr/bin/rocm-new") == Destination("unsorted", "run", "bin/rocm-new")
    assert debian.place_rest("usr/lib/x86_64-linux-gnu/libnew.so.1") == Destination("base", "lib", "lib/libnew.so.1")


def test_a_system_package_contributes_libraries_and_its_license(fresh: ImportRules) -> None:
    fresh.take_for_system("libnl-3-200")

    assert fresh.place("usr/lib/x86_64-linux-gnu/libnl-3.so.200", "libnl-3-200") == Destination(
        "sysdeps", "lib", "lib/rocm_sysdeps/lib/libnl-3.so.200"
    )
    assert fresh.skip_reason("usr/lib/x86_64-linux-gnu/libnl-3.so.200", "libnl-3-200") is None
    assert fresh.skip_reason("usr/share/doc/libnl-3-200/copyright", "libnl-3-200") is None
    assert (
        fresh.skip_reason("etc/libnl-3/classid", "libnl-3-200")
        == "the artifact sysdeps doesn't include this file from its packages"
    )


PREFIX_RULES = ImportRules(load_import_table("prefix.toml"))


@pytest.mark.parametrize(
    ("name", "artifact"),
    [
        ("blas_lib_gfx942", "blas_lib_gfx942"),
        ("blas_lib_gfx90a:xnack+", "blas_lib_gfx90a:xnack+"),
        ("blas_test_gfx942", "blas_test_gfx942"),
        ("blas_dev_gfx942", None),
        ("blas_lib_generic", None),
        ("blas_lib", None),
        ("my_blas_lib_gfx942", None),
        (".._lib_gfx942", None),
        ("a/../b_lib_gfx942", None),
        ("blas_lib_gfx942\n", None),
    ],
)
def test_a_device_code_archive_goes_to_the_artifact_of_its_gpu(name: str, artifact: str | None) -> None:
    place = PREFIX_RULES.place(f".kpack/{name}.kpack", "")
    assert (place and place.artifact_name) == artifact


@pytest.mark.parametrize(
    ("path", "artifact"),
    [
        ("bin/amdhip64_7.dll", "core-hip_lib_generic"),
        ("bin/amd_comgr0713.dll", "amd-llvm_lib_generic"),
        ("bin/hiprtc-builtins07013.dll", "core-hip_lib_generic"),
        ("bin/rocm_kpack.dll", "core-kpack_lib_generic"),
        ("bin/rocm-openblas64.dll", "host-blas_lib_generic"),
        ("bin/hipblas.dll", "blas_lib_generic"),
        ("bin/libhipblaslt.dll", "blas_lib_generic"),
        ("bin/hipblaslt/library/gfx1100/a_gfx1100.co", "blas_lib_generic"),
        ("bin/rocblas/library/a_gfx1100.dat", "blas_lib_generic"),
        ("bin/hipfftw.dll", "fft_lib_generic"),
        ("bin/hiprand.dll", "rand_lib_generic"),
        ("bin/hipdnn_backend.dll", "hipdnn_lib_generic"),
        ("bin/test_plugins/custom/a.dll", "hipdnn_test_generic"),
        ("bin/MIOpenCKGroupedConv_gfx1151.dll", "miopen_lib_generic"),
        ("bin/hipInfo.exe", "core-hipinfo_run_generic"),
        ("bin/hipcc.exe", "amd-llvm_run_generic"),
        ("bin/rocblas-test.exe", "blas_test_generic"),
        ("lib/amdhip64.lib", "core-hip_dev_generic"),
        ("lib/libhipblaslt.dll.a", "blas_dev_generic"),
        ("lib/llvm/bin/LTO.dll", "amd-llvm_lib_generic"),
    ],
)
def test_windows_files_go_to_the_same_artifacts_as_in_therock(path: str, artifact: str) -> None:
    place = PREFIX_RULES.place(path, "")
    assert place is not None
    assert (place.artifact_name, place.path) == (artifact, path)


@given(
    st.lists(
        st.sampled_from([".kpack/", ".kpack", "blas", "_lib_", "_", "gfx942", "..", "/", ":xnack+", "\n", "é"]),
        max_size=8,
    )
)
def test_any_path_stays_in_the_folder_of_its_artifact_name(parts: list[str]) -> None:
    place = PREFIX_RULES.place("".join(parts), "")
    if place is not None:
        assert str(ArtifactName.parse(place.artifact_name)) == place.artifact_name


def test_the_license_of_the_opencl_loader_goes_with_the_loader(prefix: ImportRules) -> None:
    paths = ("bin/OpenCL.dll", "share/doc/ocl-icd/LICENSE.md", "share/doc/ocl-clr/LICENSE.md")
    places = [prefix.place(path, "") for path in paths]
    assert [place and (place.artifact, place.component) for place in places] == [
        ("core-ocl-icd", "lib"),
        ("core-ocl-icd", "doc"),
        ("core-ocl", "doc"),
    ]
