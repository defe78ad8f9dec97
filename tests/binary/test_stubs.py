"""Tests of `rocwheel.binary.stubs`."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import lief
import pefile
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.stubs import RELAY_SIZE, make_exec_stub, make_relay
from rocwheel.core.errors import InputError
from tests.support.example_counts import examples
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.support.tools import RunTool
    from tests.support.wine import Compiler, Wine


X86_64, AARCH64 = 62, 183
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


class Runner:
    """Starts stubs of one machine, under an emulator when they are not of this one."""

    def __init__(self, machine: int, emulator: str | None) -> None:
        self.machine = machine
        self.emulator = emulator

    def write(self, path: Path, target: str) -> Path:
        """Write a stub for ``target``."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make_exec_stub(self.machine, target))
        path.chmod(0o755)
        return path

    def run(
        self,
        stub: str | Path,
        *arguments: str,
        name: str | None = None,
        cwd: str | Path | int | None = None,
        env: Mapping[str, str] = ENVIRONMENT,
    ) -> subprocess.CompletedProcess[bytes]:
        """Start a stub as ``name``; ``cwd`` may be a descriptor."""
        argv = [str(stub) if name is None else name, *arguments]
        executable = str(stub)
        if self.emulator:
            argv = [self.emulator, "-0", argv[0], str(stub), *arguments]
            executable = self.emulator
        # A folder whose path is too long for the system can be entered only through a descriptor.
        enter = (lambda: os.fchdir(cwd)) if isinstance(cwd, int) else None
        folder = None if isinstance(cwd, int) else cwd
        return subprocess.run(
            argv, executable=executable, capture_output=True, cwd=folder, env=dict(env), preexec_fn=enter, check=False
        )


def make_runner(machine: int) -> Runner:
    if {"x86_64": X86_64, "aarch64": AARCH64}.get(platform.machine()) == machine:
        return Runner(machine, None)
    emulator = shutil.which({X86_64: "qemu-x86_64", AARCH64: "qemu-aarch64"}[machine])
    if emulator is None:
        pytest.skip("needs Debian's qemu-user to run stubs of another machine")
    return Runner(machine, emulator)


@pytest.fixture(params=[X86_64, AARCH64], ids=["x86_64", "aarch64"])
def runner(request: pytest.FixtureRequest) -> Runner:
    return make_runner(request.param)


@pytest.fixture
def short_tmp_path() -> Iterator[Path]:
    """Return a folder whose path is short, for tests that count its bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder).resolve()


def write_script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def copy_program(name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(f"/bin/{name}", target)


def test_the_program_gets_its_arguments_and_argv0_unchanged(runner: Runner, tmp_path: Path) -> None:
    copy_program("cat", tmp_path / "lib/llvm/bin/clang")
    stub = runner.write(tmp_path / "bin/amdclang++", "../lib/llvm/bin/clang")
    finished = runner.run(stub, "/proc/self/cmdline", name="a name of its own")
    assert finished.stdout == b"a name of its own\0/proc/self/cmdline\0"


def test_the_program_gets_its_environment_unchanged(runner: Runner, tmp_path: Path) -> None:
    copy_program("env", tmp_path / "env")
    stub = runner.write(tmp_path / "stub", "env")
    lines = runner.run(stub, env={"ROCM": "a b", "EMPTY": ""}).stdout.splitlines()
    assert sorted(lines) == [b"EMPTY=", b"ROCM=a b"]


def test_the_stub_returns_the_exit_status_of_the_program(runner: Runner, tmp_path: Path) -> None:
    write_script(tmp_path / "real", "exit 7")
    assert runner.run(runner.write(tmp_path / "stub", "real")).returncode == 7


def test_standard_input_reaches_the_program(runner: Runner, tmp_path: Path) -> None:
    copy_program("cat", tmp_path / "real")
    stub = runner.write(tmp_path / "stub", "real")
    command = [runner.emulator, str(stub)] if runner.emulator else [str(stub)]
    assert subprocess.run(command, input=b"through", capture_output=True, check=True).stdout == b"through"


def test_a_script_runs_from_its_own_folder(runner: Runner, tmp_path: Path) -> None:
    write_script(tmp_path / "libexec/rocm_smi/rocm_smi.sh", 'cat "$(dirname "$0")/neighbor"; echo "$@"')
    (tmp_path / "libexec/rocm_smi/neighbor").write_text("found ")
    stub = runner.write(tmp_path / "bin/rocm-smi", "../libexec/rocm_smi/rocm_smi.sh")
    assert runner.run(stub, "one", "two three").stdout == b"found one two three\n"


def test_a_stub_may_run_another_stub(runner: Runner, tmp_path: Path) -> None:
    if runner.emulator:
        pytest.skip("an emulated stub can't start a second one without binfmt_misc")
    write_script(tmp_path / "llvm/bin/clang-22", "echo reached")
    runner.write(tmp_path / "llvm/bin/clang", "clang-22")
    stub = runner.write(tmp_path / "bin/amdclang", "../llvm/bin/clang")
    assert runner.run(stub).stdout == b"reached\n"


def test_a_stub_found_through_the_path_variable_finds_its_target(tmp_path: Path) -> None:
    runner = make_runner({"x86_64": X86_64, "aarch64": AARCH64}[platform.machine()])
    write_script(tmp_path / "real", "echo reached")
    runner.write(tmp_path / "bin/tool", "../real")
    command = [sys.executable, "-c", "import os; os.execvp('tool', ['tool'])"]
    environment = {"PATH": f"/nowhere:{tmp_path / 'bin'}:/usr/bin:/bin"}
    assert subprocess.run(command, env=environment, capture_output=True, check=True).stdout == b"reached\n"


def test_a_stub_started_through_a_symlink_finds_its_target(runner: Runner, tmp_path: Path) -> None:
    write_script(tmp_path / "sdk/real", "echo reached")
    runner.write(tmp_path / "sdk/bin/tool", "../real")
    link = tmp_path / "elsewhere" / "tool"
    link.parent.mkdir()
    link.symlink_to("../sdk/bin/tool")
    assert runner.run(link).stdout == b"reached\n"


def test_a_stub_works_from_any_working_directory(runner: Runner, tmp_path: Path) -> None:
    write_script(tmp_path / "real", "pwd")
    runner.write(tmp_path / "bin/tool", "../real")
    assert runner.run("./tool", cwd=tmp_path / "bin").stdout == f"{tmp_path / 'bin'}\n".encode()
    assert runner.run(tmp_path / "bin/tool", cwd="/").stdout == b"/\n"


def test_spaces_and_non_latin_characters_in_paths_are_kept(runner: Runner, tmp_path: Path) -> None:
    write_script(tmp_path / "ein Ordner/größe 日本", "echo reached")
    stub = runner.write(tmp_path / "mit Leer zeichen/ß", "../ein Ordner/größe 日本")
    assert runner.run(stub).stdout == b"reached\n"


def test_bytes_that_are_not_utf8_are_kept_in_paths(runner: Runner, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    write_script(tmp_path / name, "echo reached")
    assert runner.run(runner.write(tmp_path / "stub", name)).stdout == b"reached\n"


@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=60))
@settings(max_examples=examples(25), deadline=None)
def test_a_target_with_any_name_runs(name: str) -> None:
    if name in {".", ".."}:
        return
    runner = make_runner({"x86_64": X86_64, "aarch64": AARCH64}[platform.machine()])
    with tempfile.TemporaryDirectory() as folder:
        write_script(Path(folder, "real", name), "echo reached")
        stub = runner.write(Path(folder, "bin/stub"), f"../real/{name}")
        assert runner.run(stub).stdout == b"reached\n"


def test_a_missing_target_is_reported_with_status_127(runner: Runner, tmp_path: Path) -> None:
    stub = runner.write(tmp_path / "tool", "../gone/real")
    finished = runner.run(stub, name="tool")
    assert finished.returncode == 127
    assert finished.stderr.decode() == f"tool: cannot run {tmp_path}/../gone/real: errno 2\n"


def test_a_target_that_is_not_executable_is_reported_with_status_126(runner: Runner, tmp_path: Path) -> None:
    write_script(tmp_path / "real", "echo never", mode=0o644)
    finished = runner.run(runner.write(tmp_path / "tool", "real"), name="tool")
    assert finished.returncode == 126
    assert finished.stderr.decode() == f"tool: cannot run {tmp_path}/real: errno 13\n"


def make_deep_folder(parent: Path, length: int) -> Path:
    """Return a folder below ``parent`` whose path is ``length`` bytes long."""
    folder = parent
    while (rest := length - len(str(folder))) > 0:
        # Never leave a rest of one: it could hold a slash, but no name after it.
        folder /= "d" * (rest - 1 if rest <= 200 else min(198, rest - 3))
    folder.mkdir(parents=True)
    return folder


def test_a_path_just_within_the_system_limit_runs(runner: Runner, short_tmp_path: Path) -> None:
    # "/" and "real" make 4095 bytes of it, the most that fit into PATH_MAX with the final NUL.
    folder = make_deep_folder(short_tmp_path, 4090)
    write_script(folder / "real", "echo reached")
    assert runner.run(runner.write(folder / "stub", "real")).stdout == b"reached\n"


def test_a_target_path_beyond_the_system_limit_is_reported(runner: Runner, short_tmp_path: Path) -> None:
    folder = make_deep_folder(short_tmp_path, 4090)
    target = "../" * 1364 + "x"
    finished = runner.run(runner.write(folder / "stub", target), name="tool")
    assert finished.returncode == 127
    assert finished.stderr.decode() == f"tool: cannot run {folder}/{target}: errno 36\n"


def test_a_stub_in_a_folder_beyond_the_system_limit_reports_an_error(short_tmp_path: Path) -> None:
    runner = make_runner({"x86_64": X86_64, "aarch64": AARCH64}[platform.machine()])
    stub = runner.write(short_tmp_path / "stub", "real")
    descriptor = os.open(make_deep_folder(short_tmp_path, 4000), os.O_RDONLY)
    os.mkdir("e" * 200, dir_fd=descriptor)
    inner = os.open("e" * 200, os.O_RDONLY, dir_fd=descriptor)
    os.link(stub, "stub", dst_dir_fd=inner)
    finished = runner.run("./stub", name="tool", cwd=inner)
    os.close(inner)
    os.close(descriptor)
    assert finished.returncode == 127
    assert finished.stderr == b"tool: cannot run real: errno 36\n"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        pytest.param("", "the target is empty", id="empty"),
        pytest.param("a\0b", "the target contains a NUL byte", id="nul"),
        pytest.param("/usr/bin/clang", "the target is absolute", id="absolute"),
        pytest.param("x" * 4095, "the target is 4095 bytes long, but Linux can open at most 4094 bytes", id="long"),
        pytest.param("ß" * 2048, "the target is 4096 bytes long, but Linux can open at most 4094 bytes", id="bytes"),
    ],
)
def test_a_target_that_no_link_could_have_is_refused(target: str, found: str) -> None:
    expected = f"exec stub for {target[:80]!r}: {found}; expected a path relative to the stub's folder"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        make_exec_stub(X86_64, target)


def test_a_machine_without_a_template_is_refused() -> None:
    with pytest.raises(InputError, match=r"^exec stub: no template for ELF machine 243; expected one of \[62, 183\]$"):
        make_exec_stub(243, "real")


@pytest.fixture(params=[X86_64, AARCH64], ids=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> int:
    machine: int = request.param
    return machine


@pytest.fixture
def stub(machine: int, tmp_path: Path) -> Path:
    path = tmp_path / "stub"
    path.write_bytes(make_exec_stub(machine, "../lib/llvm/bin/clang++"))
    return path


def test_a_stub_is_smaller_than_a_kilobyte(stub: Path) -> None:
    assert stub.stat().st_size < 1024


def test_a_stub_is_a_static_executable_without_an_executable_stack(stub: Path, machine: int) -> None:
    with stub.open("rb") as file:
        elf = ELFFile(file)
        segments = [(segment["p_type"], segment["p_flags"]) for segment in elf.iter_segments()]
        assert (elf["e_type"], elf.header["e_machine"]) == (
            "ET_EXEC",
            {X86_64: "EM_X86_64", AARCH64: "EM_AARCH64"}[machine],
        )
    assert segments == [("PT_LOAD", 5), ("PT_GNU_STACK", 6)]


def test_the_segment_of_a_stub_is_aligned_to_the_largest_page_size(stub: Path, machine: int) -> None:
    with stub.open("rb") as file:
        load = next(ELFFile(file).iter_segments())
        page = {X86_64: 0x1000, AARCH64: 0x10000}[machine]
        assert (load["p_align"], load["p_vaddr"] % page, load["p_offset"]) == (page, 0, 0)
        assert load["p_filesz"] == stub.stat().st_size


def test_elflint_reports_no_errors_in_a_stub(stub: Path) -> None:
    if not shutil.which("eu-elflint"):
        pytest.skip("needs Debian's elfutils")
    finished = subprocess.run(["eu-elflint", "--strict", stub], capture_output=True, text=True, check=False)
    assert finished.stdout == "No errors\n"


def test_readelf_reports_no_errors_in_a_stub(stub: Path) -> None:
    if not shutil.which("readelf"):
        pytest.skip("needs binutils")
    finished = subprocess.run(["readelf", "--all", "--wide", stub], capture_output=True, text=True, check=True)
    assert finished.stderr == ""


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_the_committed_stub_templates_match_their_sources(name: str, tmp_path: Path) -> None:
    if not any(shutil.which(f"llvm-mc-{release}") for release in (16, 15)):
        pytest.skip("needs Debian's llvm-16 or llvm-15")
    subprocess.run([sys.executable, ROOT / "scripts/build_exec_stubs.py", tmp_path], check=True)
    committed = ROOT / "src/rocwheel/binary/exec_stubs" / f"{name}.bin"
    assert (tmp_path / f"{name}.bin").read_bytes() == committed.read_bytes()


HERE = "which Windows doesn't allow in names"
LONGEST = "but Windows allows at most 255 in a name"
ENDS = "ends with a dot, which Windows removes from the name"
PROGRAMS = ROOT / "tests/support/programs"


def test_a_relay_is_five_kilobytes_and_imports_only_from_kernel32() -> None:
    relay = make_relay("clang.exe")
    facts = read_pe(relay, name="relay")
    assert (len(relay), RELAY_SIZE) == (5120, 5120)
    assert (facts.wanted, facts.is_dll, facts.header.subsystem) == (("KERNEL32.dll",), False, 3)


def test_a_relay_stores_its_target_and_arguments_in_a_section() -> None:
    pe = pefile.PE(data=make_relay("../lib/llvm/bin/größe.exe", ["--driver-mode=g++", "a b"]))
    (data,) = [section.get_data() for section in pe.sections if section.Name == b".relay\0\0"]
    assert data[:520].decode("utf-16-le").rstrip("\0") == "..\\lib\\llvm\\bin\\größe.exe"
    assert data[520:].decode("utf-16-le").rstrip("\0") == '--driver-mode=g++ "a b"'


def test_pefile_verifies_the_checksum_of_a_relay() -> None:
    for target in ("clang.exe", "../lib/llvm/bin/größe.exe"):
        pe = pefile.PE(data=make_relay(target))
        assert pe.verify_checksum()


def test_lief_finds_no_layout_faults_in_a_relay(tmp_path: Path) -> None:
    path = tmp_path / "relay.exe"
    path.write_bytes(make_relay("clang.exe"))
    binary = lief.PE.parse(str(path))
    assert binary is not None
    assert lief.PE.check_layout(binary) == (True, "")


def test_llvm_reports_no_errors_in_a_relay(run_tool: RunTool, tmp_path: Path) -> None:
    path = tmp_path / "relay.exe"
    path.write_bytes(make_relay("clang.exe"))
    text = run_tool(["llvm-readobj-16", "--file-headers", "--sections", "--coff-imports", path], is_silent=True)
    assert re.findall(r"Import \{\n  Name: (\S+)", text) == ["KERNEL32.dll"]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("", "the target is empty"),
        ("clang", "the target isn't a program"),
        ("clang.bat", "the target isn't a program"),
        ("/bin/clang.exe", "the target is absolute or has backslashes"),
        ("bin\\clang.exe", "the target is absolute or has backslashes"),
        ("C:/clang.exe", f"the target has the name 'C:', which has a colon, {HERE}"),
        ("a/../clang.exe", f"the target has the name '..', which {ENDS}"),
        ("a./clang.exe", f"the target has the name 'a.', which {ENDS}"),
        ("a\0b.exe", f"the target has the name 'a\\x00b.exe', which has a control character, {HERE}"),
        ("a//clang.exe", "the target has the name '', which is empty"),
        ("aux.exe", "the target has the name 'aux.exe', which is the name of the device AUX on Windows"),
        ("con/clang.exe", "the target has the name 'con', which is the name of the device CON on Windows"),
        ("\udc80.exe", "the target has the name '\\udc80.exe', which isn't UTF-8, but names on Windows are Unicode"),
        ("x" * 252 + ".exe", f"the target has the name {'x' * 80!r}, which has 256 characters, {LONGEST}"),
        ("x/" * 128 + ".exe", "the target has 260 UTF-16 units, more than 259"),
        ("😀/" * 85 + "a.exe", "the target has 260 UTF-16 units, more than 259"),
    ],
)
def test_a_relay_target_that_no_wheel_could_contain_is_refused(target: str, found: str) -> None:
    expected = "the path of an .exe file, relative to the relay's folder"
    with pytest.raises(InputError, match=f"^{re.escape(f'relay for {target[:80]!r}: {found}; expected {expected}')}$"):
        make_relay(target)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("a\nb", "an argument has a line break or a NUL"),
        ("x" * 252, "the command line of the arguments has 252 UTF-16 units, more than 251"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(argument: str, found: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"relay for 'a.exe': {found}; expected a few short arguments")):
        make_relay("a.exe", [argument])


def test_a_relay_can_store_a_target_and_arguments_of_the_maximum_length() -> None:
    assert len(make_relay("folder/" + "x" * 248 + ".exe", ["y" * 251])) == RELAY_SIZE


@pytest.mark.slow
def test_the_committed_relay_template_matches_its_source(compile_for_windows: Compiler, tmp_path: Path) -> None:
    release = subprocess.run([compile_for_windows.path, "-dumpfullversion"], capture_output=True, check=True).stdout
    if not release.startswith(b"12"):
        pytest.skip("needs Debian 12's gcc-mingw-w64-x86-64-win32")
    subprocess.run([sys.executable, ROOT / "scripts/build_relays.py", tmp_path], check=True)
    committed = ROOT / "src/rocwheel/binary/relays/x86_64.bin"
    assert (tmp_path / "x86_64.bin").read_bytes() == committed.read_bytes()


@pytest.fixture(scope="module")
def programs(compile_for_windows: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the tests start and what they start it with."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("show_arguments", "start_line", "end_relay", "wait_for_interrupt"):
        options = ["-municode"] if name == "show_arguments" else []
        compile_for_windows.program(PROGRAMS / f"{name}.c", folder / f"{name}.exe", *options)
    return folder


@pytest.fixture
def place(programs: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that puts a relay and the program that it starts into a folder, and returns the relay."""

    def put(relay: str, target: str, *arguments: str, program: str = "show_arguments") -> Path:
        path = tmp_path / "größe of it" / relay
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make_relay(target, arguments))
        aim = (path.parent / target).resolve()
        aim.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(programs / f"{program}.exe", aim)
        return path

    return put


@pytest.mark.slow
def test_the_program_gets_every_argument_unchanged(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("clang++.exe", "clang.exe")
    awkward = [
        "two words",
        'quo"te',
        "",
        "back\\",
        "two words\\",
        '\\"',
        "a\\\\b",
        "日本 語",
        "*",
        "%PATH%",
        "^&|<>",
        "37",
    ]
    done = wine.run(relay, *awkward)
    path, _, argv0, *arguments = done.stdout.decode().splitlines()
    assert (path, argv0) == (windows_path(relay.with_name("clang.exe")), windows_path(relay))
    assert (arguments, done.returncode, done.stderr) == (awkward, 37, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "clang++",
        "clang++   spaced\tout ",
        '"a b"c d "not closed',
        '"not closed either',
        'x"quoted in between"y z\\"',
        " begins with a blank",
    ],
)
def test_a_command_line_is_passed_on_unchanged(
    wine: Wine, place: Callable[..., Path], programs: Path, line: str
) -> None:
    relay = place("bin/clang++.exe", "clang.exe")
    variables = {"PROGRAM": windows_path(relay), "LINE": line}
    done = wine.run(programs / "start_line.exe", variables=variables)
    assert done.stdout.decode().splitlines()[1] == line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "passed_on"),
    [
        ("clang++ a.cpp", 'clang++ --driver-mode=g++ "x y" a.cpp'),
        ("clang++", 'clang++ --driver-mode=g++ "x y"'),
        ('"C:\\a b\\clang++.exe" "a b"', '"C:\\a b\\clang++.exe" --driver-mode=g++ "x y" "a b"'),
        ('a" b"c\td', 'a" b"c --driver-mode=g++ "x y"\td'),
    ],
)
def test_the_arguments_of_the_relay_come_after_argv0(
    wine: Wine, place: Callable[..., Path], programs: Path, line: str, passed_on: str
) -> None:
    relay = place("clang++.exe", "clang.exe", "--driver-mode=g++", "x y")
    variables = {"PROGRAM": windows_path(relay), "LINE": line}
    done = wine.run(programs / "start_line.exe", variables=variables)
    assert done.stdout.decode().splitlines()[1] == passed_on


@pytest.mark.slow
def test_a_command_line_of_the_maximum_length_is_passed_on(
    wine: Wine, place: Callable[..., Path], programs: Path
) -> None:
    relay = place("clang++.exe", "clang.exe")
    line = "clang++ " + "x" * (32766 - 8)
    variables = {"PROGRAM": windows_path(relay), "LINE": line}
    done = wine.run(programs / "start_line.exe", variables=variables)
    assert done.stdout.decode().splitlines()[1] == line


@pytest.mark.slow
def test_a_command_line_that_grows_too_long_is_an_error(wine: Wine, place: Callable[..., Path], programs: Path) -> None:
    relay = place("clang++.exe", "clang.exe", "--driver-mode=g++")
    variables = {"PROGRAM": windows_path(relay), "LINE": "clang++ " + "x" * (32766 - 8)}
    done = wine.run(programs / "start_line.exe", variables=variables)
    target = windows_path(relay.with_name("clang.exe"))
    assert (done.returncode, done.stderr.decode()) == (127, f"clang++.exe: cannot run {target}: error 206\r\n")


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 1, 255, 256, -1073741819])
def test_the_relay_returns_the_exit_code_of_the_program(
    wine: Wine, place: Callable[..., Path], programs: Path, code: int
) -> None:
    direct = wine.run(programs / "show_arguments.exe", str(code)).returncode
    assert wine.run(place("a.exe", "b.exe"), str(code)).returncode == direct


@pytest.mark.slow
def test_a_target_is_found_from_any_folder(wine: Wine, place: Callable[..., Path], tmp_path: Path) -> None:
    relay = place("bin/deep/amdclang.exe", "../../lib/llvm/bin/clang 22.exe")
    done = wine.run(relay, cwd=tmp_path)
    target = relay.parents[2] / "lib/llvm/bin/clang 22.exe"
    assert done.stdout.decode().splitlines()[0] == windows_path(target)


@pytest.mark.slow
def test_standard_input_reaches_the_program_behind_a_relay(wine: Wine, place: Callable[..., Path]) -> None:
    done = wine.run(place("a.exe", "b.exe"), "0", stdin=b"typed\n")
    assert done.stdout.decode().splitlines()[-1] == "typed"


@pytest.mark.slow
def test_a_relay_may_run_another_relay(wine: Wine, place: Callable[..., Path]) -> None:
    last = place("clang.exe", "clang-22.exe", "--inner")
    first = last.with_name("clang++.exe")
    first.write_bytes(make_relay("clang.exe", ["--outer"]))
    done = wine.run(first, "x", "7")
    assert done.stdout.decode().splitlines()[3:] == ["--inner", "--outer", "x", "7"]
    assert done.returncode == 7


@pytest.mark.slow
def test_a_missing_target_is_reported_by_name(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("bin/clang++.exe", "../gone/clang.exe")
    target = relay.parents[1] / "gone/clang.exe"
    target.unlink()
    done = wine.run(relay)
    expected = f"clang++.exe: cannot run {windows_path(target)}: error 2\r\n"
    assert (done.returncode, done.stderr.decode(), done.stdout) == (127, expected, b"")


@pytest.mark.slow
def test_a_target_that_is_not_a_program_is_reported_by_name(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("clang++.exe", "clang.exe")
    target = relay.with_name("clang.exe")
    target.write_bytes(b"not a program")
    done = wine.run(relay)
    assert done.stderr.decode() == f"clang++.exe: cannot run {windows_path(target)}: error 193\r\n"
    assert done.returncode == 127


@pytest.mark.slow
def test_the_program_ends_when_its_relay_ends(wine: Wine, place: Callable[..., Path], programs: Path) -> None:
    relay = place("a.exe", "b.exe", program="end_relay")
    done = wine.run(programs / "end_relay.exe", "parent", variables={"PROGRAM": windows_path(relay)})
    assert done.returncode == 0


@pytest.mark.slow
def test_ctrl_c_is_handled_by_the_program(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("a.exe", "b.exe", program="wait_for_interrupt")
    code, printed = wine.interrupt(relay, after="ready")
    assert (code, "ready" in printed) == (42, True)
