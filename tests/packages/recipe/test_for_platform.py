"""What a recipe says for one platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.platform import Platform
from rocwheel.foundation.errors import ProblemsError
from rocwheel.packages.recipe.for_platform import recipe_for
from rocwheel.packages.recipe.load import load_recipe

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


def test_a_package_that_a_platform_lacks_goes_with_all_that_is_said_of_it(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, "[platforms.windows.packages.extra]\nexists = false\n"))
    there = recipe_for(recipe, Platform.WINDOWS)
    assert list(there.packages) == ["core", "more"]
    assert (there.packages["more"].requires, there.packages["more"].search) == (("core",), ("more:lib",))
    assert there.selector.extras == {"both": ("more",)}
    assert there.libraries == {}


def test_what_is_given_for_a_platform_takes_the_place_of_what_is_not(tmp_path: Path) -> None:
    rules = '[platforms.windows]\nleave-out = ["tests/**"]\n[platforms.windows.packages.core]\nsearch = ["core:bin"]\n'
    recipe = load_recipe(write(tmp_path, rules))
    windows, linux = recipe_for(recipe, Platform.WINDOWS), recipe_for(recipe, Platform.LINUX)
    assert (windows.packages["core"].search, linux.packages["core"].search) == (("core:bin",), ("core:lib",))
    assert windows.packages["core"].take == linux.packages["core"].take
    assert (windows.leave_out, linux.leave_out) == (("tests/**",), ())


def test_without_rules_a_recipe_stays_as_it_is(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, ""))
    assert recipe_for(recipe, Platform.WINDOWS) == recipe


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[platforms.windows.packages.other]\nexists = false", "platforms.windows.packages names 'other'"),
        ('[platforms.windows.libraries]\nx = { package = "y", pattern = "x.dll" }', "windows.libraries.x names 'y'"),
        ('[platforms.windows.packages.core]\nsearch = ["x:bin"]', "platforms.windows.packages.core names 'x'"),
        ("[platforms.macos]", "macos"),
    ],
)
def test_rules_of_a_platform_that_lead_nowhere_are_told(tmp_path: Path, rules: str, said: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        load_recipe(write(tmp_path, rules))
    assert said in str(caught.value)


def test_rocm_for_windows_has_no_profilers_and_looks_for_dlls_in_bin() -> None:
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


def test_scripts_of_the_default_recipe_lead_to_where_windows_has_the_compilers() -> None:
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
