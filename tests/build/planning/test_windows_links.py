"""What becomes of links in a tree for Windows, whose users may not make any."""

from __future__ import annotations

import msgspec

from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.platform import Platform
from rocwheel.build.plan import FileMember, TarMember
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import load_recipe
from tests.build.trees import file_entry, link_entry, make_catalog, make_facts
from tests.support.pe_files import pe_file

CLANG = file_entry("lib/llvm/bin/clang.exe", "amd-llvm_run_generic", mode=0o755)
BLAS = file_entry("bin/rocblas.dll", "blas_lib_generic")
SCRIPT = file_entry("bin/hipify-perl", "hipify_run_generic", mode=0o755)
LINKS = [
    link_entry("lib/llvm/bin/clang++.exe", "clang.exe", "amd-llvm_run_generic"),
    link_entry("bin/amdclang.exe", "../lib/llvm/bin/clang.exe", "amd-llvm_run_generic"),
    link_entry("bin/rocblas_alias.dll", "rocblas.dll", "blas_lib_generic"),
    link_entry("bin/hipify", "hipify-perl", "hipify_run_generic"),
    link_entry("bin/gone.dll", "nowhere.dll", "blas_lib_generic"),
]


def test_links_become_copies_and_dangling_links_are_left_out() -> None:
    image = read_pe(pe_file("a.dll"), name="a.dll")
    images = {entry.source: image for entry in (CLANG, BLAS) if entry.source}
    facts = msgspec.structs.replace(make_facts(scripts=[SCRIPT]), platform=Platform.WINDOWS, images=images)
    plan = make_plan(make_catalog(CLANG, BLAS, SCRIPT, *LINKS), load_recipe(), facts, PlanOptions())
    members = [member for wheel in plan.wheels for member in wheel.members]
    origins = {member.path: member.origin for member in members if isinstance(member, FileMember)}
    assert origins == {
        "_rocm_sdk_core/bin/amdclang.exe": "lib/llvm/bin/clang.exe",
        "_rocm_sdk_core/bin/hipify": "bin/hipify-perl",
        "_rocm_sdk_core/bin/hipify-perl": "bin/hipify-perl",
        "_rocm_sdk_core/lib/llvm/bin/clang++.exe": "lib/llvm/bin/clang.exe",
        "_rocm_sdk_core/lib/llvm/bin/clang.exe": "lib/llvm/bin/clang.exe",
        "_rocm_sdk_libraries/bin/rocblas.dll": "bin/rocblas.dll",
        "_rocm_sdk_libraries/bin/rocblas_alias.dll": "bin/rocblas.dll",
    }
    [tar] = [member for member in members if isinstance(member, TarMember)]
    assert tar.entries == ()
    assert "_rocm_sdk_devel/lib/llvm/bin/clang++.exe" in tar.links
    assert {(row.path, row.reason) for row in plan.dropped} == {
        ("bin/gone.dll", "a symlink to bin/nowhere.dll, but no artifact contains it")
    }
