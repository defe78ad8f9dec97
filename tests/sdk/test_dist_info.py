"""``rocm_sdk._dist_info``: which target family scripts are told, on machines with a GPU and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    Load = Callable[..., Callable[[str], ModuleType]]
    LoadDistInfo = Callable[..., ModuleType]


@pytest.fixture
def load(load_sdk: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadDistInfo:
    """Return a function that imports the module where device packages are installed, those ``chosen`` by ``rocm``."""
    monkeypatch.delenv("ROCM_SDK_TARGET_FAMILY", raising=False)

    def load(*installed: str, chosen: tuple[str, ...] = (), **options: object) -> ModuleType:
        modules = load_sdk(**options)
        links = tmp_path / "site/_rocm_sdk_libraries/.devel_links"
        links.mkdir(parents=True)
        (links.parent / "__init__.py").touch()
        for target in installed:
            (links / f"{target}.json").touch()
        if chosen:
            (tmp_path / "site/rocm_sdk/_selection.py").write_text(f"FAMILIES = {list(chosen)}\n")
        return modules("rocm_sdk._dist_info")

    return load


@pytest.mark.parametrize(
    ("installed", "default", "family"),
    [
        ((), "", "gfx906"),
        ((), "gfx1030", "gfx1030"),
        (("gfx1030",), "", "gfx1030"),
        (("gfx1030",), "gfx906", "gfx1030"),
        (("gfx1030", "gfx906"), "", "gfx906"),
    ],
    ids=["first of the release", "default", "installed", "installed before default", "first installed"],
)
def test_family_without_a_gpu_is_that_of_what_is_installed_else_that_of_the_release(
    load: LoadDistInfo, installed: tuple[str, ...], default: str, family: str
) -> None:
    assert load(*installed, default=default).determine_target_family() == family


@pytest.mark.parametrize(
    ("installed", "family"),
    [(("gfx906", "gfx1030"), "gfx1030"), (("gfx906",), "gfx906"), ((), "gfx1030")],
    ids=["installed", "not installed", "nothing installed"],
)
def test_family_that_the_selector_chose_comes_first_among_those_installed_and_among_those_of_the_release(
    load: LoadDistInfo, installed: tuple[str, ...], family: str
) -> None:
    assert load(*installed, chosen=("gfx1030",)).determine_target_family() == family


def test_family_of_a_gpu_comes_before_that_of_what_is_installed(
    load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1030")
    assert load("gfx906").determine_target_family() == "gfx1030"


def test_family_of_a_gpu_that_the_release_lacks_is_that_of_what_is_installed(
    load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx942")
    assert load("gfx1030").determine_target_family() == "gfx1030"


def test_chosen_family_that_the_release_lacks_is_an_error(load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_SDK_TARGET_FAMILY", "gfx999")
    with pytest.raises(ValueError, match=r"^ROCM_SDK_TARGET_FAMILY=gfx999: .* has no packages for gfx999 on linux"):
        load("gfx906").determine_target_family()


def test_family_of_a_release_without_families_is_an_error(load: LoadDistInfo) -> None:
    with pytest.raises(ValueError, match=r"^ROCm 7\.2\.0 has no packages that depend on the GPU"):
        load(devices=()).determine_target_family()


def test_family_is_determined_again_once_a_script_has_cleared_the_one_kept(
    load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("gfx906")
    monkeypatch.setenv("ROCM_SDK_TARGET_FAMILY", "gfx1030")
    assert module.determine_target_family() == "gfx1030"
    monkeypatch.setenv("ROCM_SDK_TARGET_FAMILY", "gfx906")
    assert (module.determine_target_family(), module.CACHED_TARGET_FAMILY) == ("gfx1030", "gfx1030")
    monkeypatch.setattr(module, "CACHED_TARGET_FAMILY", None)
    assert module.determine_target_family() == "gfx906"


def test_family_that_a_script_has_set_is_the_answer(load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("gfx906")
    monkeypatch.setattr(module, "CACHED_TARGET_FAMILY", "gfx1030")
    assert module.determine_target_family() == "gfx1030"


def test_names_of_packages_by_family_hold_the_placeholder_of_the_reference(load: LoadDistInfo) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030",)))
    libraries = load(families=families, nonce="_2").ALL_PACKAGES["libraries"]
    assert libraries.dist_package_template == "rocm-sdk-libraries-{target_family}"
    assert libraries.dist_package_template.format(target_family="gfx94X-dcgpu") == "rocm-sdk-libraries-gfx94X-dcgpu"
    assert libraries.pure_py_package_name == "rocm_sdk_libraries_{target_family}"
    assert libraries.is_target_specific


def test_facts_are_an_attribute_of_the_package_that_needs_no_import(load_sdk: Load) -> None:
    facts = load_sdk(nonce="_2")("rocm_sdk")._dist_info
    assert facts.PY_PACKAGE_SUFFIX_NONCE == "_2"
    assert facts.ALL_LIBRARIES["amdhip64"].dll_pattern == ""
