"""``rocm-sdk doctor`` in environments with real packages, on machines made of files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.installed import read_only

if TYPE_CHECKING:
    from pathlib import Path

GPU = "simd_count 416\ngfx_target_version {version}\ndrm_render_minor 128\n"
DIAGNOSE = """
import json, os, pathlib
os.chdir("/usr/lib")
from rocm_sdk._doctor import diagnose
from rocm_sdk._system import System
system = System(pathlib.Path({root!r}), {environ!r}, "linux")
print(json.dumps(diagnose(system)[1]))
"""
REMOVE_SECOND = (
    "If it is not wanted, remove what installed it: dpkg --search /opt/rocm-6.4 || rpm --query --file /opt/rocm-6.4"
)
INSTALL_GFX1030 = 'pip install "rocm[device-gfx1030]==7.2.0"'
Make = Callable[..., Any]


@pytest.fixture
def diagnose(tmp_path: Path) -> Callable[..., list[list[str]]]:
    """Give a function that diagnoses an environment on a machine of GPUs (their versions), files and variables."""

    def run(
        environment: Any,
        *versions: int,
        files: tuple[str, ...] = (),
        texts: dict[str, str] | None = None,
        **environ: str,
    ) -> list[list[str]]:
        topology = "/sys/class/kfd/kfd/topology/nodes"
        machine = {f"{topology}/{node}/properties": GPU.format(version=v) for node, v in enumerate(versions)}
        machine |= {"/dev/kfd": "", "/dev/dri/renderD128": "", **dict.fromkeys(files, ""), **(texts or {})}
        root = tmp_path / "machine"
        for name, text in machine.items():
            path = root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        findings: list[list[str]] = json.loads(environment.evaluate(DIAGNOSE.format(root=str(root), environ=environ)))
        return findings

    return run


@pytest.fixture
def environment(make_set: Make, make_environment: Make) -> Any:
    """Give an environment with core, libraries and the code for gfx906; the release has gfx1030 too."""
    made = make_environment(make_set())
    made.install("rocm[libraries,device-gfx906]")
    return made


def test_nothing_is_wrong_when_every_gpu_has_its_package(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []


def test_a_gpu_without_its_package_comes_with_the_command_that_installs_it(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, 100300) == [
        [
            "error",
            "the package with the kernels for gfx1030 is not installed",
            'pip install "rocm[device-gfx1030]==7.2.0"',
        ]
    ]


def test_a_gpu_that_the_release_does_not_serve_is_told(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 110000) == [
        [
            "error",
            "ROCm 7.2.0, which has gfx906, gfx1030, has no packages for gfx1100",
            "pip index versions rocm lists other releases",
        ]
    ]


@pytest.mark.parametrize(
    ("versions", "level", "remedy"),
    [
        pytest.param((90006, 100306, 90006), "note", "export HIP_VISIBLE_DEVICES=0,2", id="beside others"),
        pytest.param((100306,), "warning", "pip index versions rocm lists other releases", id="alone"),
    ],
)
def test_an_integrated_gpu_without_packages_is_no_error(
    environment: Any, diagnose: Make, versions: tuple[int, ...], level: str, remedy: str
) -> None:
    assert diagnose(environment, *versions) == [
        [
            level,
            "ROCm 7.2.0, which has gfx906, gfx1030, has no packages for gfx1036, which is integrated",
            remedy,
        ]
    ]


def test_a_gpu_that_is_hidden_from_programs_needs_no_package(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, 110000, HIP_VISIBLE_DEVICES="0") == []
    assert len(diagnose(environment, 90006, 110000, HIP_VISIBLE_DEVICES="0,1")) == 1
    assert len(diagnose(environment, 90006, 110000, HIP_VISIBLE_DEVICES="GPU-1234")) == 1


@pytest.mark.parametrize(
    ("rocr", "hip", "lacking"),
    [
        pytest.param("1", "", ["gfx1100"], id="ROCR alone"),
        pytest.param("1,2", "1", ["gfx1030"], id="HIP counts what ROCR leaves"),
        pytest.param("", "-1", [], id="none"),
        pytest.param("", "0,-1,1", [], id="none after one that there is not"),
        pytest.param("", "0,7,1", [], id="none after a number that is too high"),
        pytest.param("1", "1", [], id="a number that ROCR took away"),
        pytest.param("0", "GPU-1234", [], id="UUIDs of what ROCR leaves"),
        pytest.param("", "", ["gfx1100", "gfx1030"], id="all"),
    ],
)
def test_gpus_that_variables_hide_need_no_package(
    environment: Any, diagnose: Make, rocr: str, hip: str, lacking: list[str]
) -> None:
    variables = {"ROCR_VISIBLE_DEVICES": rocr, "HIP_VISIBLE_DEVICES": hip}
    findings = diagnose(environment, 90006, 110000, 100300, **variables)
    assert [re.findall("for (gfx[0-9]+)", text)[0] for _, text, _ in findings] == lacking


@pytest.mark.parametrize(("hip", "count"), [("", 0), ("1", 1)], ids=["alone", "after HIP's own variable"])
def test_the_variable_of_cuda_hides_gpus_too(environment: Any, diagnose: Make, hip: str, count: int) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": hip}
    assert len(diagnose(environment, 90006, 110000, **variables)) == count


def test_the_way_around_gpus_that_the_release_does_not_serve_leads_to_those_that_it_does(
    environment: Any, diagnose: Make
) -> None:
    remedies = [remedy for _, _, remedy in diagnose(environment, 110000, 90006, 120000)]
    assert remedies == ["export HIP_VISIBLE_DEVICES=1"] * 2
    others = diagnose(environment, 110000, 90006, 120000, ROCR_VISIBLE_DEVICES="1,2")
    assert [remedy for _, _, remedy in others] == ["export HIP_VISIBLE_DEVICES=0"]
    assert {remedy for _, _, remedy in diagnose(environment, 110000, 120000)} == {
        "pip index versions rocm lists other releases"
    }


def test_beside_a_node_that_cannot_be_understood_no_number_of_a_gpu_is_told(environment: Any, diagnose: Make) -> None:
    remedies = {text: remedy for _, text, remedy in diagnose(environment, 90006, 1, 110000)}
    assert remedies["ROCm 7.2.0, which has gfx906, gfx1030, has no packages for gfx1100"] == (
        "Set HIP_VISIBLE_DEVICES to the numbers of gfx906 among the GPUs that rocminfo lists"
    )


def test_an_integrated_gpu_that_passes_for_another_hides_no_missing_package(environment: Any, diagnose: Make) -> None:
    findings = diagnose(environment, 100301, 100306, HSA_OVERRIDE_GFX_VERSION="10.3.0")
    assert ["error", "the package with the kernels for gfx1030 is not installed", INSTALL_GFX1030] in findings


def test_two_gpus_of_one_kind_are_told_once(environment: Any, diagnose: Make) -> None:
    assert len(diagnose(environment, 100300, 100300)) == 1


def test_libraries_that_shadow_those_of_the_packages_are_told(environment: Any, diagnose: Make) -> None:
    findings = diagnose(
        environment, 90006, files=("/usr/lib/old/libamdhip64.so.5",), LD_LIBRARY_PATH="/usr/lib/old:/usr/lib/none"
    )
    assert findings == [
        ["warning", "LD_LIBRARY_PATH puts /usr/lib/old first, which has libamdhip64.so.5", "unset LD_LIBRARY_PATH"]
    ]


@pytest.mark.parametrize(
    ("value", "library", "folder"),
    [
        pytest.param("old", "/usr/lib/old/libamdhip64.so.5", "/usr/lib/old", id="relative"),
        pytest.param("../old", "/usr/old/libamdhip64.so.5", "/usr/old", id="relative, upwards"),
        pytest.param("/nowhere:", "/usr/lib/libamdhip64.so.5", "/usr/lib", id="empty entry"),
        pytest.param("/nowhere;/old", "/old/libamdhip64.so.5", "/old", id="semicolon"),
    ],
)
def test_relative_folders_start_from_the_working_directory(
    environment: Any, diagnose: Make, value: str, library: str, folder: str
) -> None:
    text = f"LD_LIBRARY_PATH puts {folder} first, which has libamdhip64.so.5"
    findings = diagnose(environment, 90006, files=(library,), LD_LIBRARY_PATH=value)
    assert findings == [["warning", text, "unset LD_LIBRARY_PATH"]]


def test_a_loop_of_symlinks_is_no_folder(environment: Any, diagnose: Make, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    loop = str(tmp_path / "one")
    assert diagnose(environment, 90006, LD_LIBRARY_PATH=loop, ROCM_PATH=loop) == []


def test_the_second_rocm_of_compilers_is_told(environment: Any, diagnose: Make) -> None:
    findings = diagnose(environment, 90006, files=("/opt/old/lib/libamdhip64.so.5",), HIP_PATH="/opt/old")
    text = "HIP_PATH=/opt/old sends compilers and frameworks to a second ROCm"
    assert findings == [["warning", text, "unset HIP_PATH"]]


def test_an_empty_library_path_names_no_folder(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, files=("/usr/lib/libamdhip64.so.5",), LD_LIBRARY_PATH="") == []


def test_a_second_rocm_is_told(environment: Any, diagnose: Make) -> None:
    findings = diagnose(
        environment,
        90006,
        files=("/opt/rocm-6.4/lib/libamdhip64.so.6", "/opt/rocm-empty/lib/readme"),
        texts={"/etc/ld.so.conf.d/rocm.conf": "/opt/rocm-6.4/lib\n"},
        ROCM_PATH="/opt/rocm-6.4",
    )
    assert findings == [
        [
            "note",
            "there is a second ROCm in /opt/rocm-6.4, which these packages do not use",
            REMOVE_SECOND,
        ],
        [
            "warning",
            "ROCM_PATH=/opt/rocm-6.4 sends compilers and frameworks to a second ROCm",
            "unset ROCM_PATH",
        ],
        [
            "note",
            "/etc/ld.so.conf.d/rocm.conf lets every program find the libraries of a second ROCm",
            "If that is not wanted: sudo rm /etc/ld.so.conf.d/rocm.conf && sudo ldconfig",
        ],
    ]


def test_a_second_rocm_with_two_names_is_told_once(environment: Any, diagnose: Make, tmp_path: Path) -> None:
    folder = tmp_path / "machine/opt"
    folder.mkdir(parents=True)
    (folder / "rocm").symlink_to("rocm-6.4")
    findings = diagnose(environment, 90006, files=("/opt/rocm-6.4/lib/libamdhip64.so.6",))
    text = "there is a second ROCm in /opt/rocm-6.4, which these packages do not use"
    assert findings == [["note", text, REMOVE_SECOND]]


def test_the_loader_s_other_folders_are_no_second_rocm(environment: Any, diagnose: Make) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"
    configuration = {"/etc/ld.so.conf.d/x86_64-linux-gnu.conf": "/usr/lib/x86_64-linux-gnu\n"}
    assert diagnose(environment, 90006, files=(library,), texts=configuration) == []


def test_the_packages_themselves_are_no_second_rocm(environment: Any) -> None:
    environment.install("rocm[devel]", "--link-mode=copy")
    tree = environment.run("rocm-sdk", "path", "--root").stdout.strip()
    core = environment.site / "_rocm_sdk_core"
    by_link = environment.path / "lib64" / core.relative_to(environment.path / "lib")
    assert by_link.is_dir()
    for variables in (
        {"ROCM_PATH": tree, "HIP_PATH": str(core)},
        {"LD_LIBRARY_PATH": f"{tree}/lib:{core}/lib:{by_link}/lib"},
    ):
        done = environment.run("rocm-sdk", "doctor", "--json", check=False, **variables)
        levels = [finding["level"] for finding in json.loads(done.stdout)["findings"]]
        assert "warning" not in levels


def test_a_missing_core_comes_with_the_command_that_installs_it(environment: Any, diagnose: Make) -> None:
    environment.uninstall("rocm-sdk-core")
    assert diagnose(environment, 90006) == [["error", "the ROCm core is not installed", 'pip install "rocm==7.2.0"']]


def test_packages_of_different_releases_are_told(
    make_set: Make, make_environment: Make, environment: Any, diagnose: Make
) -> None:
    newer = make_set(version="7.3.0")
    environment.installer("install", "--no-index", "--no-deps", "--find-links", str(newer), "rocm-sdk-core==7.3.0")
    assert diagnose(environment, 90006) == [
        [
            "error",
            "rocm is of version 7.2.0, and rocm-sdk-core of 7.3.0",
            'pip install "rocm[device-gfx906,libraries]==7.2.0"',
        ]
    ]


def test_the_same_files_packed_again_are_of_the_same_release(make_set: Make, environment: Any, diagnose: Make) -> None:
    again = make_set(version="7.2.0.post1")
    environment.installer(
        "install", "--no-index", "--no-deps", "--find-links", str(again), "rocm-sdk-core==7.2.0.post1"
    )
    assert diagnose(environment, 90006) == []


def test_development_files_that_can_be_expanded_are_no_finding(environment: Any, diagnose: Make) -> None:
    environment.install("rocm[devel]")
    assert diagnose(environment, 90006) == []
    assert not environment.root.exists()


def test_development_files_in_a_read_only_environment_are_told(environment: Any) -> None:
    environment.install("rocm[devel]", "--link-mode=copy")
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/rocm-sdk"), "doctor", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    lock = environment.site / "rocm_sdk_devel/__init__.py"
    assert {
        "level": "error",
        "text": f"the development files are not expanded yet, and {lock} cannot be written: compilers and CMake fail",
        "remedy": "As a user who may write there: rocm-sdk init",
    } in json.loads(done.stdout)["findings"]
    assert done.returncode == 1


def test_a_development_tree_that_was_removed_by_hand_is_told(environment: Any, diagnose: Make) -> None:
    environment.install("rocm[devel]", "--link-mode=copy")
    environment.run("rocm-sdk", "init")
    shutil.rmtree(environment.root)
    (level, text, _), *others = diagnose(environment, 90006)
    assert (level, others) == ("error", [])
    assert text.startswith(f"{environment.root}: incomplete, and the archive it is made from is gone. Reinstall: ")


def test_libraries_of_another_family_are_told(make_set: Make, make_environment: Make, diagnose: Make) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030", "gfx1031")))
    environment = make_environment(make_set(families=families))
    environment.install("rocm[libraries]", ROCM_SDK_TARGET_FAMILY="gfx94X-dcgpu")
    assert diagnose(environment, 90402) == []
    assert diagnose(environment, 100301) == [
        [
            "error",
            "the package with the libraries for gfx1031 is not installed",
            'pip install "rocm[libraries-gfx103X-dgpu]==7.2.0"',
        ]
    ]


def test_a_choice_that_the_release_lacks_is_told(environment: Any, diagnose: Make) -> None:
    text = (
        "ROCM_SDK_TARGET_FAMILY=nope: ROCm 7.2.0 has no packages for nope on linux. Available: gfx906, gfx1030. "
        "Choose one of these, or unset the variable to have the GPU detected."
    )
    finding = ["error", text, "unset ROCM_SDK_TARGET_FAMILY"]
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="nope") == [finding]


def test_a_choice_that_is_not_installed_is_told(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="gfx906") == []
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="gfx906,gfx1030") == [
        [
            "error",
            (
                "gfx906, gfx1030 chosen by ROCM_SDK_TARGET_FAMILY=gfx906,gfx1030, but installed in "
                f"{environment.site} is device code for gfx906"
            ),
            'pip install --no-cache-dir --force-reinstall "rocm[device]==7.2.0"',
        ]
    ]


def test_a_choice_matters_to_those_alone_who_have_libraries(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    done = environment.run("rocm-sdk", "doctor", ROCM_SDK_TARGET_FAMILY="gfx906", LD_LIBRARY_PATH="")
    assert "chosen by" not in done.stdout


@pytest.mark.parametrize(
    ("choice", "text", "remedy"),
    [
        pytest.param(
            "nope",
            "ROCM_SDK_TARGET_FAMILY=nope: ROCm 7.2.0 has no packages for nope on linux. Available: gfx94X-dcgpu, "
            "gfx103X-dgpu. Choose one of these, or unset the variable to have the GPU detected.",
            "unset ROCM_SDK_TARGET_FAMILY",
            id="of no family",
        ),
        pytest.param(
            "gfx1031",
            "gfx103X-dgpu chosen by ROCM_SDK_TARGET_FAMILY=gfx1031, but installed in {site} is device code for "
            "gfx94X-dcgpu",
            'pip install --no-cache-dir --force-reinstall "rocm[libraries]==7.2.0"',
            id="of a family that is not installed",
        ),
    ],
)
def test_a_wrong_choice_among_libraries_by_family_is_a_finding_like_others(
    make_set: Make, make_environment: Make, choice: str, text: str, remedy: str
) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030", "gfx1031")))
    environment = make_environment(make_set(families=families))
    environment.install("rocm[libraries]", ROCM_SDK_TARGET_FAMILY="gfx94X-dcgpu")
    done = environment.run("rocm-sdk", "doctor", "--json", check=False, ROCM_SDK_TARGET_FAMILY=choice)
    finding = {"level": "error", "text": text.format(site=environment.site), "remedy": remedy}
    assert finding in json.loads(done.stdout)["findings"]
    assert (done.returncode, done.stderr) == (1, "")


def test_without_a_gpu_the_command_says_so_and_is_fine_unless_one_is_required(environment: Any) -> None:
    variables = {"ROCM_BOOTSTRAP_DISABLE_DETECTION": "1", "LD_LIBRARY_PATH": ""}
    done = environment.run("rocm-sdk", "doctor", **variables)
    assert "no AMD GPU was found" in done.stdout
    required = environment.run("rocm-sdk", "doctor", "--require-gpu", check=False, **variables)
    assert required.returncode == 1
    assert "error: a GPU is required, and none was found\n  lspci -d 1002: lists those of AMD\n" in required.stdout


def test_notes_alone_are_nothing_wrong_and_warnings_no_failure(environment: Any, tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so.5").touch()
    variables = {"ROCM_BOOTSTRAP_DISABLE_DETECTION": "1", "ROCM_PATH": "", "HIP_PATH": ""}
    done = environment.run("rocm-sdk", "doctor", **variables, LD_LIBRARY_PATH="")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Nothing is wrong.")
    warned = environment.run("rocm-sdk", "doctor", **variables, LD_LIBRARY_PATH=str(tmp_path))
    assert (warned.returncode, "Nothing is wrong." in warned.stdout) == (0, False)


def test_the_findings_as_json(environment: Any) -> None:
    done = environment.run("rocm-sdk", "doctor", "--json", check=False, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030")
    document = json.loads(done.stdout)
    assert document["schema"] == "rocm-sdk.doctor/1"
    assert [gpu["target"] for gpu in document["gpus"]] == ["gfx1030"]
    assert {
        "level": "error",
        "text": "the package with the kernels for gfx1030 is not installed",
        "remedy": 'pip install "rocm[device-gfx1030]==7.2.0"',
    } in document["findings"]


def test_a_variable_that_makes_no_sense_is_an_error(environment: Any) -> None:
    done = environment.run("rocm-sdk", "doctor", check=False, ROCM_TARGET_LST="/nowhere")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "error: ROCM_TARGET_LST=/nowhere: the file cannot be read; correct the variable or unset it\n"
    )
