"""Attacks on wheels that every command must refuse, each as a wheel with one thing wrong."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.wheels import make_wheel, members, pack_members, write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.command_line import Run

INFO = "demo-1.0rc1.dist-info"
RECORD = f"{INFO}/RECORD"
MODULE = b"print('good')\n"


def _hash(algorithm: str, data: bytes = MODULE) -> str:
    return base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()


ROWS = {
    "a wrong sha256": f"sha256={_hash('sha256', b'evil')}",
    "a wrong sha384": f"sha384={_hash('sha384', b'evil')}",
    "a wrong sha512": f"sha512={_hash('sha512', b'evil')}",
    "an unknown algorithm": f"sha999={_hash('sha256')}",
    "a name in capitals": f"SHA256={_hash('sha256')}",
    "md5": f"md5={_hash('md5')}",
    "sha1": f"sha1={_hash('sha1')}",
    "no algorithm": f"={_hash('sha256')}",
    "no hash": "",
}
REFUSING: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "audit": lambda wheel, _: ["audit", wheel, "--select", "record-wrong"],
    "verify": lambda wheel, _: ["verify", wheel],
    "index": lambda wheel, _: ["index", wheel.parent],
    "publish": lambda wheel, out: ["publish", wheel.parent, out],
    "repair --check": lambda wheel, _: ["repair", wheel, "--check"],
    "repair": lambda wheel, out: ["repair", wheel, "--output", out],
    "promote": lambda wheel, out: ["promote", wheel.parent, "--to", "1.0", "--output", out],
}


def _with_row(folder: Path, text: str) -> Path:
    """Return a wheel in whose RECORD the module's hash is another text."""
    wheel = make_wheel(folder, "demo", {"demo/__init__.py": MODULE}, version="1.0rc1", tag="py3-none-any")
    contents = members(wheel)
    contents[RECORD] = contents[RECORD].replace(f"sha256={_hash('sha256')}".encode(), text.encode())
    return pack_members(wheel, contents)


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("command", REFUSING)
def test_no_command_accepts_a_file_that_record_does_not_verify(
    run: Run, tmp_path: Path, command: str, text: str
) -> None:
    wheel, out = _with_row(tmp_path / "dist", text), tmp_path / "out"
    done = run(*REFUSING[command](wheel, out))
    assert done.status != 0, done.stdout
    assert "RECORD" in done.stdout + done.stderr or "has the sha" in done.stdout
    assert not list(out.rglob("*.whl"))


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
@pytest.mark.parametrize("command", [name for name in REFUSING if name != "repair --check"])
def test_every_hash_algorithm_in_the_format_is_accepted(run: Run, tmp_path: Path, command: str, algorithm: str) -> None:
    wheel = _with_row(tmp_path / "dist", f"{algorithm}={_hash(algorithm)}")
    done = run(*REFUSING[command](wheel, tmp_path / "out"))
    assert done.status == 0, done.stdout + done.stderr


DATA, OTHER = "demo-1.0rc1.data", "other-1.0.dist-info/METADATA"
COMMANDS = f"{INFO}/entry_points.txt"
WHEEL = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
LAYOUTS: dict[str, dict[str, bytes]] = {
    "a file that is also a folder": {"pkg": b"", "pkg/a.py": b""},
    "a file in .data that is also a folder": {f"{DATA}/purelib/demo": b""},
    "a second .dist-info": {OTHER: b""},
    "a file named like a .dist-info": {"other-1.0.dist-info": b""},
    "an unknown scheme": {f"{DATA}/foo/x": b""},
    "a file without a scheme": {f"{DATA}/x": b""},
    "a scheme that is a file": {f"{DATA}/scripts": b""},
    "a .data that is a file": {DATA: b""},
    "a subfolder of scripts": {f"{DATA}/scripts/sub/x": b"#!python\n"},
    ".data of another project": {"bar-9.data/purelib/x.py": b""},
    ".data of another version": {"demo-9.data/purelib/x.py": b""},
    ".data that is no data": {"x.data/readme": b""},
    "Wheel-Version 2.0": {f"{INFO}/WHEEL": WHEEL.replace(b"1.0", b"2.0")},
    "Wheel-Version 0.9": {f"{INFO}/WHEEL": WHEEL.replace(b"1.0", b"0.9")},
    "Wheel-Version 1": {f"{INFO}/WHEEL": WHEEL.replace(b"1.0", b"1")},
    "no Wheel-Version": {f"{INFO}/WHEEL": WHEEL.replace(b"Wheel-Version: 1.0\n", b"")},
    "an empty Wheel-Version": {f"{INFO}/WHEEL": WHEEL.replace(b" 1.0", b"")},
    "an empty line before Wheel-Version": {f"{INFO}/WHEEL": b"\n" + WHEEL},
    "a space before Wheel-Version": {f"{INFO}/WHEEL": b" " + WHEEL},
    "text before Wheel-Version": {f"{INFO}/WHEEL": b"garbage\n" + WHEEL},
    "a space behind Wheel-Version": {f"{INFO}/WHEEL": WHEEL.replace(b"Version:", b"Version :")},
    "a command that leads out": {COMMANDS: b"[console_scripts]\n../../x = demo:main\n"},
    "a command with an absolute path": {COMMANDS: b"[console_scripts]\n/tmp/abs = demo:main\n"},
    "a command in a folder": {COMMANDS: b"[console_scripts]\na/b = demo:main\n"},
    "a command with a space": {COMMANDS: b"[console_scripts]\na b = demo:main\n"},
    "a command twice": {COMMANDS: b"[console_scripts]\nx = demo:main\nx = demo:main\n"},
    "a group twice": {COMMANDS: b"[console_scripts]\nx = demo:main\n[console_scripts]\ny = demo:main\n"},
    "a default group": {COMMANDS: b"[DEFAULT]\ny = demo:main\n[console_scripts]\nx = demo:main\n"},
    "a command without a function": {COMMANDS: b"[console_scripts]\nx = demo\n"},
    "a command with a statement": {COMMANDS: b"[console_scripts]\nx = demo:main; import os\n"},
    "commands without a group": {COMMANDS: b"x = demo:main\n"},
}
"""Wheels that pip or uv refuses, or that they install differently."""
ALL_TAKE: dict[str, dict[str, bytes]] = {
    "another project's metadata in .data": {f"{DATA}/purelib/{OTHER}": b"Metadata-Version: 2.1\nName: other\n"},
    "metadata twice": {f"{DATA}/purelib/{INFO}/METADATA": b""},
}
"""Wheels that both install, but as something else than their metadata say."""
PLAIN: dict[str, dict[str, bytes]] = {
    "scripts, data and headers": {f"{DATA}/{name}/x": b"" for name in ("scripts", "data", "headers", "platlib")},
    "a deeper .data": {"demo/x.data/purelib/y.py": b""},
    "Wheel-Version 1.9": {f"{INFO}/WHEEL": WHEEL.replace(b"1.0", b"1.9")},
    "commands": {COMMANDS: b"[console_scripts]\nx = demo:main [extra]\n[gui_scripts]\ny-z.w = demo:main\n"},
}


def _with_layout(folder: Path, changes: dict[str, bytes]) -> Path:
    """Return a wheel with other members, of which all are right in RECORD."""
    files = {"demo/__init__.py": b"def main(): pass\n"}
    wheel = make_wheel(folder, "demo", files, version="1.0rc1", tag="py3-none-any")
    contents = members(wheel) | changes
    del contents[RECORD]
    return write_wheel(wheel, INFO, contents)


LAYOUT_REFUSING = REFUSING | {"audit": lambda wheel, _: ["audit", wheel]}
del LAYOUT_REFUSING["verify"]


@pytest.mark.parametrize("changes", [*LAYOUTS.values(), *ALL_TAKE.values()], ids=[*LAYOUTS, *ALL_TAKE])
@pytest.mark.parametrize("command", LAYOUT_REFUSING)
def test_no_command_accepts_wheels_that_installers_refuse_or_install_differently(
    run: Run, tmp_path: Path, command: str, changes: dict[str, bytes]
) -> None:
    wheel, out = _with_layout(tmp_path / "dist", changes), tmp_path / "out"
    done = run(*LAYOUT_REFUSING[command](wheel, out))
    assert done.status != 0, done.stdout
    assert not list(out.rglob("*.whl"))


@pytest.mark.parametrize("changes", PLAIN.values(), ids=PLAIN)
@pytest.mark.parametrize("command", ["index", "promote", "repair"])
def test_wheels_that_installers_install_identically_are_accepted(
    run: Run, tmp_path: Path, command: str, changes: dict[str, bytes]
) -> None:
    done = run(*LAYOUT_REFUSING[command](_with_layout(tmp_path / "dist", changes), tmp_path / "out"))
    assert done.status == 0, done.stdout + done.stderr


def _installed(command: list[str | Path], prefix: Path) -> dict[str, bytes] | None:
    """Return the installed files without what installers say of themselves, or `None` if the wheel is refused."""
    if subprocess.run([*command, "--prefix", prefix], capture_output=True, check=False).returncode:
        return None
    own = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"}
    files = {path.relative_to(prefix).as_posix(): path for path in prefix.rglob("*") if path.is_file()}
    # Commands are written differently, and only their names count.
    return {
        name: b"" if name.startswith("bin/") else path.read_bytes()
        for name, path in files.items()
        if (path.name not in own and "site-packages" in name) or name.startswith("bin/")
    }


@pytest.mark.corpus
@pytest.mark.parametrize("name", [*LAYOUTS, *ALL_TAKE, *PLAIN])
def test_pip_and_uv_refuse_or_differ_exactly_on_the_layouts_listed(tmp_path: Path, name: str) -> None:
    wheel = _with_layout(tmp_path / "dist", (LAYOUTS | ALL_TAKE | PLAIN)[name])
    options = ["--no-deps", "--no-index"]
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--ignore-installed",
        "--no-compile",
        wheel,
    ]
    uv: list[str | Path] = [
        Path(sys.executable).with_name("uv"),
        "pip",
        "install",
        *options,
        "--no-cache",
        "--python",
        sys.executable,
    ]
    by_pip, by_uv = _installed(pip, tmp_path / "pip"), _installed([*uv, wheel], tmp_path / "uv")
    assert (by_pip is None or by_uv is None or by_pip != by_uv) == (name in LAYOUTS)


def _command(target: str) -> bytes:
    return f"[console_scripts]\nx = {target}\n".encode()


def _scheme(name: str, path: str) -> str:
    return f"{name}-1.0.data/{path}"


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        ({"one-1.0.dist-info/entry_points.txt": _command("one:f")}, {}, False),
        (
            {"one-1.0.dist-info/entry_points.txt": _command("one:f")},
            {"two-1.0.dist-info/entry_points.txt": _command("two:f")},
            True,
        ),
        (
            {"one-1.0.dist-info/entry_points.txt": _command("one:f")},
            {_scheme("two", "scripts/x"): b"#!python\n"},
            True,
        ),
        ({"one-1.0.dist-info/entry_points.txt": _command("one:f")}, {_scheme("two", "data/bin/x"): b""}, True),
        ({_scheme("one", "scripts/x"): b"#!python\n"}, {_scheme("two", "data/bin/x"): b""}, True),
        (
            {"one-1.0.dist-info/entry_points.txt": _command("one:f"), _scheme("one", "scripts/x"): b"#!python\n"},
            {},
            True,
        ),
        ({"one-1.0.dist-info/entry_points.txt": _command("one:f") + b"[gui_scripts]\nx = one:g\n"}, {}, True),
        ({_scheme("one", "headers/x.h"): b"1"}, {_scheme("two", "data/include/x.h"): b"2"}, False),
        ({_scheme("one", "headers/x.h"): b"1", _scheme("one", "data/include/one/x.h"): b"2"}, {}, False),
    ],
    ids=[
        "one command",
        "two commands",
        "a command and a script",
        "a command and a program",
        "a script and a program",
        "a command and a script of a wheel",
        "two groups",
        "headers of two wheels",
        "headers of a wheel",
    ],
)
def test_programs_that_overwrite_each_other_on_install_are_reported(
    run: Run, tmp_path: Path, first: dict[str, bytes], second: dict[str, bytes], *, is_found: bool
) -> None:
    wheels = [
        make_wheel(tmp_path, name, {f"{name}/__init__.py": b"def f(): pass\ng = f\n", **files}, tag="py3-none-any")
        for name, files in (("one", first), ("two", second))
    ]
    done = run("audit", *wheels, "--select", "path-collision")
    assert (done.status == 1) == is_found, done.stdout
    assert ("bin/x" in done.stdout) == is_found
