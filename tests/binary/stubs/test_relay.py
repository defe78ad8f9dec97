"""Relays: their bytes as others read them, and how they run in Wine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import lief
import pefile
import pytest

from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.stubs.relay import RELAY_SIZE, make_relay
from rocwheel.core.errors import InputError
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.tools import RunTool
    from tests.support.wine import Compiler, Wine

HERE = "which names on Windows can't have"
LONGEST = "and names on Windows at most 255"
ENDS = "ends with a dot, which Windows drops: the file gets another name"
PROGRAMS = ROOT / "tests/support/programs"


def test_a_relay_has_five_kilobytes_and_imports_from_kernel32_alone() -> None:
    relay = make_relay("clang.exe")
    facts = read_pe(relay, name="relay")
    assert (len(relay), RELAY_SIZE) == (5120, 5120)
    assert (facts.wanted, facts.is_dll, facts.header.subsystem) == (("KERNEL32.dll",), False, 3)


def test_a_relay_holds_its_target_and_arguments_in_a_section() -> None:
    pe = pefile.PE(data=make_relay("../lib/llvm/bin/größe.exe", ["--driver-mode=g++", "a b"]))
    (data,) = [section.get_data() for section in pe.sections if section.Name == b".relay\0\0"]
    assert data[:520].decode("utf-16-le").rstrip("\0") == "..\\lib\\llvm\\bin\\größe.exe"
    assert data[520:].decode("utf-16-le").rstrip("\0") == '--driver-mode=g++ "a b"'


def test_the_checksum_is_that_which_others_reckon() -> None:
    for target in ("clang.exe", "../lib/llvm/bin/größe.exe"):
        pe = pefile.PE(data=make_relay(target))
        assert pe.verify_checksum()


def test_lief_finds_an_image_without_fault(tmp_path: Path) -> None:
    path = tmp_path / "relay.exe"
    path.write_bytes(make_relay("clang.exe"))
    binary = lief.PE.parse(str(path))
    assert binary is not None
    assert lief.PE.check_layout(binary) == (True, "")


def test_llvm_reads_a_relay_without_complaint(run_tool: RunTool, tmp_path: Path) -> None:
    path = tmp_path / "relay.exe"
    path.write_bytes(make_relay("clang.exe"))
    text = run_tool(["llvm-readobj-16", "--file-headers", "--sections", "--coff-imports", path], is_silent=True)
    assert re.findall(r"Import \{\n  Name: (\S+)", text) == ["KERNEL32.dll"]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("", "the target is empty"),
        ("clang", "the target is no program"),
        ("clang.bat", "the target is no program"),
        ("/bin/clang.exe", "the target is absolute, or has backslashes"),
        ("bin\\clang.exe", "the target is absolute, or has backslashes"),
        ("C:/clang.exe", f"the target has the name 'C:', which has a colon, {HERE}"),
        ("a/../clang.exe", f"the target has the name '..', which {ENDS}"),
        ("a./clang.exe", f"the target has the name 'a.', which {ENDS}"),
        ("a\0b.exe", f"the target has the name 'a\\x00b.exe', which has a control character, {HERE}"),
        ("a//clang.exe", "the target has the name '', which is empty"),
        ("aux.exe", "the target has the name 'aux.exe', which is that of the device AUX on Windows"),
        ("con/clang.exe", "the target has the name 'con', which is that of the device CON on Windows"),
        ("\udc80.exe", "the target has the name '\\udc80.exe', which is not UTF-8, and names on Windows are Unicode"),
        ("x" * 252 + ".exe", f"the target has the name {'x' * 80!r}, which has 256 characters, {LONGEST}"),
        ("x/" * 128 + ".exe", "the target has 260 units of UTF-16, more than 259"),
        ("😀/" * 85 + "a.exe", "the target has 260 units of UTF-16, more than 259"),
    ],
)
def test_a_target_that_no_wheel_could_hold_is_refused(target: str, found: str) -> None:
    expected = "the path of an .exe file, relative to the folder of the relay"
    with pytest.raises(InputError, match=f"^{re.escape(f'relay for {target[:80]!r}: {found}; expected {expected}')}$"):
        make_relay(target)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("a\nb", "an argument has a line break or a NUL"),
        ("x" * 252, "the command line of the arguments has 252 units of UTF-16, more than 251"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(argument: str, found: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"relay for 'a.exe': {found}; expected a few short arguments")):
        make_relay("a.exe", [argument])


def test_a_target_and_arguments_may_fill_their_places() -> None:
    assert len(make_relay("folder/" + "x" * 248 + ".exe", ["y" * 251])) == RELAY_SIZE


@pytest.mark.slow
def test_the_template_is_what_its_source_compiles_to(compile_for_windows: Compiler, tmp_path: Path) -> None:
    release = subprocess.run([compile_for_windows.path, "-dumpfullversion"], capture_output=True, check=True).stdout
    if not release.startswith(b"12"):
        pytest.skip("needs Debian 12's gcc-mingw-w64-x86-64-win32")
    subprocess.run([sys.executable, ROOT / "scripts/build_relays.py", tmp_path], check=True)
    committed = ROOT / "src/rocwheel/binary/stubs/relays/x86_64.bin"
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
def test_the_program_gets_every_argument_as_it_was_given(wine: Wine, place: Callable[..., Path]) -> None:
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
def test_a_command_line_is_passed_on_byte_by_byte(
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
def test_arguments_of_the_relay_come_behind_argv0(
    wine: Wine, place: Callable[..., Path], programs: Path, line: str, passed_on: str
) -> None:
    relay = place("clang++.exe", "clang.exe", "--driver-mode=g++", "x y")
    variables = {"PROGRAM": windows_path(relay), "LINE": line}
    done = wine.run(programs / "start_line.exe", variables=variables)
    assert done.stdout.decode().splitlines()[1] == passed_on


@pytest.mark.slow
def test_a_command_line_of_the_longest_kind_is_passed_on(
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
def test_the_exit_code_is_that_of_the_program(
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
def test_standard_input_reaches_the_program(wine: Wine, place: Callable[..., Path]) -> None:
    done = wine.run(place("a.exe", "b.exe"), "0", stdin=b"typed\n")
    assert done.stdout.decode().splitlines()[-1] == "typed"


@pytest.mark.slow
def test_a_relay_may_lead_to_a_relay(wine: Wine, place: Callable[..., Path]) -> None:
    last = place("clang.exe", "clang-22.exe", "--inner")
    first = last.with_name("clang++.exe")
    first.write_bytes(make_relay("clang.exe", ["--outer"]))
    done = wine.run(first, "x", "7")
    assert done.stdout.decode().splitlines()[3:] == ["--inner", "--outer", "x", "7"]
    assert done.returncode == 7


@pytest.mark.slow
def test_a_missing_target_is_named(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("bin/clang++.exe", "../gone/clang.exe")
    target = relay.parents[1] / "gone/clang.exe"
    target.unlink()
    done = wine.run(relay)
    expected = f"clang++.exe: cannot run {windows_path(target)}: error 2\r\n"
    assert (done.returncode, done.stderr.decode(), done.stdout) == (127, expected, b"")


@pytest.mark.slow
def test_a_target_that_is_no_program_is_named(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("clang++.exe", "clang.exe")
    target = relay.with_name("clang.exe")
    target.write_bytes(b"not a program")
    done = wine.run(relay)
    assert done.stderr.decode() == f"clang++.exe: cannot run {windows_path(target)}: error 193\r\n"
    assert done.returncode == 127


@pytest.mark.slow
def test_the_program_ends_with_its_relay(wine: Wine, place: Callable[..., Path], programs: Path) -> None:
    relay = place("a.exe", "b.exe", program="end_relay")
    done = wine.run(programs / "end_relay.exe", "parent", variables={"PROGRAM": windows_path(relay)})
    assert done.returncode == 0


@pytest.mark.slow
def test_ctrl_c_is_left_to_the_program(wine: Wine, place: Callable[..., Path]) -> None:
    relay = place("a.exe", "b.exe", program="wait_for_interrupt")
    code, printed = wine.interrupt(relay, after="ready")
    assert (code, "ready" in printed) == (42, True)
