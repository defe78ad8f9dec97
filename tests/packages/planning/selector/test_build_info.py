"""What the selector writes down for those who install it."""

from __future__ import annotations

from rocwheel.packages.planning.make_plan import make_plan
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.recipe.load import load_recipe
from tests.packages.selectors import BLAS, CORE, build_info, literals
from tests.packages.trees import file_entry, make_catalog, make_facts


def test_each_device_package_can_be_selected_and_asked_for() -> None:
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


def test_a_public_library_is_optional_only_where_the_sdk_lacks_it() -> None:
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


def test_asking_for_a_known_target_without_package_is_refused_with_those_that_have_one() -> None:
    extras = build_info("gfx906", "gfx1030")["EXTRAS"]
    assert extras["device-gfx942"] == [
        ["rocm-sdk-core==7.2.0+gfx942.is.not.in.this.release.which.has.gfx906.gfx1030", ""]
    ]
    assert extras["device-gfx906"] == [["rocm-sdk-device-gfx906==7.2.0", ""]]


def test_only_gpus_that_people_own_are_refused_by_name() -> None:
    extras = set(build_info("gfx906", "gfx1030")["EXTRAS"])
    assert {"device-gfx803", "device-gfx90c", "device-gfx942", "device-gfx1036", "device-gfx1250"} <= extras
    others = ("gfx600", "gfx703", "gfx801", "gfx940", "gfx1154", "gfx1310")
    assert extras.isdisjoint(f"device-{name}" for name in others)
    assert len(extras) == 32


def test_frameworks_may_ask_for_device_where_no_device_package_exists() -> None:
    info = build_info()
    assert info["EXTRAS"] == {
        "libraries": [["rocm-sdk-libraries==7.2.0", ""]],
        "device": [],
        "device-all": [],
        "devel": [["rocm-sdk-devel==7.2.0", ""]],
    }
    assert info["SELECTED"] == {}


def test_in_a_layout_per_family_the_libraries_are_selected() -> None:
    info = build_info("gfx94X-dcgpu", kpack=False)
    assert info["LAYOUT"] == "per-family"
    assert info["FAMILIES"] == {"gfx94X-dcgpu": {"targets": ["gfx942"], "platforms": ["linux"]}}
    assert info["SELECTED"] == {"libraries": "rocm-sdk-libraries-{family}==7.2.0"}
    assert info["PACKAGES"]["libraries"] == {
        "dist": "rocm-sdk-libraries-{family}",
        "module": "rocm_sdk_libraries_{family}",
        "platform_module": "_rocm_sdk_libraries_{family}",
    }
