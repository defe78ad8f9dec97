"""Tests of `rocwheel.build.planning.make_plan`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.build.plan import Dropped, FileMember, ForwardingMember, Plan, PlannedWheel, TextMember
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import load_recipe
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.demo import SAMPLE_SDK
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.targets.declaration import decode_declaration
from tests.build.trees import file_entry, library, link_entry, make_catalog, make_facts, static_program

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.artifacts.catalog import Entry


HIP = file_entry("lib/libamdhip64.so.7.2", "core-hip_lib_generic")
HIP_LINKS = (
    link_entry("lib/libamdhip64.so.7", "libamdhip64.so.7.2", "core-hip_lib_generic"),
    link_entry("lib/libamdhip64.so", "libamdhip64.so.7", "core-hip_dev_generic"),
)
HIPCC = file_entry("bin/hipcc", "core-hip_run_generic", mode=0o755)
HEADER = file_entry("include/hip/hip.h", "core-hip_dev_generic")
CMAKE = file_entry("lib/cmake/hip/hip-config.cmake", "core-hip_dev_generic")
BLAS = file_entry("lib/librocblas.so.5", "blas_lib_generic")
KERNELS = {
    target: file_entry(f"lib/rocblas/library/k_{target.replace(':', '-')}.co", f"blas_lib_{target}")
    for target in ("gfx906", "gfx90a", "gfx90a:xnack+", "gfx1030")
}
ELVES = {
    HIP: library("libamdhip64.so.7", imports_dlopen=True),
    BLAS: library("librocblas.so.5", "libamdhip64.so.7"),
}
COMMON = (HIP, *HIP_LINKS, HIPCC, HEADER, CMAKE, BLAS)


def plan(*entries: Entry, options: PlanOptions | None = None, kpack: bool = True) -> Plan:
    catalog = make_catalog(*entries, flags={"KPACK_SPLIT_ARTIFACTS": kpack})
    return make_plan(catalog, load_recipe(), make_facts(ELVES), options or PlanOptions())


def wheel_of(made: Plan, distribution: str) -> PlannedWheel:
    return next(wheel for wheel in made.wheels if wheel.name.distribution == distribution)


def paths(wheel: PlannedWheel) -> set[str]:
    return {member.path for member in wheel.members}


def text_of(wheel: PlannedWheel, path: str) -> str:
    return next(member.text for member in wheel.members if isinstance(member, TextMember) and member.path == path)


def test_a_neutral_layout_has_one_device_package_for_each_target() -> None:
    made = plan(*COMMON, *KERNELS.values())
    assert [wheel.name.distribution for wheel in made.wheels] == [
        "rocm-sdk-core",
        "rocm-sdk-devel",
        "rocm-sdk-device-gfx1030",
        "rocm-sdk-device-gfx906",
        "rocm-sdk-device-gfx90a",
        "rocm-sdk-libraries",
    ]
    assert [sdist.distribution for sdist in made.sdists] == ["rocm"]
    assert (made.layout, made.targets) == ("neutral", ("gfx906", "gfx90a", "gfx1030"))


def test_xnack_variants_share_the_package_of_their_processor() -> None:
    wheel = wheel_of(plan(*COMMON, *KERNELS.values()), "rocm-sdk-device-gfx90a")
    assert {path for path in paths(wheel) if path.endswith(".co")} == {
        "_rocm_sdk_libraries/lib/rocblas/library/k_gfx90a.co",
        "_rocm_sdk_libraries/lib/rocblas/library/k_gfx90a-xnack+.co",
    }


def test_a_device_package_never_contains_the_init_file_of_the_libraries() -> None:
    wheel = wheel_of(plan(*COMMON, *KERNELS.values()), "rocm-sdk-device-gfx906")
    assert "_rocm_sdk_libraries/__init__.py" not in paths(wheel)
    assert "_rocm_sdk_libraries/.device-gfx906" in paths(wheel)
    assert text_of(wheel, "_rocm_sdk_libraries/.devel_links/gfx906.json") == (
        '{\n "version": "7.2.0",\n "links": [\n'
        '  {\n   "relpath": ".device-gfx906",\n   "target": "../_rocm_sdk_libraries/.device-gfx906"\n  },\n'
        '  {\n   "relpath": "lib/rocblas/library/k_gfx906.co",\n'
        '   "target": "../../../../_rocm_sdk_libraries/lib/rocblas/library/k_gfx906.co"\n  }\n ]\n}\n'
    )


def test_a_per_family_layout_has_libraries_devel_and_selector_for_each_family() -> None:
    kernels = [file_entry("lib/k.co", f"blas_lib_{family}") for family in ("gfx94X-dcgpu", "gfx103X-dgpu")]
    made = plan(*COMMON, *kernels, kpack=False)
    assert [(wheel.folder, wheel.name.distribution) for wheel in made.wheels] == [
        ("", "rocm-sdk-core"),
        ("", "rocm-sdk-libraries-gfx103X-dgpu"),
        ("", "rocm-sdk-libraries-gfx94X-dcgpu"),
        ("gfx103X-dgpu", "rocm-sdk-devel"),
        ("gfx94X-dcgpu", "rocm-sdk-devel"),
    ]
    assert [(sdist.folder, sdist.distribution) for sdist in made.sdists] == [
        ("gfx103X-dgpu", "rocm"),
        ("gfx94X-dcgpu", "rocm"),
    ]


def test_each_family_gets_its_own_files_and_the_neutral_files() -> None:
    kernels = [file_entry(f"lib/{family}.co", f"blas_lib_{family}") for family in ("gfx94X-dcgpu", "gfx103X-dgpu")]
    wheel = wheel_of(plan(*COMMON, *kernels, kpack=False), "rocm-sdk-libraries-gfx94X-dcgpu")
    root = "_rocm_sdk_libraries_gfx94X_dcgpu"
    assert {path for path in paths(wheel) if path.startswith(f"{root}/lib")} == {
        f"{root}/lib/gfx94X-dcgpu.co",
        f"{root}/lib/librocblas.so.5",
    }


def test_a_single_family_needs_no_folder() -> None:
    made = plan(*COMMON, file_entry("lib/k.co", "blas_lib_gfx94X-dcgpu"), kpack=False)
    assert {wheel.folder for wheel in made.wheels} == {""}


def test_generic_artifacts_alone_make_a_neutral_set_without_device_packages() -> None:
    made = plan(*COMMON)
    assert [wheel.name.distribution for wheel in made.wheels] == [
        "rocm-sdk-core",
        "rocm-sdk-devel",
        "rocm-sdk-libraries",
    ]


def test_files_record_their_source_artifact() -> None:
    wheel = wheel_of(plan(*COMMON), "rocm-sdk-core")
    member = next(member for member in wheel.members if member.path == "_rocm_sdk_core/bin/hipcc")
    assert isinstance(member, FileMember)
    assert (member.artifact, member.origin, member.mode) == ("core-hip_run_generic", "bin/hipcc", 0o755)
    assert member.source == HIPCC.source


def test_libraries_find_the_core_package_through_their_run_path() -> None:
    wheel = wheel_of(plan(*COMMON), "rocm-sdk-libraries")
    member = next(member for member in wheel.members if member.path == "_rocm_sdk_libraries/lib/librocblas.so.5")
    assert isinstance(member, FileMember)
    assert member.run_path == SetRunpath("$ORIGIN/../../_rocm_sdk_core/lib", RunpathTag.RPATH)


def test_a_device_library_also_gets_its_run_path() -> None:
    plugin = file_entry("lib/librocblas-gfx906.so", "blas_lib_gfx906")
    catalog = make_catalog(*COMMON, plugin, flags={"KPACK_SPLIT_ARTIFACTS": True})
    facts = make_facts(ELVES | {plugin: library(None, "libamdhip64.so.7")})
    wheel = wheel_of(make_plan(catalog, load_recipe(), facts, PlanOptions()), "rocm-sdk-device-gfx906")
    member = next(member for member in wheel.members if member.path.endswith("librocblas-gfx906.so"))
    assert isinstance(member, FileMember)
    assert member.run_path == SetRunpath("$ORIGIN/../../_rocm_sdk_core/lib", RunpathTag.RPATH)


def test_console_scripts_exist_only_for_existing_tools() -> None:
    wheel = wheel_of(plan(*COMMON), "rocm-sdk-core")
    assert wheel.console_scripts == {"hipcc": "rocm_sdk_core._cli:hipcc"}


def test_requirements_are_pinned_to_this_build() -> None:
    made = plan(*COMMON, *KERNELS.values(), options=PlanOptions(version="7.2.0.post1"))
    requires = {wheel.name.distribution: wheel.metadata.requires for wheel in made.wheels}
    assert requires == {
        "rocm-sdk-core": (),
        "rocm-sdk-devel": ("rocm-sdk-core==7.2.0.post1", "rocm-sdk-libraries==7.2.0.post1"),
        "rocm-sdk-device-gfx1030": ("rocm-sdk-libraries==7.2.0.post1",),
        "rocm-sdk-device-gfx906": ("rocm-sdk-libraries==7.2.0.post1",),
        "rocm-sdk-device-gfx90a": ("rocm-sdk-libraries==7.2.0.post1",),
        "rocm-sdk-libraries": ("rocm-sdk-core==7.2.0.post1",),
    }


def test_license_texts_from_artifacts_are_in_the_metadata() -> None:
    text = file_entry("share/doc/rocblas/LICENSE.md", "blas_doc_generic")
    wheel = wheel_of(plan(*COMMON, text), "rocm-sdk-libraries")
    assert wheel.metadata.license_files == ("share/doc/rocblas/LICENSE.md", "rocm_sdk/LICENSE")
    assert [member.source for member in wheel.licenses if isinstance(member, FileMember)] == [text.source]


def test_packages_list_only_the_licenses_of_their_contents() -> None:
    made = plan(*COMMON, KERNELS["gfx906"])
    assert {wheel.name.distribution: wheel.metadata.license_expression for wheel in made.wheels} == {
        "rocm-sdk-core": "MIT",
        "rocm-sdk-devel": "BSD-2-Clause AND BSD-3-Clause AND MIT",
        "rocm-sdk-device-gfx906": "BSD-2-Clause AND BSD-3-Clause AND MIT",
        "rocm-sdk-libraries": "BSD-2-Clause AND BSD-3-Clause AND MIT",
    }


def test_a_package_with_files_of_unknown_license_has_no_license_expression() -> None:
    stranger = file_entry("lib/libfoo.so", "rpp-next_lib_generic")
    recipe = load_recipe()
    core = msgspec.structs.replace(
        recipe.packages["core"], take=(msgspec.structs.replace(recipe.packages["core"].take[0], artifacts=("*",)),)
    )
    recipe = msgspec.structs.replace(recipe, packages={**recipe.packages, "core": core})
    made = make_plan(make_catalog(*COMMON, stranger), recipe, make_facts(ELVES), PlanOptions())
    assert wheel_of(made, "rocm-sdk-core").metadata.license_expression is None


def test_the_sdk_targets_are_written_to_dist_info_json() -> None:
    wheel = wheel_of(plan(*COMMON, *KERNELS.values()), "rocm-sdk-core")
    path = "_rocm_sdk_core/share/therock/dist_info.json"
    assert text_of(wheel, path) == '{"dist_amdgpu_targets": "gfx906;gfx90a;gfx1030"}\n'


def test_targets_are_read_from_fat_binaries() -> None:
    catalog = make_catalog(*COMMON)
    facts = make_facts(ELVES, targets={BLAS: ("gfx90a:xnack+", "gfx1030")})
    made = make_plan(catalog, load_recipe(), facts, PlanOptions())
    assert made.targets == ("gfx90a", "gfx1030")
    assert wheel_of(made, "rocm-sdk-libraries").targets == ("gfx90a:xnack+", "gfx1030")


def test_every_wheel_declares_the_targets_of_its_files() -> None:
    facts = make_facts(ELVES, targets={KERNELS["gfx906"]: ("gfx906",), BLAS: ("gfx906", "gfx1030")})
    made = make_plan(make_catalog(*COMMON, KERNELS["gfx906"]), load_recipe(), facts, PlanOptions())
    declared = {
        wheel.name.distribution: decode_declaration(wheel.declaration.encode(), source="test").rocm_targets
        for wheel in made.wheels
    }
    assert declared == {
        "rocm-sdk-core": (),
        "rocm-sdk-devel": (),
        "rocm-sdk-device-gfx906": ("gfx906",),
        "rocm-sdk-libraries": ("gfx906", "gfx1030"),
    }


def test_targets_of_a_newer_compiler_are_declared_unchanged() -> None:
    facts = make_facts(ELVES, targets={BLAS: ("amdgcnspirv", "gfx1999", "gfx1030")})
    made = make_plan(make_catalog(*COMMON), load_recipe(), facts, PlanOptions())
    declaration = wheel_of(made, "rocm-sdk-libraries").declaration
    assert decode_declaration(declaration.encode(), source="test").rocm_targets == ("gfx1030", "gfx1999", "amdgcnspirv")
    assert made.gaps == ()


def test_a_target_missing_from_a_dependency_is_a_gap() -> None:
    facts = make_facts(ELVES, targets={HIP: ("gfx906",), BLAS: ("gfx906", "gfx1030")})
    made = make_plan(make_catalog(*COMMON), load_recipe(), facts, PlanOptions())
    assert made.gaps == ("rocm-sdk-core lacks gfx1030, which rocm-sdk-libraries has; rocm-sdk-core has gfx906",)


def test_a_manifest_without_kpack_split_has_no_effect_without_families() -> None:
    assert plan(*COMMON, kpack=False).layout == "neutral"


def test_a_forced_per_family_layout_without_families_stops_the_build(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        (SAMPLE_SDK.parent / "build/rocm.toml").read_text().replace("schema = 1", 'schema = 1\nlayout = "per-family"')
    )
    expected = (
        "/src: has no artifact for a target family; expected at least one, because the recipe's layout is "
        "per-family. "
        "Remove the layout from the recipe."
    )
    with pytest.raises(InputError, match=re.escape(expected)):
        make_plan(make_catalog(*COMMON), load_recipe(recipe), make_facts(ELVES), PlanOptions())


def test_an_unversioned_name_for_dlopen_becomes_a_forwarding_library() -> None:
    real = file_entry("lib/librocprof-sys.so.1", "rocprofiler-systems_lib_generic")
    catalog = make_catalog(*COMMON, real)
    facts = make_facts(ELVES | {real: library("librocprof-sys.so.1")})
    wheel = wheel_of(make_plan(catalog, load_recipe(), facts, PlanOptions()), "rocm-profiler")
    forwarding = next(member for member in wheel.members if isinstance(member, ForwardingMember))
    assert (forwarding.path, forwarding.soname) == ("_rocm_profiler/lib/librocprof-sys.so", "librocprof-sys.so.1")


def test_a_statically_linked_program_is_shipped_unchanged() -> None:
    tool = file_entry("bin/rocminfo", "core-runtime_run_generic", mode=0o755)
    catalog = make_catalog(*COMMON, tool)
    facts = make_facts(ELVES | {tool: static_program()})
    member = next(
        member
        for member in wheel_of(make_plan(catalog, load_recipe(), facts, PlanOptions()), "rocm-sdk-core").members
        if member.path == "_rocm_sdk_core/bin/rocminfo"
    )
    assert isinstance(member, FileMember)
    assert member.run_path is None


def test_a_suffix_lets_two_builds_share_an_environment() -> None:
    wheel = wheel_of(plan(*COMMON, options=PlanOptions(module_suffix="_nightly")), "rocm-sdk-core")
    assert "_rocm_sdk_core_nightly/bin/hipcc" in paths(wheel)


@pytest.mark.parametrize(
    ("word", "asked"),
    [("gfx94X-dcgpu", " (from --linux-amdgpu-families gfx94X-dcgpu)"), ("gfx942", "")],
)
def test_an_expected_target_without_artifacts_stops_the_build_and_is_named_as_given(word: str, asked: str) -> None:
    expected = (
        f"/src: has no artifacts for gfx942{asked}; expected one of "
        f"gfx1030, gfx906, gfx90a. Add its artifacts, or remove {word} from --linux-amdgpu-families."
    )
    options = PlanOptions(linux_families=(f"gfx906;{word}",))
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        plan(*COMMON, *KERNELS.values(), options=options)


def test_missing_targets_from_one_family_option_are_one_problem() -> None:
    options = PlanOptions(targets=("gfx110X-dgpu",))
    with pytest.raises(ProblemsError) as caught:
        plan(*COMMON, *KERNELS.values(), options=options)
    assert str(caught.value) == (
        "/src: has no artifacts for gfx1100, gfx1101, gfx1102 (from --targets gfx110X-dgpu); "
        "expected one of gfx1030, gfx906, gfx90a. Add their artifacts, or "
        "remove gfx110X-dgpu from --targets."
    )


def test_an_expected_target_may_exist_only_as_an_xnack_variant() -> None:
    made = plan(*COMMON, KERNELS["gfx90a:xnack+"], options=PlanOptions(targets=("gfx90a",)))
    assert made.targets == ("gfx90a",)


def test_a_required_package_without_files_stops_the_build() -> None:
    with pytest.raises(
        ProblemsError, match=re.escape("/src: has no files for the package libraries; expected at least one of")
    ):
        plan(HIP, *HIP_LINKS, HIPCC)


def test_a_device_file_at_the_path_of_a_library_file_stops_the_build() -> None:
    clash = file_entry("lib/librocblas.so.5", "blas_lib_gfx906")
    catalog = make_catalog(*COMMON, clash, flags={"KPACK_SPLIT_ARTIFACTS": True})
    facts = make_facts(ELVES, digests={clash: b"1", BLAS: b"2"})
    expected = (
        "_rocm_sdk_libraries/lib/librocblas.so.5: would belong to both rocm-sdk-libraries and rocm-sdk-device-gfx906"
    )
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        make_plan(catalog, load_recipe(), facts, PlanOptions())


@pytest.mark.parametrize(
    ("options", "version", "expected"),
    [
        (PlanOptions(version="seven"), "7.2.0", "--version: is 'seven'; expected a PEP 440 version"),
        (PlanOptions(), "", "/src: has no version; expected rocm_package_version in the SDK manifest"),
        (PlanOptions(), "7.2-beta-x", "/src: the SDK manifest's version: is '7.2-beta-x'"),
    ],
    ids=["option", "none", "manifest"],
)
def test_a_malformed_version_is_refused(options: PlanOptions, version: str, expected: str) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        make_plan(make_catalog(*COMMON, version=version), load_recipe(), make_facts(ELVES), options)


def test_an_artifact_for_a_target_that_no_package_uses_is_reported() -> None:
    stray = file_entry("lib/wmma.co", "rocwmma_lib_gfx1100")
    made = plan(*COMMON, KERNELS["gfx906"], stray)
    assert Dropped("", "rocwmma_lib_gfx1100", "no package uses this artifact") in made.dropped


def test_a_library_needed_by_its_file_name_is_found() -> None:
    plain, user = file_entry("lib/libz9.so", "blas_lib_generic"), file_entry("lib/libw.so.1", "blas_lib_generic")
    facts = make_facts(ELVES | {plain: library(None), user: library("libw.so.1", "libz9.so", runpath="$ORIGIN")})
    made = make_plan(make_catalog(*COMMON, plain, user), load_recipe(), facts, PlanOptions())
    member = next(m for m in wheel_of(made, "rocm-sdk-libraries").members if m.path.endswith("libw.so.1"))
    assert isinstance(member, FileMember)
    assert member.run_path == SetRunpath("$ORIGIN", RunpathTag.RPATH)


def test_a_file_at_the_path_of_a_folder_stops_the_build() -> None:
    inner = file_entry("lib/librocblas.so.5/y", "blas_lib_generic")
    place = "_rocm_sdk_libraries/lib/librocblas.so.5"
    expected = f"{place}: would be both a file and the folder that contains lib/librocblas.so.5/y"
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        plan(*COMMON, inner)


def test_xnack_variants_share_the_libraries_of_their_processor() -> None:
    kernels = [
        file_entry(f"lib/{name}.co", f"blas_lib_{target}") for name, target in (("a", "gfx90a"), ("b", "gfx90a:xnack+"))
    ]
    made = plan(*COMMON, *kernels, kpack=False)
    assert [wheel.name.distribution for wheel in made.wheels] == [
        "rocm-sdk-core",
        "rocm-sdk-devel",
        "rocm-sdk-libraries-gfx90a",
    ]


def test_versions_are_normalized() -> None:
    assert plan(*COMMON, options=PlanOptions(version="7.2.0-rc.1")).version == "7.2.0rc1"


def variants_of(made: Plan, distribution: str) -> dict[str, tuple[str, ...]]:
    """Return what the wheels of a name require, by their variant labels."""
    return {
        wheel.name.label: wheel.metadata.requires
        for wheel in made.wheels
        if wheel.name.distribution == distribution and wheel.package == "variants"
    }


def test_variants_select_among_target_packages() -> None:
    made = plan(*COMMON, *KERNELS.values(), options=PlanOptions(variants=True))
    assert variants_of(made, "rocm-sdk-device") == {
        "gfx906": ("rocm-sdk-device-gfx906==7.2.0",),
        "gfx90a": ("rocm-sdk-device-gfx90a==7.2.0",),
        "gfx1030": ("rocm-sdk-device-gfx1030==7.2.0",),
        "null": ("rocm-sdk-libraries==7.2.0",),
        "": ("rocm-sdk-device-gfx906==7.2.0", "rocm-sdk-device-gfx90a==7.2.0", "rocm-sdk-device-gfx1030==7.2.0"),
    }


def test_variants_select_among_family_libraries() -> None:
    kernels = [file_entry("lib/k.co", f"blas_lib_{family}") for family in ("gfx94X-dcgpu", "gfx103X-dgpu")]
    made = plan(*COMMON, *kernels, kpack=False, options=PlanOptions(variants=True))
    assert variants_of(made, "rocm-sdk-libraries") == {
        "gfx94x_dcgpu": ("rocm-sdk-libraries-gfx94x-dcgpu==7.2.0",),
        "gfx103x_dgpu": ("rocm-sdk-libraries-gfx103x-dgpu==7.2.0",),
        "null": ("rocm-sdk-core==7.2.0",),
        "": ("rocm-sdk-libraries-gfx94x-dcgpu==7.2.0", "rocm-sdk-libraries-gfx103x-dgpu==7.2.0"),
    }


def test_variants_without_gpu_packages_are_refused() -> None:
    with pytest.raises(InputError, match=r"^--variants: there are no packages for single GPUs; expected packages for "):
        plan(*COMMON, options=PlanOptions(variants=True))


def test_no_variants_are_created_by_default() -> None:
    assert variants_of(plan(*COMMON, *KERNELS.values()), "rocm-sdk-device") == {}


def test_a_selector_may_require_nothing() -> None:
    recipe = load_recipe()
    recipe = msgspec.structs.replace(recipe, selector=msgspec.structs.replace(recipe.selector, requires=()))
    made = make_plan(make_catalog(*COMMON), recipe, make_facts(ELVES), PlanOptions())
    assert [sdist.distribution for sdist in made.sdists] == ["rocm"]


def test_a_selector_with_extras_for_gpus_must_require_a_package() -> None:
    recipe = load_recipe()
    recipe = msgspec.structs.replace(recipe, selector=msgspec.structs.replace(recipe.selector, requires=()))
    with pytest.raises(InputError) as caught:
        make_plan(make_catalog(*COMMON, *KERNELS.values()), recipe, make_facts(ELVES), PlanOptions())
    assert str(caught.value) == (
        "[selector]: requires no package, but the extras for GPU targets without device code need a package; expected "
        'requires = ["core"]. Correct the recipe.'
    )


def test_the_same_selector_for_both_platforms_must_require_a_package() -> None:
    recipe = load_recipe()
    recipe = msgspec.structs.replace(recipe, selector=msgspec.structs.replace(recipe.selector, requires=()))
    options = PlanOptions(linux_families=("gfx906",), windows_families=("gfx1100",))
    with pytest.raises(InputError) as caught:
        make_plan(make_catalog(*COMMON, *KERNELS.values()), recipe, make_facts(ELVES), options)
    assert str(caught.value) == (
        "[selector]: requires no package, but a package must list the libraries for each platform; expected "
        'requires = ["core"]. Correct the recipe.'
    )
