"""Tests of `rocwheel.build.planning.selector`."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rocwheel
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.plan import TextMember
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import load_recipe
from rocwheel.core.errors import InputError
from rocwheel.demo import SAMPLE_SDK
from tests.build.selectors import BLAS, CORE, build_info, literals, plan
from tests.build.trees import file_entry, make_catalog, make_facts

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_each_device_package_can_be_selected_or_requested_by_extra() -> None:
    info = build_info("gfx906", "gfx1030")
    assert info["FAMILIES"] == {
        "gfx906": {"targets": ["gfx906"], "platforms": ["linux"]},
        "gfx1030": {"targets": ["gfx1030"], "platforms": ["linux"]},
    }
    assert info["SELECTED"] == {"device": "rocm-sdk-device-{family}==7.2.0"}
    assert info["EXTRAS"]["device-gfx906"] == [["rocm-sdk-device-gfx906==7.2.0", ""]]
    assert info["EXTRAS"]["device-all"] == [
        ["rocm-sdk-device-gfx906==7.2.0", ""],
        ["rocm-sdk-device-gfx1030==7.2.0", ""],
    ]


def test_a_public_library_is_optional_only_if_the_sdk_lacks_the_library() -> None:
    hip = file_entry("lib/libamdhip64.so.7", "core-hip_lib_generic")
    made = make_plan(make_catalog(CORE, BLAS, hip), load_recipe(), make_facts(), PlanOptions())
    libraries = literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])["LIBRARIES"]
    assert libraries["amdhip64"] == {
        "package": "core",
        "directory": "lib",
        "pattern": "libamdhip64.so.*",
        "optional": False,
    }
    assert libraries["rccl"]["optional"]


def test_the_extra_of_a_target_without_a_package_fails_with_the_available_targets() -> None:
    extras = build_info("gfx906", "gfx1030")["EXTRAS"]
    assert extras["device-gfx942"] == [
        ["rocm-sdk-core==7.2.0+gfx942.is.not.in.this.release.which.has.gfx906.gfx1030", ""]
    ]
    assert extras["device-gfx906"] == [["rocm-sdk-device-gfx906==7.2.0", ""]]


def test_only_gpus_that_users_may_own_have_an_extra_that_fails() -> None:
    extras = set(build_info("gfx906", "gfx1030")["EXTRAS"])
    assert {"device-gfx803", "device-gfx90c", "device-gfx942", "device-gfx1036", "device-gfx1250"} <= extras
    others = ("gfx600", "gfx703", "gfx801", "gfx940", "gfx1154", "gfx1310")
    assert extras.isdisjoint(f"device-{name}" for name in others)
    assert len(extras) == 32


def test_the_device_extra_exists_even_without_device_packages() -> None:
    info = build_info()
    assert info["EXTRAS"] == {
        "libraries": [["rocm-sdk-libraries==7.2.0", ""]],
        "device": [],
        "device-all": [],
        "devel": [["rocm-sdk-devel==7.2.0", ""]],
    }
    assert info["SELECTED"] == {}


def test_in_a_per_family_layout_the_libraries_are_selected() -> None:
    info = build_info("gfx94X-dcgpu", kpack=False)
    assert info["LAYOUT"] == "per-family"
    assert info["FAMILIES"] == {"gfx94X-dcgpu": {"targets": ["gfx942"], "platforms": ["linux"]}}
    assert info["SELECTED"] == {"libraries": "rocm-sdk-libraries-{family}==7.2.0"}
    assert info["PACKAGES"]["libraries"] == {
        "dist": "rocm-sdk-libraries-{family}",
        "module": "rocm_sdk_libraries_{family}",
        "platform_module": "_rocm_sdk_libraries_{family}",
    }


RECIPE = Path(rocwheel.__file__).parent / "build/rocm.toml"


def test_the_sdist_has_no_build_requirements() -> None:
    files = plan("gfx906").sdists[0].files
    assert 'requires = []\nbuild-backend = "selector"\nbackend-path = ["src"]\n' in files["pyproject.toml"]
    assert "Dynamic: Requires-Dist\nDynamic: Provides-Extra\n" in files["PKG-INFO"]
    assert "src/selector/__init__.py" in files


def test_the_sdist_lists_its_requirements_in_requires_txt_like_setuptools() -> None:
    files = plan("gfx906").sdists[0].files
    assert files["src/rocm.egg-info/PKG-INFO"] == files["PKG-INFO"]
    assert files["src/rocm.egg-info/requires.txt"].startswith(
        "rocm-sdk-core==7.2.0\n\n[libraries]\nrocm-sdk-libraries==7.2.0\n\n"
        "[device-gfx906]\nrocm-sdk-device-gfx906==7.2.0\n\n[device-all]\nrocm-sdk-device-gfx906==7.2.0\n\n"
        "[device-gfx803]\nrocm-sdk-core==7.2.0+gfx803.is.not.in.this.release.which.has.gfx906\n"
    )


@pytest.fixture
def renamed_sdist(tmp_path: Path) -> Path:
    """Unpack the selector of a recipe that gives it another distribution and module name; return its folder."""
    recipe = tmp_path / "renamed.toml"
    text = RECIPE.read_text()
    text = text.replace(
        'distribution = "rocm"\nmodule = "rocm_sdk"', 'distribution = "My.ROCm-SDK"\nmodule = "my_rocm"'
    )
    recipe.write_text(text)
    BuildJob(PlanJob(SAMPLE_SDK, recipe), tmp_path).run()
    with tarfile.open(tmp_path / "dist/my_rocm_sdk-7.0.0.tar.gz") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "my_rocm_sdk-7.0.0"


def call_hook(source: Path, call: str) -> str:
    code = f"import selector; print(selector.{call})"
    environ = {"ROCM_SDK_TARGET_FAMILY": "gfx906"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=source / "src", env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_backend_uses_the_names_from_the_recipe(renamed_sdist: Path, tmp_path: Path) -> None:
    prepared = call_hook(renamed_sdist, f"prepare_metadata_for_build_wheel({str(tmp_path)!r})")
    wheel = call_hook(renamed_sdist, f"build_wheel({str(tmp_path)!r})")
    assert (prepared, wheel) == ("my_rocm_sdk-7.0.0.dist-info", "my_rocm_sdk-7.0.0-py3-none-any.whl")
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        assert archive.read(f"{prepared}/entry_points.txt") == b"[console_scripts]\nrocm-sdk = my_rocm._cli:main\n"
        assert {name.partition("/")[0] for name in archive.namelist()} == {"my_rocm", prepared}
        archive.extractall(tmp_path / "site")
    command = [sys.executable, "-m", "my_rocm", "version"]
    done = subprocess.run(command, cwd=tmp_path / "site", capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("7.0.0\n", "")


def test_a_renamed_sdist_rebuilt_from_itself_has_the_same_files(renamed_sdist: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    name = call_hook(renamed_sdist, f"build_sdist({str(tmp_path / 'again')!r})")
    with tarfile.open(tmp_path / "again" / name) as new, tarfile.open(tmp_path / "dist" / name) as old:
        assert sorted(new.getnames()) == sorted(old.getnames())


def test_programs_use_the_module_names_from_the_recipe(renamed_sdist: Path) -> None:
    (core,) = (renamed_sdist.parent / "dist").glob("rocm_sdk_core-*.whl")
    with zipfile.ZipFile(core) as archive:
        info = literals(archive.read("rocm_sdk_core/_build_info.py").decode())
    assert (info["SDK_MODULE"], info["DEVEL_PACKAGE"]) == ("my_rocm", "rocm_sdk_devel")


@pytest.mark.parametrize("form", ["sdist", "wheel"])
def test_the_selector_contains_its_license(sample_dist: Path, tmp_path: Path, form: str) -> None:
    if form == "sdist":
        with tarfile.open(sample_dist / "rocm-7.0.0.tar.gz") as archive:
            text = archive.extractfile("rocm-7.0.0/LICENSE").read()  # type: ignore[union-attr]
    else:
        BuildJob(PlanJob(SAMPLE_SDK, options=PlanOptions(selector="wheel")), tmp_path).run()
        with zipfile.ZipFile(tmp_path / "dist/rocm-7.0.0-py3-none-any.whl") as wheel:
            text = wheel.read("rocm-7.0.0.dist-info/licenses/LICENSE")
    assert text.startswith(b"MIT License\n")


def test_a_selector_wheel_selects_nothing_and_has_an_extra_for_every_target() -> None:
    made = plan("gfx906", "gfx1030", options=PlanOptions(selector="wheel"))
    assert made.sdists == ()
    wheel = next(wheel for wheel in made.wheels if wheel.package == "selector")
    assert wheel.name.file_name == "rocm-7.2.0-py3-none-any.whl"
    assert wheel.metadata.extras[:4] == ("libraries", "device-gfx906", "device-gfx1030", "device-all")
    assert {"devel", "device-gfx942"} < set(wheel.metadata.extras)
    assert "rocm-sdk-device-gfx906==7.2.0; extra == 'device-gfx906'" in wheel.metadata.requires
    assert wheel.console_scripts == {"rocm-sdk": "rocm_sdk._cli:main"}
    text = next(m.text for m in wheel.members if isinstance(m, TextMember) and m.path.endswith("_build_info.py"))
    assert literals(text)["SELECTED"] == {}


def families(files: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Return what each device package serves; ``files`` are "TARGET/PATH" with the targets of their code."""
    return {name: row["targets"] for name, row in _info(files)["FAMILIES"].items()}


def _info(files: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    entries = {}
    for text, targets in files.items():
        target, _, path = text.partition("/")
        entries[file_entry(path, f"blas_lib_{target}")] = targets
    catalog = make_catalog(CORE, BLAS, *entries, flags={"KPACK_SPLIT_ARTIFACTS": True})
    made = make_plan(catalog, load_recipe(), make_facts(targets=entries), PlanOptions())
    return literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])


GENERIC = {"gfx11-generic/.kpack/blas_gfx11-generic.kpack": ("gfx11-generic",)}


def test_generic_code_serves_each_gpu_of_its_kind_without_a_package() -> None:
    found = families({**GENERIC, "gfx1100/.kpack/blas_gfx1100.kpack": ("gfx1100",)})
    assert found["gfx11-generic"][0] == "gfx11-generic"
    assert {"gfx1101", "gfx1103", "gfx1151"} <= set(found["gfx11-generic"])
    assert "gfx1100" not in found["gfx11-generic"]
    assert found["gfx1100"] == ["gfx1100"]


def test_relabeled_code_serves_its_target_gpu() -> None:
    found = families({"gfx1030/lib/librocfft.so": ("gfx1030", "gfx1031")})
    assert found == {"gfx1030": ["gfx1030", "gfx1031"]}


def test_code_for_early_gfx1250_silicon_is_in_the_gfx1250_package() -> None:
    files = {
        "gfx1250/.kpack/blas_gfx1250.kpack": ("gfx1250",),
        "gfx1250-strict/.kpack/blas_gfx1250-strict.kpack": ("gfx1250-strict",),
    }
    assert families(files) == {"gfx1250": ["gfx1250", "gfx1250-strict"]}
    assert families({"gfx1250/.kpack/blas_gfx1250.kpack": ("gfx1250",)}) == {"gfx1250": ["gfx1250"]}


def test_a_gpu_is_not_served_if_one_file_lacks_code_for_the_gpu() -> None:
    found = families({"gfx1030/lib/a.so": ("gfx1030", "gfx1031"), "gfx1030/lib/b.so": ("gfx1030",)})
    assert found == {"gfx1030": ["gfx1030"]}


def test_kernel_files_serve_only_the_gpus_in_their_names() -> None:
    kernels = "lib/rocblas/library/Kernels.so-000"
    alone = families({f"gfx11-generic/{kernels}-gfx11-generic.hsaco": ("gfx11-generic",)})
    assert alone == {"gfx11-generic": ["gfx11-generic"]}
    both = {f"gfx1030/{kernels}-{name}.hsaco": (name,) for name in ("gfx1030", "gfx1031")}
    assert families(both) == {"gfx1030": ["gfx1030", "gfx1031"]}


def test_relabeled_code_is_preferred_over_generic_code() -> None:
    found = families(
        {
            "gfx10-3-generic/.kpack/b_gfx10-3-generic.kpack": ("gfx10-3-generic",),
            "gfx1030/lib/a.so": ("gfx1030", "gfx1031"),
        }
    )
    assert found["gfx1030"] == ["gfx1030", "gfx1031"]
    assert "gfx1032" in found["gfx10-3-generic"]
    assert "gfx1031" not in found["gfx10-3-generic"]


def test_the_extra_of_a_served_gpu_requires_the_package_that_serves_the_gpu() -> None:
    extras = _info(GENERIC)["EXTRAS"]
    assert extras["device-gfx1103"] == [["rocm-sdk-device-gfx11-generic==7.2.0", ""]]
    assert extras["device-all"] == [["rocm-sdk-device-gfx11-generic==7.2.0", ""]]
    assert "is.not.in.this.release" in extras["device-gfx942"][0][0]


def test_the_first_of_several_targets_is_not_the_default() -> None:
    assert build_info("gfx906", "gfx1030")["DEFAULT_FAMILY"] == ""


def test_a_single_target_is_the_default() -> None:
    assert build_info("gfx906")["DEFAULT_FAMILY"] == "gfx906"


def test_an_explicitly_chosen_default_is_written() -> None:
    made = plan("gfx906", "gfx1030", options=PlanOptions(default_family="gfx1030"))
    assert literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])["DEFAULT_FAMILY"] == "gfx1030"


def test_a_default_without_packages_is_refused() -> None:
    expected = "--default-family: 'gfx942' has no packages; expected one of gfx906, gfx1030"
    with pytest.raises(InputError, match=re.escape(expected)):
        plan("gfx906", "gfx1030", options=PlanOptions(default_family="gfx942"))
