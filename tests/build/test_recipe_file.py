"""Tests of `rocwheel.build.recipe_file`."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.recipe import RecipeError
from rocwheel.build.recipe_file import load_hashed_recipe, load_recipe
from rocwheel.core.errors import ProblemsError

if TYPE_CHECKING:
    from pathlib import Path


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


def test_the_default_recipe_has_the_packages_of_the_reference() -> None:
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


def test_a_layout_per_family_has_libraries_per_family_and_no_device_packages() -> None:
    recipe = load_recipe()
    assert recipe.packages["libraries"].distribution_in("per-family") == "rocm-sdk-libraries-{family}"
    assert recipe.packages["device"].distribution_in("per-family") is None


def test_rccl_and_its_kernels_are_taken() -> None:
    packages = load_recipe().packages
    assert all("rccl" in packages[key].take[0].artifacts for key in ("libraries", "device"))


def test_a_minimal_recipe_loads(tmp_path: Path) -> None:
    assert list(load_recipe(written(tmp_path, MINIMAL)).packages) == ["core"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("my-core", "my core"), "packages.core: 'my core' is not a valid distribution name"),
        (('module = "my_core"\n', ""), "packages.core lacks module or platform-module"),
        (
            ('summary = "Core"', 'summary = "Core"\nrequires = ["cor"]'),
            "packages.core names 'cor'; expected one of core",
        ),
        (
            ('summary = "Core"', 'summary = "Core"\nsearch = ["lib:x"]'),
            "packages.core names 'lib'; expected one of core",
        ),
        (('"_my_core"', '"../evil"'), "packages.core: '../evil' is not a module name"),
        (
            ('summary = "Core"', 'summary = "Core"\nconsole-scripts = { "../x" = { path = "bin/x" } }'),
            "packages.core: '../x' is not a name for a console script",
        ),
        (('summary = "Core"', 'summary = "Core"\nsearch = ["core:/etc"]'), "packages.core searches 'core:/etc'"),
        (("schema = 1", 'schema = 1\nlicense = "Banana"'), "has an unusable field: "),
        (("schema = 1", 'schema = 1\nrequires-python = "banana"'), "has an unusable field: "),
        (('"my"', '"my/sdk"'), "selector: 'my/sdk' is not a valid distribution name"),
        (('kind = "runtime"', 'kind = "device"'), "packages.core is a device package without overlay"),
        (
            ("[selector]", '[libraries.x]\npackage = "other"\npattern = "libx.so"\n[selector]'),
            "libraries.x names 'other'; expected one of core",
        ),
    ],
    ids=[
        "name",
        "module",
        "requires",
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
def test_a_reference_that_leads_nowhere_is_named(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        load_recipe(written(tmp_path, MINIMAL.replace(*change)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schema = [", "is not a recipe: "),
        (MINIMAL + "\n[selector]\n", "is not a recipe: "),
    ],
    ids=["no TOML", "a table twice"],
)
def test_text_that_is_not_toml_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(expected)):
        load_recipe(written(tmp_path, text))


SCRIPTS = """
[packages.core.console-scripts]
good = { path = "bin/good" }
bad = { colour = "bin/bad" }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MINIMAL.replace("schema = 1", "schema = 2"), ["schema: Invalid enum value 2"]),
        (MINIMAL.replace("summary", "colour", 1), ["packages.core: Object contains unknown field `colour`"]),
        (
            MINIMAL.replace('"my-core"', "7").replace("[selector]", '[libraries.hip]\npackage = "core"\n[selector]'),
            [
                "packages.core.distribution: Expected `str | object`, got `int`",
                "libraries.hip: Object missing required field `pattern`",
            ],
        ),
        (MINIMAL + SCRIPTS, ["packages.core.console-scripts.bad: Object contains unknown field `colour`"]),
        (MINIMAL.replace('["lib"]', "[7]"), ["packages.core.take[0].components[0]: Expected `str`, got `int`"]),
        (MINIMAL.replace("[packages.core]", "[[packages]]"), ["packages: Expected `object`, got `array`"]),
        (MINIMAL + "extra = 1", ["selector: Object contains unknown field `extra`"]),
    ],
    ids=["later schema", "unknown field", "two", "console script", "list", "packages as a list", "selector"],
)
def test_fields_that_cannot_be_read_are_reported_with_the_table_they_are_in(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ProblemsError) as caught:
        load_recipe(path)
    rest = ". docs/recipe.md has the fields."
    assert [str(problem) for problem in caught.value.problems] == [f"{path}: {line}{rest}" for line in expected]


@pytest.mark.parametrize(
    ("old", "new", "meant"), [("summary", "sumary", "summary"), ("[selector]", "[select]", "selector")]
)
def test_the_nearest_field_of_a_misspelt_one_is_named(tmp_path: Path, old: str, new: str, meant: str) -> None:
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
            "modules",
        ),
        (
            ('"my_second"', '"_my_core"'),
            "packages.second.module and packages.core.platform-module are both '_my_core'",
            "modules",
        ),
        (
            ('"my-second"', '"My.Core"'),
            "packages.second.distribution and packages.core.distribution are both 'my-core'",
            "distributions",
        ),
        (
            ('"my_second"', '"my_sdk"'),
            "packages.second.module and selector.module are both 'my_sdk'",
            "modules",
        ),
    ],
    ids=["platform module", "module and platform module", "distribution", "selector"],
)
def test_names_that_two_packages_claim_are_refused(
    tmp_path: Path, change: tuple[str, str], found: str, kinds: str
) -> None:
    path = written(tmp_path, MINIMAL + SECOND.replace(*change))
    with pytest.raises(ProblemsError) as caught:
        load_recipe(path)
    assert [str(problem) for problem in caught.value.problems] == [f"{path}: {found}; expected different {kinds}"]


def test_packages_of_different_layouts_may_share_their_names(tmp_path: Path) -> None:
    one = MINIMAL.replace('distribution = "my-core"', 'distribution = { neutral = "my-core" }')
    other = SECOND.replace('"my-second"', '{ per-family = "my-core" }').replace("_second", "_core")
    assert list(load_recipe(written(tmp_path, one + other)).packages) == ["core", "second"]


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=re.escape("none.toml: can't be read (No such file or directory)")):
        load_recipe(tmp_path / "none.toml")


def test_a_folder_or_device_is_not_a_recipe(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=re.escape(f"{tmp_path}: can't be read (Is a directory). Name a file, not a folder.")
    ):
        load_recipe(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecipeError, match=re.escape("pipe: can't be read (it is not a regular file).")):
        load_recipe(tmp_path / "pipe")


def test_the_hash_is_that_of_the_very_text_that_was_read(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL)
    recipe, sha256 = load_hashed_recipe(path)
    assert recipe == load_recipe(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
