"""Tests of `rocwheel.frameworks.wheel_draft`."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from tests.frameworks.wheels import changed, jax_job, read_member, run_job

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64"),
]


def test_extension_modules_need_a_known_python(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run_job("plugin", outputs, tmp_path, sample_dist)
    assert str(caught.value) == (
        "jax_rocm7_plugin/_hybrid.so: is an extension module whose name has no Python version. "
        "Add --python-version, such as --python-version 3.12."
    )


def test_a_python_that_the_description_excludes_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run_job("plugin", outputs, tmp_path, sample_dist, python="3.9")
    assert str(caught.value).startswith("jax_rocm7_plugin/_hybrid.so: is for Python 3.9; expected one of >=3.11.")
    assert not list(tmp_path.glob("*.whl"))


def test_an_init_file_in_a_shared_namespace_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    description = changed("pjrt", texts={"jax_plugins/__init__.py": "", "jax_plugins/xla_rocm7/version.py": ""})
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, description=description)
    assert [str(problem) for problem in caught.value.problems] == [
        (
            "jax-rocm7-pjrt: has jax_plugins/__init__.py, but shares jax_plugins with other distributions. "
            "Remove this file, because it would shadow the namespace's other distributions."
        )
    ]


def test_two_files_with_the_same_destination_are_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    rows = [{"from": "python/__init__.py", "to": "x/"}, {"from": "__init__.py", "to": "x/__init__.py"}]
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, description=changed("pjrt", files=rows, **{"entry-points": {}}))
    origin = outputs / "pjrt/python/__init__.py"
    assert [str(problem) for problem in caught.value.problems] == [
        f"jax-rocm7-pjrt: puts two files at x/__init__.py: {origin} and {origin}; expected one file"
    ]


def test_an_entry_point_without_its_module_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    rows = [{"from": "pjrt_c_api_gpu_plugin.so", "to": "jax_plugins/xla_rocm7/"}]
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, description=changed("pjrt", files=rows))
    assert [str(problem) for problem in caught.value.problems] == [
        (
            "jax-rocm7-pjrt: has the entry point jax_plugins: xla_rocm7 = jax_plugins.xla_rocm7, but not its "
            "module; expected jax_plugins/xla_rocm7/__init__.py or jax_plugins/xla_rocm7.py in the wheel"
        )
    ]


def test_an_invalid_requirement_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match="jax-rocm7-pjrt: 'not a requirement!' is invalid"):
        run_job("pjrt", outputs, tmp_path, sample_dist, description=changed("pjrt", requires=["not a requirement!"]))


def test_an_output_name_that_does_not_match_the_tags_is_refused(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    job = jax_job("pjrt", outputs, tmp_path, sample_dist)
    wrong = tmp_path / "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_28_x86_64.whl"
    with pytest.raises(InputError) as caught:
        type(job)(job.source, job.description, job.values, job.build, output=wrong).run()
    assert str(caught.value).startswith(f"{wrong}: is not the wheel's name (platform: jax_plugins/xla_rocm7/")
    assert not wrong.exists()


@pytest.mark.parametrize(("text", "found"), [("", "isn't an ELF file"), ("not a library", "isn't an ELF file")])
def test_a_build_output_that_is_not_a_library_is_refused(
    text: str, found: str, outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    library = outputs / "pjrt/pjrt_c_api_gpu_plugin.so"
    library.write_text(text)
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)
    assert [str(problem) for problem in caught.value.problems] == [
        (
            f"{library}: {found}; expected a shared library for jax_plugins/xla_rocm7/xla_rocm_plugin.so. Build the "
            "library again."
        )
    ]
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(("option", "kind"), [("-c", "relocatable"), ("-pie", "executable")])
def test_an_object_file_or_program_is_refused_as_a_library(
    option: str, kind: str, outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    library = outputs / "pjrt/pjrt_c_api_gpu_plugin.so"
    command = ["gcc", option, "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input="int main(void) { return 0; }", text=True, check=True)
    with pytest.raises(ProblemsError, match=rf"is a different kind of ELF file \({kind}\); expected a shared library"):
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)


def test_two_license_files_of_the_same_name_are_both_included(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (outputs / "third_party" / name).mkdir(parents=True)
        (outputs / "third_party" / name / "NOTICE").write_text(name)
    description = changed("pjrt", **{"license-files": ["LICENSE", "third_party/*/NOTICE"]})
    report = run_job("pjrt", outputs, tmp_path / "dist", sample_dist, description=description)
    assert read_member(report.path, "licenses/third_party/a/NOTICE") == "a"
    assert "License-File: third_party/b/NOTICE\n" in read_member(report.path, "METADATA")


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        (
            "win_amd64",
            "is 'win_amd64', but the files are for Linux on x86_64; expected a tag such as manylinux_2_5_x86_64",
        ),
        (
            "manylinux_2_28_x86_64.manylinux_2_28_aarch64",
            "is 'manylinux_2_28_aarch64', but the files are for Linux on x86_64; expected a tag such as manylinux_2_5",
        ),
        ("any", "is 'any', but the files are for Linux on x86_64; expected a tag such as manylinux_2_5_x86_64"),
        ("../x y", "is '../x y'; expected a tag such as manylinux_2_28_x86_64, or several joined by dots"),
        (
            "manylinx_2_28_x86_64",
            "is 'manylinx_2_28_x86_64', which installers don't accept; expected a tag that installers accept",
        ),
    ],
)
def test_a_platform_tag_that_does_not_fit_the_files_is_refused(
    tag: str, text: str, outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist, platform_tag=tag)
    assert str(caught.value).startswith(f"--platform-tag: {text}")
    assert not (tmp_path / "dist").exists()


def test_files_for_a_machine_without_a_known_tag_need_a_platform_tag(outputs: Path, tmp_path: Path) -> None:
    library = outputs / "pjrt/pjrt_c_api_gpu_plugin.so"
    data = bytearray(library.read_bytes())
    data[18:20] = (258).to_bytes(2, "little")  # e_machine: LoongArch
    library.write_bytes(data)
    with pytest.raises(InputError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", verify=False)
    assert str(caught.value) == (
        f"{library}: is for a machine without a known platform tag (ELF machine 258). Specify --platform-tag."
    )
    report = run_job("pjrt", outputs, tmp_path / "dist", verify=False, platform_tag="linux_loongarch64")
    assert Path(report.path).name == "jax_rocm7_pjrt-0.12.0-py3-none-linux_loongarch64.whl"
    assert "Root-Is-Purelib: false\n" in read_member(report.path, "WHEEL")


def test_an_init_file_in_a_nested_namespace_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    description = changed("pjrt", namespaces=["jax_plugins.xla_rocm7"])
    with pytest.raises(
        ProblemsError, match=r"has jax_plugins/xla_rocm7/__init__\.py, but shares jax_plugins\.xla_rocm7"
    ):
        run_job("pjrt", outputs, tmp_path, sample_dist, description=description)
