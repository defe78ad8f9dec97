"""Tests of `rocwheel.build.recipe`."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.platform import Platform
from rocwheel.build.recipe import (
    PackageNames,
    RecipeError,
    for_variant,
    is_per_family,
    is_per_variant,
    load_hashed_recipe,
    load_recipe,
    name_package,
    recipe_for,
)
from rocwheel.core.errors import ProblemsError

if TYPE_CHECKING:
    from pathlib import Path


RECIPE = """
schema = 1
[packages.core]
kind = "runtime"
distribution = "core"
module = "core"
platform-module = "_core"
summary = "core"
search = ["core:lib"]
take = [{ artifacts = ["*"], components = ["lib"] }]
[packages.extra]
kind = "runtime"
distribution = "extra"
module = "extra"
platform-module = "_extra"
summary = "extra"
search = ["extra:lib", "core:lib"]
requires = ["core"]
take = [{ artifacts = ["*"], components = ["run"] }]
[packages.more]
kind = "runtime"
distribution = "more"
module = "more"
platform-module = "_more"
summary = "more"
search = ["extra:lib", "more:lib"]
requires = ["core", "extra"]
take = [{ artifacts = ["*"], components = ["run"] }]
[selector]
distribution = "all"
module = "all"
summary = "all"
requires = ["core"]
[selector.extras]
extra = ["extra"]
both = ["extra", "more"]
[libraries]
a = { package = "extra", pattern = "liba.so.*" }
"""


def write(folder: Path, rules: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(RECIPE + rules)
    return path


def test_a_package_missing_on_a_platform_is_removed_with_all_references(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, "[platforms.windows.packages.extra]\nexists = false\n"))
    there = recipe_for(recipe, Platform.WINDOWS)
    assert list(there.packages) == ["core", "more"]
    assert (there.packages["more"].requires, there.packages["more"].search) == (("core",), ("more:lib",))
    assert there.selector.extras == {"both": ("more",)}
    assert there.libraries == {}


def test_platform_rules_override_general_rules(tmp_path: Path) -> None:
    rules = '[platforms.windows]\nleave-out = ["tests/**"]\n[platforms.windows.packages.core]\nsearch = ["core:bin"]\n'
    recipe = load_recipe(write(tmp_path, rules))
    windows, linux = recipe_for(recipe, Platform.WINDOWS), recipe_for(recipe, Platform.LINUX)
    assert (windows.packages["core"].search, linux.packages["core"].search) == (("core:bin",), ("core:lib",))
    assert windows.packages["core"].take == linux.packages["core"].take
    assert (windows.leave_out, linux.leave_out) == (("tests/**",), ())


def test_a_recipe_without_platform_rules_is_unchanged(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, ""))
    assert recipe_for(recipe, Platform.WINDOWS) == recipe


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[platforms.windows.packages.other]\nexists = false", "platforms.windows.packages refers to 'other'"),
        (
            '[platforms.windows.libraries]\nx = { package = "y", pattern = "x.dll" }',
            "windows.libraries.x refers to 'y'",
        ),
        ('[platforms.windows.packages.core]\nsearch = ["x:bin"]', "platforms.windows.packages.core refers to 'x'"),
        ("[platforms.macos]", "macos"),
    ],
)
def test_platform_rules_with_broken_references_are_reported(tmp_path: Path, rules: str, said: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        load_recipe(write(tmp_path, rules))
    assert said in str(caught.value)


def test_rocm_for_windows_has_no_profilers_and_searches_for_dlls_in_bin() -> None:
    there = recipe_for(load_recipe(), Platform.WINDOWS)
    assert list(there.packages) == ["core", "libraries", "device", "devel"]
    assert list(there.selector.extras) == ["libraries", "device", "devel"]
    assert {place for package in there.packages.values() for place in package.search} == {
        "core:bin",
        "core:lib/llvm/bin",
        "libraries:bin",
        "devel:bin",
        "devel:lib/llvm/bin",
    }
    assert {library.directory for library in there.libraries.values()} == {"bin"}
    scripts = there.packages["core"].console_scripts
    assert all(script.path.endswith(".exe") for script in scripts.values())


def test_scripts_in_the_default_recipe_use_the_compiler_location_on_windows() -> None:
    scripts = recipe_for(load_recipe(), Platform.WINDOWS).packages["core"].console_scripts
    assert {name for name, script in scripts.items() if script.path == f"lib/llvm/bin/{name}.exe"} == {
        "amdclang",
        "amdclang++",
        "amdclang-cl",
        "amdclang-cpp",
        "amdflang",
        "amdlld",
        "offload-arch",
    }


INSTALLED = {
    "core": [
        "amd_comgr0713.dll",
        "amdhip64_7.dll",
        "amdocl64.dll",
        "hiprtc-builtins07013.dll",
        "hiprtc07013.dll",
        "rocm-openblas.dll",
        "rocm-openblas64.dll",
        "rocm_kpack.dll",
    ],
    "libraries": [
        "MIOpen.dll",
        "MIOpenCKGroupedConv_gfx1151.dll",
        "hipblas.dll",
        "hipdnn_backend.dll",
        "hipfft.dll",
        "hipfftw.dll",
        "hiprand.dll",
        "hipsolver.dll",
        "hipsparse.dll",
        "hipsparselt.dll",
        "libhipblaslt.dll",
        "origami.dll",
        "rocblas.dll",
        "rocfft.dll",
        "rocrand.dll",
        "rocsolver.dll",
        "rocsparse.dll",
    ],
}
"""What packages of ROCm 7.13 for Windows have in their bin folders."""


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("amd_comgr", "amd_comgr0713.dll"),
        ("amdhip64", "amdhip64_7.dll"),
        ("hiprtc", "hiprtc07013.dll"),
        ("hiprtc-builtins", "hiprtc-builtins07013.dll"),
        ("rocm-openblas", "rocm-openblas.dll"),
        ("hipblas", "hipblas.dll"),
        ("hipblaslt", "libhipblaslt.dll"),
        ("hipfft", "hipfft.dll"),
        ("hipsparse", "hipsparse.dll"),
        ("hipsparselt", "hipsparselt.dll"),
        ("hipdnn", "hipdnn_backend.dll"),
        ("miopen", "MIOpen.dll"),
        ("origami", "origami.dll"),
    ],
)
def test_a_short_name_matches_one_dll_in_any_version_spelling(name: str, file: str) -> None:
    library = recipe_for(load_recipe(), Platform.WINDOWS).libraries[name]
    assert fnmatch.filter(INSTALLED[library.package], library.pattern) == [file]


def test_every_dll_in_the_packages_has_at_most_one_short_name() -> None:
    libraries = recipe_for(load_recipe(), Platform.WINDOWS).libraries.values()
    for key, files in INSTALLED.items():
        for file in files:
            taking = [one for one in libraries if one.package == key and fnmatch.fnmatchcase(file, one.pattern)]
            assert len(taking) == (0 if file.startswith("MIOpenCK") else 1), file


NAMES_RECIPE = load_recipe()


def test_a_package_for_all_gpus_has_a_fixed_name() -> None:
    expected = PackageNames("rocm-sdk-core", "rocm_sdk_core", "_rocm_sdk_core")
    assert name_package(NAMES_RECIPE, "core", "neutral", "") == expected


def test_a_device_package_uses_the_module_of_the_package_that_it_extends() -> None:
    expected = PackageNames("rocm-sdk-device-gfx906", "", "_rocm_sdk_libraries")
    assert name_package(NAMES_RECIPE, "device", "neutral", "gfx906") == expected


def test_a_family_is_part_of_module_names_with_underscores() -> None:
    expected = PackageNames(
        "rocm-sdk-libraries-gfx94X-dcgpu", "rocm_sdk_libraries_gfx94X_dcgpu", "_rocm_sdk_libraries_gfx94X_dcgpu"
    )
    assert name_package(NAMES_RECIPE, "libraries", "per-family", "gfx94X-dcgpu") == expected


def test_without_a_family_the_placeholder_is_kept() -> None:
    names = name_package(NAMES_RECIPE, "libraries", "per-family")
    assert (names.distribution, names.module) == ("rocm-sdk-libraries-{family}", "rocm_sdk_libraries_{family}")


@pytest.mark.parametrize(
    ("key", "per_variant", "per_family"), [("core", False, False), ("device", True, False)], ids=["core", "device"]
)
def test_device_packages_exist_per_target_and_not_per_family(key: str, *, per_variant: bool, per_family: bool) -> None:
    package = NAMES_RECIPE.packages[key]
    assert (is_per_variant(package, "neutral"), is_per_family(package, "neutral")) == (per_variant, per_family)


def test_a_summary_in_the_recipe_may_name_the_target_and_the_family() -> None:
    assert for_variant("Kernels for {target} of {family}", "gfx906") == "Kernels for gfx906 of gfx906"


MINIMAL = """
schema = 1
[packages.core]
kind = "runtime"
distribution = "my-core"
module = "my_core"
platform-module = "_my_core"
summary = "Core"
take = [{ artifacts = ["base"], components = ["lib"] }]
[selector]
distribution = "my"
module = "my_sdk"
summary = "All"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    return path


def test_the_default_recipe_has_the_same_packages_as_the_reference() -> None:
    recipe = load_recipe()
    names = {key: package.distribution_in("neutral") for key, package in recipe.packages.items()}
    assert names == {
        "core": "rocm-sdk-core",
        "profiler": "rocm-profiler",
        "libraries": "rocm-sdk-libraries",
        "device": "rocm-sdk-device-{target}",
        "devel": "rocm-sdk-devel",
    }
    assert recipe.selector.distribution == "rocm"


def test_a_per_family_layout_has_family_libraries_and_no_device_packages() -> None:
    recipe = load_recipe()
    assert recipe.packages["libraries"].distribution_in("per-family") == "rocm-sdk-libraries-{family}"
    assert recipe.packages["device"].distribution_in("per-family") is None


def test_rccl_and_its_kernels_are_included() -> None:
    packages = load_recipe().packages
    assert all("rccl" in packages[key].take[0].artifacts for key in ("libraries", "device"))


def test_a_minimal_recipe_loads(tmp_path: Path) -> None:
    assert list(load_recipe(written(tmp_path, MINIMAL)).packages) == ["core"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("my-core", "my core"), "packages.core: 'my core' isn't a valid distribution name"),
        (('module = "my_core"\n', ""), "packages.core lacks module or platform-module"),
        (
            ('summary = "Core"', 'summary = "Core"\nrequires = ["cor"]'),
            "packages.core refers to 'cor'; expected one of core",
        ),
        (('summary = "Core"', 'summary = "Core"\nrequires = ["core"]'), "packages.core requires itself"),
        (
            ('summary = "Core"', 'summary = "Core"\nsearch = ["lib:x"]'),
            "packages.core refers to 'lib'; expected one of core",
        ),
        (('"_my_core"', '"../evil"'), "packages.core: '../evil' is not a module name"),
        (
            ('summary = "Core"', 'summary = "Core"\nconsole-scripts = { "../x" = { path = "bin/x" } }'),
            "packages.core: '../x' is not a valid name for a console script",
        ),
        (('summary = "Core"', 'summary = "Core"\nsearch = ["core:/etc"]'), "packages.core searches 'core:/etc'"),
        (("schema = 1", 'schema = 1\nlicense = "Banana"'), "has an invalid field: "),
        (("schema = 1", 'schema = 1\nrequires-python = "banana"'), "has an invalid field: "),
        (('"my"', '"my/sdk"'), "selector: 'my/sdk' isn't a valid distribution name"),
        (('kind = "runtime"', 'kind = "device"'), "packages.core is a device package without an overlay"),
        (
            ("[selector]", '[libraries.x]\npackage = "other"\npattern = "libx.so"\n[selector]'),
            "libraries.x refers to 'other'; expected one of core",
        ),
    ],
    ids=[
        "name",
        "module",
        "requires",
        "requires itself",
        "search",
        "module name",
        "script name",
        "search folder",
        "license",
        "requires-python",
        "selector name",
        "overlay",
        "library",
    ],
)
def test_an_invalid_reference_or_name_is_reported(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        load_recipe(written(tmp_path, MINIMAL.replace(*change)))


def test_a_package_cannot_require_device_packages(tmp_path: Path) -> None:
    device = (
        '[packages.gpu]\nkind = "device"\ndistribution = "gpu-{target}"\nsummary = "GPU"\noverlay = "core"\ntake = []'
    )
    text = MINIMAL.replace('summary = "Core"', 'summary = "Core"\nrequires = ["gpu"]').replace(
        "[selector]", f"{device}\n[selector]"
    )
    with pytest.raises(
        ProblemsError, match=r"packages.core requires the device package 'gpu'; expected a package for "
    ):
        load_recipe(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schema = [", "is not a recipe: "),
        (MINIMAL + "\n[selector]\n", "is not a recipe: "),
    ],
    ids=["no TOML", "a table twice"],
)
def test_invalid_toml_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(expected)):
        load_recipe(written(tmp_path, text))


SCRIPTS = """
[packages.core.console-scripts]
good = { path = "bin/good" }
bad = { color = "bin/bad" }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MINIMAL.replace("schema = 1", "schema = 2"), ["schema: Invalid enum value 2"]),
        (MINIMAL.replace("summary", "color", 1), ["packages.core: Object contains unknown field `color`"]),
        (
            MINIMAL.replace('"my-core"', "7").replace("[selector]", '[libraries.hip]\npackage = "core"\n[selector]'),
            [
                "packages.core.distribution: Expected `str | object`, got `int`",
                "libraries.hip: Object missing required field `pattern`",
            ],
        ),
        (MINIMAL + SCRIPTS, ["packages.core.console-scripts.bad: Object contains unknown field `color`"]),
        (MINIMAL.replace('["lib"]', "[7]"), ["packages.core.take[0].components[0]: Expected `str`, got `int`"]),
        (MINIMAL.replace("[packages.core]", "[[packages]]"), ["packages: Expected `object`, got `array`"]),
        (MINIMAL + "extra = 1", ["selector: Object contains unknown field `extra`"]),
    ],
    ids=["later schema", "unknown field", "two", "console script", "list", "packages as a list", "selector"],
)
def test_invalid_fields_are_reported_with_their_table(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ProblemsError) as caught:
        load_recipe(path)
    rest = ". See docs/recipe.md for the valid fields."
    assert [str(problem) for problem in caught.value.problems] == [f"{path}: {line}{rest}" for line in expected]


@pytest.mark.parametrize(
    ("old", "new", "meant"), [("summary", "sumary", "summary"), ("[selector]", "[select]", "selector")]
)
def test_the_error_for_a_misspelled_field_suggests_the_nearest(tmp_path: Path, old: str, new: str, meant: str) -> None:
    with pytest.raises(ProblemsError, match=f"Did you mean '{meant}'"):
        load_recipe(written(tmp_path, MINIMAL.replace(old, new, 1)))


SECOND = """
[packages.second]
kind = "runtime"
distribution = "my-second"
module = "my_second"
platform-module = "_my_second"
summary = "Second"
take = [{ artifacts = ["other"], components = ["lib"] }]
"""


@pytest.mark.parametrize(
    ("change", "found", "kinds"),
    [
        (
            ('"_my_second"', '"_my_core"'),
            "packages.second.platform-module and packages.core.platform-module are both '_my_core'",
            "module names",
        ),
        (
            ('"my_second"', '"_my_core"'),
            "packages.second.module and packages.core.platform-module are both '_my_core'",
            "module names",
        ),
        (
            ('"my-second"', '"My.Core"'),
            "packages.second.distribution and packages.core.distribution are both 'my-core'",
            "distribution names",
        ),
        (
            ('"my_second"', '"my_sdk"'),
            "packages.second.module and selector.module are both 'my_sdk'",
            "module names",
        ),
    ],
    ids=["platform module", "module and platform module", "distribution", "selector"],
)
def test_names_claimed_by_two_packages_are_refused(
    tmp_path: Path, change: tuple[str, str], found: str, kinds: str
) -> None:
    path = written(tmp_path, MINIMAL + SECOND.replace(*change))
    with pytest.raises(ProblemsError) as caught:
        load_recipe(path)
    assert [str(problem) for problem in caught.value.problems] == [f"{path}: {found}; expected different {kinds}"]


def test_packages_in_different_layouts_may_share_a_name(tmp_path: Path) -> None:
    one = MINIMAL.replace('distribution = "my-core"', 'distribution = { neutral = "my-core" }')
    other = SECOND.replace('"my-second"', '{ per-family = "my-core" }').replace("_second", "_core")
    assert list(load_recipe(written(tmp_path, one + other)).packages) == ["core", "second"]


def test_a_missing_recipe_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=re.escape("none.toml: can't be read (No such file or directory)")):
        load_recipe(tmp_path / "none.toml")


def test_a_folder_or_device_is_not_a_recipe(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=re.escape(f"{tmp_path}: can't be read (Is a directory). Pass a file instead of a folder.")
    ):
        load_recipe(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecipeError, match=re.escape("pipe: can't be read (it isn't a regular file).")):
        load_recipe(tmp_path / "pipe")


def test_the_hash_covers_the_recipe_text_that_was_read(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL)
    recipe, sha256 = load_hashed_recipe(path)
    assert recipe == load_recipe(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
