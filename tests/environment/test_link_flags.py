"""Tests of `rocwheel.environment.link_flags`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.core.errors import InputError
from rocwheel.environment.link_flags import TOOLS, cmake_arguments, ldflags_setting, spell_run_path
from rocwheel.environment.read_tree import read_tree
from tests.support.bazel import STARTUP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.slow

ENTRIES = ("$ORIGIN/../_rocm_sdk_core/lib", "$ORIGIN")
VALUE = ":".join(ENTRIES)
LIBRARY_ENTRIES = ("$ORIGIN", "$ORIGIN/../../_rocm_sdk_core/lib")
"""Those of a library in a folder of its own in its package."""

SOURCES = {"lib.c": "int answer(void) { return 42; }\n"}


def run(folder: Path, *command: str | Path, **options: object) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr


def with_ld(folder: Path, text: str) -> Path:
    (folder / "options").write_text(text)
    run(folder, "gcc", "-c", "-fPIC", "lib.c")
    run(folder, "ld", "-shared", "-o", "lib.so", "lib.o", "@options")
    return folder / "lib.so"


def with_shell(folder: Path, text: str) -> Path:
    run(folder, "sh", "-c", f"gcc -shared -fPIC -o lib.so lib.c {text}")
    return folder / "lib.so"


def with_make(folder: Path, text: str) -> Path:
    rule = "lib.so: lib.c\n\tgcc -shared -fPIC -o $@ $< $(LDFLAGS)\n"
    (folder / "Makefile").write_text(f"{text}\n{rule}")
    run(folder, "make")
    return folder / "lib.so"


def with_cmake(folder: Path, text: str) -> Path:
    head = "cmake_minimum_required(VERSION 3.20)\nproject(demo C)\n"
    tail = "add_library(demo SHARED lib.c)\ninstall(TARGETS demo LIBRARY DESTINATION lib)\n"
    (folder / "CMakeLists.txt").write_text(f"{head}{text}\n{tail}")
    run(folder, "cmake", "-S", ".", "-B", "build")
    run(folder, "cmake", "--build", "build")
    run(folder, "cmake", "--install", "build", "--prefix", "installed")
    return folder / "installed/lib/libdemo.so"


def with_meson(folder: Path, text: str) -> Path:
    (folder / "meson.build").write_text(
        f"project('demo', 'c')\nshared_library('demo', 'lib.c', install: true,\n{text}\n)\n"
    )
    run(folder, "meson", "setup", "build", f"--prefix={folder}/installed", "--libdir=lib")
    run(folder, "meson", "install", "-C", "build")
    return folder / "installed/lib/libdemo.so"


def with_setuptools(folder: Path, text: str) -> Path:
    (folder / "setup.py").write_text(
        textwrap.dedent(
            f"""
            from setuptools import Extension, setup
            setup(name="demo", ext_modules=[Extension("demo", ["lib.c"], {text} export_symbols=["answer"])])
            """
        )
    )
    # Interpreters built on one machine carry a run path of theirs in LDSHARED.
    run(folder, sys.executable, "setup.py", "build_ext", "--inplace", env={**os.environ, "LDSHARED": "gcc -shared"})
    return next(folder.glob("demo*.so"))


def with_bazelrc(folder: Path, text: str) -> Path:
    return build_with_bazel(folder, bazelrc=text)


def with_build_file(folder: Path, text: str) -> Path:
    return build_with_bazel(folder, attributes=text)


def with_starlark(folder: Path, text: str) -> Path:
    (folder / "run_path.bzl").write_text(text + "\n")
    load = 'load(":run_path.bzl", "RUN_PATH_LINKOPTS")\n'
    return build_with_bazel(folder, attributes="linkopts = RUN_PATH_LINKOPTS,", head=load)


_FORWARDED = (
    ("rules_cc", "cc", "cc_binary cc_import cc_library cc_test cc_toolchain cc_toolchain_suite objc_library"),
    ("rules_java", "java", "java_binary java_import java_library java_plugin java_runtime java_test java_toolchain"),
)


def build_with_bazel(folder: Path, *, bazelrc: str = "", attributes: str = "", head: str = "") -> Path:
    # Bazel 4 asks for these two at the first C++ target; here they forward to its own rules.
    for repository, package, rules in _FORWARDED:
        target = folder / repository / package
        target.mkdir(parents=True)
        (folder / repository / "WORKSPACE").touch()
        (target / "BUILD").touch()
        (target / "defs.bzl").write_text("".join(f"{rule} = native.{rule}\n" for rule in rules.split()))
    local = "".join(f'local_repository(name = "{name}", path = "{name}")\n' for name, _, _ in _FORWARDED)
    (folder / "WORKSPACE").write_text(local)
    (folder / ".bazelrc").write_text(bazelrc + "\n")
    rule = f'cc_binary(name = "lib.so", srcs = ["lib.c"], linkshared = True, {attributes})\n'
    (folder / "BUILD").write_text(head + rule)
    startup = ("--batch", f"--output_user_root={folder}/output", *STARTUP)
    run(folder, "bazel", *startup, "build", "//:lib.so")
    return folder / "bazel-bin/lib.so"


def image_environment(folder: Path, text: str) -> dict[str, str]:
    """Do what a container engine does with the lines of a Dockerfile, and return the environment that they leave."""
    command, setting = text.replace("/etc/", f"{folder}/").split("\n")
    run(folder, "/bin/sh", "-c", command.removeprefix("RUN "))
    name, _, value = setting.removeprefix("ENV ").partition("=")
    assert "$" not in value
    assert "\\" not in value
    return {**os.environ, name: value.strip('"')}


def in_image_with_shell(folder: Path, environment: dict[str, str]) -> Path:
    run(folder, "sh", "-c", "gcc -shared -fPIC -o lib.so lib.c $LDFLAGS", env=environment)
    return folder / "lib.so"


def in_image_with_make(folder: Path, environment: dict[str, str]) -> Path:
    (folder / "Makefile").write_text("lib.so: lib.c\n\tgcc -shared -fPIC -o $@ $< $(LDFLAGS)\n")
    run(folder, "make", env=environment)
    return folder / "lib.so"


def in_image_with_cmake(folder: Path, environment: dict[str, str], generator: str = "Unix Makefiles") -> Path:
    head = "cmake_minimum_required(VERSION 3.20)\nproject(demo C)\nadd_library(demo SHARED lib.c)\n"
    (folder / "CMakeLists.txt").write_text(f"{head}install(TARGETS demo LIBRARY DESTINATION lib)\n")
    run(folder, "cmake", "-G", generator, "-S", ".", "-B", "build", env=environment)
    run(folder, "cmake", "--build", "build", env=environment)
    run(folder, "cmake", "--install", "build", "--prefix", "installed", env=environment)
    return folder / "installed/lib/libdemo.so"


def in_image_with_ninja(folder: Path, environment: dict[str, str]) -> Path:
    return in_image_with_cmake(folder, environment, "Ninja")


def in_image_with_meson(folder: Path, environment: dict[str, str]) -> Path:
    (folder / "meson.build").write_text("project('demo', 'c')\nshared_library('demo', 'lib.c')\n")
    run(folder, "meson", "setup", "build", env=environment)
    run(folder, "ninja", "-C", "build", env=environment)
    return folder / "build/libdemo.so"


@pytest.mark.parametrize(
    ("program", "build"),
    [
        ("sh", in_image_with_shell),
        ("make", in_image_with_make),
        ("cmake", in_image_with_cmake),
        ("ninja", in_image_with_ninja),
        ("meson", in_image_with_meson),
    ],
    ids=["sh", "make", "cmake and make", "cmake and ninja", "meson"],
)
def test_environment_variables_in_a_dockerfile_reach_the_linker_through_every_build_tool(
    tmp_path: Path, program: str, build: Callable[[Path, dict[str, str]], Path]
) -> None:
    if shutil.which(program) is None or shutil.which("gcc") is None:
        pytest.skip(f"needs {program} and gcc")
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    environment = image_environment(tmp_path, spell_run_path(ENTRIES, "dockerfile"))
    assert read_elf(build(tmp_path, environment).read_bytes(), name=program).runpath == VALUE


BUILDERS: dict[str, tuple[str, Callable[[Path, str], Path]]] = {
    "ld": ("ld", with_ld),
    "shell": ("gcc", with_shell),
    "make": ("make", with_make),
    "cmake": ("cmake", with_cmake),
    "meson": ("meson", with_meson),
    "python": ("gcc", with_setuptools),
    "bazelrc": ("bazel", with_bazelrc),
    "build": ("bazel", with_build_file),
    "starlark": ("bazel", with_starlark),
}


# Bazel takes ten seconds a run: its other forms carry the tag in the same words as the one that is run with both.
CASES = [
    (tool, tag)
    for tool, (program, _) in BUILDERS.items()
    for tag in RunpathTag
    if program != "bazel" or tool == "build" or tag is RunpathTag.RUNPATH
]


@pytest.mark.parametrize(("tool", "tag"), CASES, ids=lambda value: getattr(value, "name", value))
def test_each_build_tool_writes_the_exact_run_path(tmp_path: Path, tool: str, tag: RunpathTag) -> None:
    program, build = BUILDERS[tool]
    if shutil.which(program) is None or shutil.which("gcc") is None:
        pytest.skip(f"needs {program} and gcc")
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    elf = read_elf(build(tmp_path, spell_run_path(ENTRIES, tool, tag)).read_bytes(), name=tool)
    expected = (VALUE, None) if tag is RunpathTag.RPATH else (None, VALUE)
    assert (elf.rpath, elf.runpath) == expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("plain", "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN"),
        ("ld", "--enable-new-dtags -rpath=$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN"),
        ("shell", "-Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN'"),
        ("make", "LDFLAGS += -Wl,--enable-new-dtags '-Wl,-rpath,$$ORIGIN/../_rocm_sdk_core/lib:$$ORIGIN'"),
        (
            "dockerfile",
            (
                "RUN echo '--enable-new-dtags -rpath=$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN' > /etc/run-path.ld\n"
                'ENV LDFLAGS="-Wl,@/etc/run-path.ld"'
            ),
        ),
        (
            "build",
            'linkopts = ["-Wl,--enable-new-dtags", "-Wl,-rpath,$$ORIGIN/../_rocm_sdk_core/lib:$$ORIGIN"],',
        ),
    ],
    ids=lambda value: value.split()[0],
)
def test_spellings_match_what_users_paste(tool: str, expected: str) -> None:
    assert spell_run_path(ENTRIES, tool) == expected


def test_every_build_tool_is_tested() -> None:
    assert set(TOOLS) - set(BUILDERS) == {"plain", "dockerfile"}


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_printed_for_a_file_that_needs_no_run_path(tool: str) -> None:
    assert spell_run_path((), tool) == ""


def test_an_unknown_tool_is_refused_with_the_list_of_known_tools() -> None:
    with pytest.raises(InputError) as error:
        spell_run_path(ENTRIES, "scons")
    assert str(error.value) == (
        "--tool scons: 'scons' isn't a supported build tool; expected one of plain, ld, shell, make, cmake, "
        "meson, bazelrc, build, starlark, python, dockerfile"
    )


@pytest.mark.parametrize("entry", ["$ORIGIN/my lib", "$ORIGIN/a,b", "$ORIGIN/it's"])
def test_entries_that_some_build_tools_would_split_are_refused(entry: str) -> None:
    with pytest.raises(InputError, match=r"which some build tools don.t pass to the linker"):
        spell_run_path([entry], "plain")


def test_cmake_links_with_the_run_path_and_keeps_it_on_install(tmp_path: Path) -> None:
    if not shutil.which("cmake") or not shutil.which("g++"):
        pytest.skip("needs cmake and g++")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(x LANGUAGES CXX)\nadd_library(x SHARED x.cpp)\n"
        "install(TARGETS x DESTINATION .)\n"
    )
    (tmp_path / "x.cpp").write_text("int x;\n")
    arguments = cmake_arguments(LIBRARY_ENTRIES).strip()
    script = f"cmake -S . -B build {arguments} && cmake --build build && cmake --install build --prefix out"
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "build/libx.so").read_bytes() == (tmp_path / "out/libx.so").read_bytes()
    (file,) = read_tree([tmp_path / "out"]).loadable
    assert file.run_path == ":".join(LIBRARY_ENTRIES)


@pytest.mark.parametrize(("generator", "tool"), [("Ninja", "ninja"), ("Unix Makefiles", "make")])
def test_pytorch_cmake_settings_do_not_override_the_link_flags(generator: str, tool: str, tmp_path: Path) -> None:
    if not shutil.which("cmake") or not shutil.which("g++") or not shutil.which(tool):
        pytest.skip(f"needs cmake, g++ and {tool}")
    # cmake/Dependencies.cmake of PyTorch sets these as plain variables, which win over -D.
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(x LANGUAGES CXX)\n"
        'set(CMAKE_BUILD_WITH_INSTALL_RPATH FALSE)\nset(CMAKE_INSTALL_RPATH "$ORIGIN")\n'
        "set(CMAKE_INSTALL_RPATH_USE_LINK_PATH TRUE)\n"
        "add_library(x SHARED x.cpp)\ninstall(TARGETS x DESTINATION .)\n"
    )
    (tmp_path / "x.cpp").write_text("int x;\n")
    (tmp_path / "set.sh").write_text(f"export {ldflags_setting(LIBRARY_ENTRIES)}")
    script = '. ./set.sh && cmake -G "$0" -S . -B build && cmake --build build && cmake --install build --prefix out'
    subprocess.run(["sh", "-ec", script, generator], cwd=tmp_path, check=True, capture_output=True)
    (file,) = read_tree([tmp_path / "out"]).loadable
    assert file.run_path is not None
    assert set(file.run_path.split(":")) == set(LIBRARY_ENTRIES)


@pytest.mark.parametrize(
    ("attributes", "pc_flags", "expected"),
    [
        ("", "", None),
        ("install_rpath: '$ORIGIN/../_rocm_sdk_core/lib',", "", "$ORIGIN/../_rocm_sdk_core/lib"),
        (
            "install_rpath: '$ORIGIN/../_rocm_sdk_core/lib',",
            "-Wl,-rpath,{outside}",
            "$ORIGIN/../_rocm_sdk_core/lib:{outside}",
        ),
    ],
    ids=["no install_rpath", "install_rpath", "install_rpath and a pc file with a run path"],
)
def test_meson_leaves_the_folder_of_a_dependency_in_a_run_path_as_the_guide_says(
    tmp_path: Path, attributes: str, pc_flags: str, expected: str | None
) -> None:
    if None in map(shutil.which, ("meson", "gcc", "pkg-config")):
        pytest.skip("needs meson, gcc and pkg-config")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "hip.c").write_text("int hip(void) { return 1; }\n")
    run(tmp_path, "gcc", "-shared", "-fPIC", "hip.c", "-Wl,-soname,libhip.so.7", "-o", outside / "libhip.so")
    flags = pc_flags.format(outside=outside)
    (outside / "hip.pc").write_text(f"Name: hip\nDescription: hip\nVersion: 7\nLibs: -L{outside} -lhip {flags}\n")
    (tmp_path / "lib.c").write_text("int hip(void);\nint answer(void) { return hip(); }\n")
    (tmp_path / "meson.build").write_text(
        "project('demo', 'c')\n"
        f"shared_library('demo', 'lib.c', install: true, {attributes}\n"
        "link_args: ['-Wl,--enable-new-dtags'], dependencies: dependency('hip'))\n"
    )
    environment = os.environ | {"PKG_CONFIG_PATH": str(outside)}
    run(tmp_path, "meson", "setup", "build", f"--prefix={tmp_path}/installed", "--libdir=lib", env=environment)
    run(tmp_path, "meson", "install", "-C", "build", env=environment)
    elf = read_elf((tmp_path / "installed/lib/libdemo.so").read_bytes(), name="libdemo.so")
    assert elf.runpath == (expected and expected.format(outside=outside))
    in_build_folder = read_elf((tmp_path / "build/libdemo.so").read_bytes(), name="libdemo.so").runpath
    assert "/outside" in (in_build_folder or "")
