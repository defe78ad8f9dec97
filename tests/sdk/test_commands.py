"""The command ``rocm-sdk``: paths, versions, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sdk.installed import FROM_INDEX, run

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def core(make_set: MakeSet, make_environment: MakeEnvironment) -> Installed:
    environment = make_environment(make_set())
    environment.install("rocm")
    return environment


@pytest.fixture(scope="module")
def devel(make_set: MakeSet, make_environment: MakeEnvironment) -> Installed:
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    return environment


@pytest.mark.parametrize("option", ["--root", "--bin"])
def test_core_paths_are_known_without_devel(core: Installed, option: str) -> None:
    folder = {"--root": "_rocm_sdk_core", "--bin": "_rocm_sdk_core/bin"}[option]
    assert core.run("rocm-sdk", "path", option).stdout == f"{core.site}/{folder}\n"


def test_cmake_path_without_devel_says_what_to_install(core: Installed) -> None:
    done = core.run("rocm-sdk", "path", "--cmake", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "rocm-sdk: error: The ROCm development files are not installed. "
        f'Install with: pip install "rocm[devel]==7.2.0" {FROM_INDEX}\n'
    )


def test_init_without_devel_says_what_to_install(core: Installed) -> None:
    done = core.run("rocm-sdk", "init", check=False)
    assert (done.returncode, done.stderr.count("rocm[devel]")) == (1, 1)


@pytest.mark.parametrize(("option", "folder"), [("--root", ""), ("--bin", "/bin"), ("--cmake", "/lib/cmake")])
def test_paths_with_devel_are_in_its_tree(devel: Installed, option: str, folder: str) -> None:
    assert devel.run("rocm-sdk", "path", option).stdout == f"{devel.root}{folder}\n"


def test_init_prints_the_tree_unless_quiet(devel: Installed) -> None:
    assert devel.run("rocm-sdk", "init").stdout == f"The ROCm development files are ready in {devel.root}\n"
    for option in ("--quiet", "-q"):
        assert devel.run("rocm-sdk", "init", option).stdout == ""


def test_version_is_the_version_of_the_packages(core: Installed) -> None:
    assert core.run("rocm-sdk", "version").stdout == "7.2.0\n"
    assert core.run("python", "-m", "rocm_sdk", "version").stdout == "7.2.0\n"
    assert core.run("rocm-sdk", "--version").stdout == "7.2.0\n"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command(core: Installed, words: list[str]) -> None:
    printed = core.run("rocm-sdk", *words).stdout
    assert printed.startswith("usage: rocm-sdk ")
    listed = [line.split()[0] for line in printed.splitlines() if line.startswith("    ") and line[4] != " "]
    assert listed == ["path", "init", "test", "doctor", "version", "targets"]


def test_help_for_a_command_equals_its_help_option(core: Installed) -> None:
    assert core.run("rocm-sdk", "help", "doctor").stdout == core.run("rocm-sdk", "doctor", "--help").stdout


def test_version_is_printed_without_reading_metadata_or_options(core: Installed) -> None:
    show = "import atexit, sys; atexit.register(lambda: print(*sys.modules))"
    for word in ("version", "--version"):
        code = f"{show}; from rocm_sdk._cli import main; main([{word!r}])"
        modules = core.run("python", "-c", code).stdout.split()
        assert not {"argparse", "importlib.metadata", "json", "rocm_sdk._devel"} & set(modules)


def test_targets_are_those_of_the_build(core: Installed) -> None:
    assert core.run("rocm-sdk", "targets").stdout == "gfx906;gfx1030\n"


def test_targets_of_device_packages_from_other_sources_are_added(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[device-gfx906]", "--link-mode=copy")
    folder = environment.site / "_rocm_sdk_libraries/.devel_links"
    (folder / "gfx1201.json").write_text("{}")
    assert environment.run("rocm-sdk", "targets").stdout == "gfx906;gfx1030;gfx1201\n"


REINSTALL = f'pip install "rocm==7.2.0" --force-reinstall {FROM_INDEX}'


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "is not JSON (Expecting value: line 1 column 1 (char 0)); expected an object"),
        (b"\xff", "is not UTF-8 at byte 0; expected an object"),
        (b"[]", "contains []; expected an object"),
        (
            b'{"dist_amdgpu_targets": ["gfx906"]}',
            """has ["gfx906"] for 'dist_amdgpu_targets'; expected an object whose 'dist_amdgpu_targets' is a string""",
        ),
    ],
)
def test_damaged_build_facts_are_reported(
    make_set: MakeSet, make_environment: MakeEnvironment, data: bytes, found: str
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm", "--link-mode=copy")
    path = environment.site / "_rocm_sdk_core/share/therock/dist_info.json"
    path.write_bytes(data)
    done = environment.run("rocm-sdk", "targets", check=False)
    assert (done.returncode, done.stderr) == (1, f"rocm-sdk: error: {path}: {found}. Reinstall: {REINSTALL}\n")


@pytest.mark.parametrize("words", [[], ["path"], ["path", "--root", "--bin"], ["nonsense"]])
def test_wrong_usage_ends_with_status_2(core: Installed, words: list[str]) -> None:
    done = core.run("rocm-sdk", *words, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: rocm-sdk" in done.stderr


FULL = "rocm-sdk: error: the output: can't be written (No space left on device). Check the destination.\n"
COMMANDS = [
    "version",
    "--version",
    "--help",
    "targets",
    "path --root",
    "init",
    "doctor --json",
    "test",
    "doctor --help",
]


@pytest.mark.deep
@pytest.mark.parametrize(("words", "unbuffered"), [*((words, "") for words in COMMANDS), ("--help", "1")])
def test_unwritable_output_is_reported(devel: Installed, words: str, unbuffered: str) -> None:
    def end(outputs: str) -> tuple[int, str, str]:
        # The pipe is closed by the time of the command.
        script = f'exec 3> >(:); wait $!; "$0" {words} {outputs}'
        command = ["bash", "-c", script, str(devel.path / "bin/rocm-sdk")]
        done = run(command, check=False, environ={"PYTHONUNBUFFERED": unbuffered})
        return done.returncode, done.stdout, done.stderr

    status = end(">/dev/null")[0]
    assert end(">/dev/full") == (1, "", FULL)
    assert end(">/dev/full 2>&1") == (1, "", "")
    assert end(">&3") == (141, "", "")
    assert end(">&-") == end(">&- 2>&-") == (status, "", "")


def test_unwritable_messages_do_not_change_the_exit_status(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel]", "rocm-sdk-device-gfx906", "--link-mode=copy")
    [metadata] = environment.site.glob("rocm_sdk_device_gfx906-*.dist-info/METADATA")
    metadata.write_text(metadata.read_text().replace("Version: 7.2.0", "Version: 7.1.0"))
    for words, status in {"init": 0, "nonsense": 2, "init >/dev/full": 1}.items():
        for output, has_messages in {"&2": True, "/dev/full": False, "&-": False}.items():
            script = f'"$0" {words} 2>{output}'
            done = run(["sh", "-c", script, str(environment.path / "bin/rocm-sdk")], check=False)
            assert (done.returncode, done.stderr != "") == (status, has_messages)
