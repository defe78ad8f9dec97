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
def test_without_a_gpu_the_family_is_the_installed_or_the_default_family(
    load: LoadDistInfo, installed: tuple[str, ...], default: str, family: str
) -> None:
    assert load(*installed, default=default).determine_target_family() == family


@pytest.mark.parametrize(
    ("installed", "family"),
    [(("gfx906", "gfx1030"), "gfx1030"), (("gfx906",), "gfx906"), ((), "gfx1030")],
    ids=["installed", "not installed", "nothing installed"],
)
def test_the_family_chosen_by_the_selector_comes_first(
    load: LoadDistInfo, installed: tuple[str, ...], family: str
) -> None:
    assert load(*installed, chosen=("gfx1030",)).determine_target_family() == family


def test_the_family_of_the_gpu_takes_precedence_over_the_installed_family(
    load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1030")
    assert load("gfx906").determine_target_family() == "gfx1030"


def test_a_gpu_missing_from_the_release_gets_the_installed_family(
    load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx942")
    assert load("gfx1030").determine_target_family() == "gfx1030"


def test_a_chosen_family_missing_from_the_release_is_an_error(
    load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_SDK_TARGET_FAMILY", "gfx999")
    with pytest.raises(ValueError, match=r"^ROCM_SDK_TARGET_FAMILY=gfx999: .* has no packages for gfx999 on linux"):
        load("gfx906").determine_target_family()


def test_asking_for_the_family_of_a_release_without_families_is_an_error(load: LoadDistInfo) -> None:
    with pytest.raises(ValueError, match=r"^ROCm 7\.2\.0 has no packages that depend on the GPU"):
        load(devices=()).determine_target_family()


def test_clearing_the_cached_family_determines_it_again(load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("gfx906")
    monkeypatch.setenv("ROCM_SDK_TARGET_FAMILY", "gfx1030")
    assert module.determine_target_family() == "gfx1030"
    monkeypatch.setenv("ROCM_SDK_TARGET_FAMILY", "gfx906")
    assert (module.determine_target_family(), module.CACHED_TARGET_FAMILY) == ("gfx1030", "gfx1030")
    monkeypatch.setattr(module, "CACHED_TARGET_FAMILY", None)
    assert module.determine_target_family() == "gfx906"


def test_a_family_set_by_a_script_is_returned(load: LoadDistInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("gfx906")
    monkeypatch.setattr(module, "CACHED_TARGET_FAMILY", "gfx1030")
    assert module.determine_target_family() == "gfx1030"


def test_family_package_names_contain_the_upstream_placeholder(load: LoadDistInfo) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030",)))
    libraries = load(families=families, nonce="_2").ALL_PACKAGES["libraries"]
    assert libraries.dist_package_template == "rocm-sdk-libraries-{target_family}"
    assert libraries.dist_package_template.format(target_family="gfx94X-dcgpu") == "rocm-sdk-libraries-gfx94X-dcgpu"
    assert libraries.pure_py_package_name == "rocm_sdk_libraries_{target_family}"
    assert libraries.is_target_specific


def test_package_facts_are_an_attribute_without_an_import(load_sdk: Load) -> None:
    facts = load_sdk(nonce="_2")("rocm_sdk")._dist_info
    assert facts.PY_PACKAGE_SUFFIX_NONCE == "_2"
    assert facts.ALL_LIBRARIES["amdhip64"].dll_pattern == ""
