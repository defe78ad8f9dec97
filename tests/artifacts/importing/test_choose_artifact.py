"""Rules decide where files go and how their text changes."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.importing.choose_artifact import Destination, ImportRules, TextEdit
from rocwheel.artifacts.importing.table import Edit, load_table


@pytest.fixture(scope="module")
def debian() -> ImportRules:
    return ImportRules(load_table("debian.toml"))


@pytest.fixture(scope="module")
def prefix() -> ImportRules:
    return ImportRules(load_table("prefix.toml"))


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
def test_debian_file_goes_to_the_artifact_of_its_package(
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
def test_file_of_a_prefix_goes_to_the_artifact_that_therock_has_it_in(
    prefix: ImportRules, path: str, artifact: str, component: str
) -> None:
    assert (prefix.place(path, "") or prefix.place_rest(path)) == Destination(artifact, component, path)


def test_skipped_file_has_its_reason(debian: ImportRules) -> None:
    assert (
        debian.skip_reason("usr/bin/clang-15", "clang-15")
        == "second names of LLVM's files, which are in one folder, lib/llvm"
    )
    assert debian.skip_reason("usr/bin/hipcc", "hipcc") is None


def edit(**fields: object) -> TextEdit:
    rule = {"files": ("**/*.cmake",), "find": "/usr", "replace": "${PREFIX}", "reason": "it moves"} | fields
    return TextEdit(Edit(**rule))  # type: ignore[arg-type]


def test_edit_is_made_at_every_occurrence_and_counted() -> None:
    it = edit()

    assert it.make("a /usr b\n/usr\n", "x.cmake") == "a ${PREFIX} b\n${PREFIX}\n"
    assert (it.count.files, it.count.changes, it.problem) == (1, 2, None)


def test_edit_applies_where_both_its_patterns_match() -> None:
    it = edit(sources=("usr/lib/*-linux-gnu/**",))

    assert it.applies_to("lib/cmake/a.cmake", "usr/lib/x86_64-linux-gnu/cmake/a.cmake")
    assert not it.applies_to("lib/cmake/a.cmake", "usr/lib/cmake/a.cmake")
    assert not it.applies_to("lib/cmake/a.txt", "usr/lib/x86_64-linux-gnu/cmake/a.txt")


def test_edit_without_a_file_is_not_a_problem() -> None:
    assert edit(each=1).problem is None


def test_edit_that_no_longer_fits_one_file_says_so() -> None:
    it = edit(each=1)
    it.make("/usr", "a.cmake of one.deb")
    it.make("none", "b.cmake of two.deb")

    assert str(it.problem) == (
        "the edit '/usr': no longer fits b.cmake of two.deb (1 occurrences); expected 1 or more, because: it moves. "
        "Look at the file and adapt the table."
    )


def test_edit_that_fits_nowhere_says_so() -> None:
    it = edit()
    it.make("none", "a.cmake")

    assert str(it.problem) == (
        "the edit '/usr': no longer fits 1 file (0 occurrences); expected 1 or more, because: it moves. "
        "Look at the file and adapt the table."
    )
