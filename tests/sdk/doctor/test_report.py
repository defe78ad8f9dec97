"""``rocm-sdk doctor --report``: what a report of a bug needs, without what should not be published."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.installed import FROM_INDEX

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.slow

Load = Callable[..., Callable[[str], "ModuleType"]]
ON_GFX906 = {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx906", "LD_LIBRARY_PATH": "", "HSA_XNACK": "1"}
REPORT = """\
ROCm packages:
  rocm 7.2.0
  rocm-sdk-core 7.2.0
  rocm-sdk-libraries 7.2.0
  rocm-sdk-device-gfx906 7.2.0
Installation:
  folder: {site}
  layout: neutral
  installer: uv
Device packages:
  installed: gfx906
  chosen when installed: {chosen}
  chosen now: gfx906 chosen for the GPUs found: gfx906
System:
"""


def _report(environment: Any, *options: str, **environ: str) -> str:
    done = environment.run("rocm-sdk", "doctor", "--report", *options, check=False, **environ)
    assert done.stderr == ""
    text: str = done.stdout
    return text


def test_the_report_begins_with_the_installed_packages_and_the_choice(environment: Any) -> None:
    [chosen] = re.findall("EXPLANATION = '(.*)'", (environment.site / "rocm_sdk/_selection.py").read_text())
    expected = REPORT.format(site=environment.site, chosen=chosen)
    assert _report(environment, **ON_GFX906, HOME="/nowhere").startswith(expected)


def test_the_report_names_the_system_and_the_python_version(environment: Any) -> None:
    lines = _report(environment, **ON_GFX906).splitlines()
    for expected in (
        f"  platform: Linux {platform.machine()}",
        f"  kernel: {platform.release()}",
        f"  libc: {os.confstr('CS_GNU_LIBC_VERSION')}",
        f"  Python: CPython {platform.python_version()}",
    ):
        assert expected in lines


def test_the_report_lists_gpus_and_problems(environment: Any) -> None:
    text = _report(environment, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx906,gfx1030")
    assert "\nGPUs:\n  gfx906: node 0\n  gfx1030: node 1\n" in text
    assert (
        "\n  error: the package with the kernels for gfx1030 is not installed\n"
        f'    pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}\n' in text
    )


def test_the_report_lists_only_variables_relevant_to_rocm(environment: Any) -> None:
    text = _report(environment, **ON_GFX906, HIP_VISIBLE_DEVICES="0", ROCBLAS_TENSILE_LIBPATH="/k", EDITOR="vi")
    variables = text.partition("\nEnvironment variables:\n")[2].partition("Findings:\n")[0].splitlines()
    assert "  HIP_VISIBLE_DEVICES=0" in variables
    assert "  HSA_XNACK=1" in variables
    assert "  LD_LIBRARY_PATH=" in variables
    assert "  ROCM_BOOTSTRAP_FORCE_GFX_ARCH=gfx906" in variables
    assert "  ROCBLAS_TENSILE_LIBPATH=/k" in variables
    assert not {"EDITOR", "PATH", "HOME"} & {line.strip().partition("=")[0] for line in variables}


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        pytest.param("one\ntwo", "one\\ntwo", id="two lines"),
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="control character"),
        pytest.param("/opt/\udcff", "/opt/\\udcff", id="byte that is not text"),
    ],
)
def test_a_variable_with_any_bytes_is_printed_on_one_line(environment: Any, value: str, printed: str) -> None:
    assert f"\n  ROCM_NOTE={printed}\n" in _report(environment, **ON_GFX906, ROCM_NOTE=value)


def test_the_report_hides_the_home_folder_and_secrets(environment: Any) -> None:
    home = str(environment.path.parent)
    secret = {"ROCM_TOKEN": "s3cret", "ROCM_INDEX": "https://ada:s3cret@example.org/simple"}
    text = _report(environment, **ON_GFX906, **secret, HOME=home, ROCM_PATH=f"{home}/rocm")
    assert home not in text
    assert "s3cret" not in text
    assert f"  folder: ~/{environment.path.name}/lib/" in text
    assert "\n  ROCM_PATH=~/rocm\n" in text
    assert "\n  ROCM_TOKEN=***\n" in text
    assert "\n  ROCM_INDEX=https://***@example.org/simple\n" in text


def test_the_report_is_available_as_json(environment: Any) -> None:
    report = json.loads(_report(environment, "--json", **ON_GFX906, HOME="/nowhere"))
    assert list(report) == [
        *("schema", "packages", "installation", "device_packages", "system", "gpus", "environment", "findings")
    ]
    assert report["schema"] == "rocm-sdk.report/1"
    assert report["installation"] == {"folder": str(environment.site), "layout": "neutral", "installer": "uv"}
    assert report["device_packages"]["installed"] == ["gfx906"]
    assert [gpu["target"] for gpu in report["gpus"]] == ["gfx906"]
    assert report["environment"]["HSA_XNACK"] == "1"
    assert {"level", "text", "remedy"} == set(report["findings"][0])


def test_the_report_has_the_exit_status_of_the_doctor(environment: Any) -> None:
    status = environment.run(
        "rocm-sdk", "doctor", "--report", check=False, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030"
    ).returncode
    assert status == 1


def test_the_report_is_printed_without_core(environment: Any) -> None:
    environment.uninstall("rocm-sdk-core")
    text = _report(environment, **ON_GFX906)
    assert "rocm-sdk-core" not in text.partition("Installation:")[0]
    assert "\n  error: the ROCm core is not installed\n" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("/home/ada", "~", id="alone"),
        pytest.param("/home/ada/x:/opt/rocm:/home/ada", "~/x:/opt/rocm:~", id="in a list"),
        pytest.param("/home/adam/x", "/home/adam/x", id="another user's"),
        pytest.param("/mnt/home/ada/x", "/mnt/home/ada/x", id="another folder's end"),
        pytest.param({"path": ["/home/ada"], "node": 1}, {"path": ["~"], "node": 1}, id="inside of JSON"),
    ],
)
def test_the_home_folder_is_shortened_only_as_a_complete_path(load_sdk: Load, text: object, expected: object) -> None:
    modules = load_sdk()
    system = modules("rocm_sdk._system").System(environ={"HOME": "/home/ada/"})
    assert modules("rocm_sdk._doctor_report").shorten_home(system, text) == expected


@pytest.mark.parametrize("home", ["", "/", "relative"])
def test_an_invalid_home_folder_changes_nothing(load_sdk: Load, home: str) -> None:
    modules = load_sdk()
    system = modules("rocm_sdk._system").System(environ={"HOME": home})
    assert modules("rocm_sdk._doctor_report").shorten_home(system, "/opt/relative/rocm") == "/opt/relative/rocm"
