"""The commands of ``rocm-sdk``."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from . import _build_info
from ._files import DamagedFileError, read_field, read_json
from ._installing import installation_hint, reinstallation_hint
from ._output import in_one_line, printable
from ._packages import find_root, installed_devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return the exit status: 0 for success, 1 for failure, 2 for a usage error."""
    words = list(arguments)
    parser = argparse.ArgumentParser(
        prog="rocm-sdk",
        description="Finds, tests, and prepares the ROCm packages that are installed in this Python environment.",
        epilog='Example: cmake -DCMAKE_PREFIX_PATH="$(rocm-sdk path --cmake)" ...',
    )
    parser.add_argument("--version", action="version", version=_build_info.VERSION, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    _add_path(commands)
    init = commands.add_parser("init", help="expand the development files now instead of on first use")
    init.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    init.set_defaults(run=_init)

    test = commands.add_parser("test", help="test the installation")
    test.set_defaults(run=lambda _: import_module(f"{__package__}.tests").run_tests())
    _add_doctor(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=lambda _: _print(_build_info.VERSION))
    targets = commands.add_parser("targets", help="print the GPU targets that the packages support")
    targets.set_defaults(run=lambda _: _print_targets())
    options = parser.parse_args([*words[1:], "--help"] if words[:1] == ["help"] else words)
    try:
        return int(options.run(options))
    except (ModuleNotFoundError, RuntimeError, ValueError, OSError) as e:
        sys.stderr.write(f"rocm-sdk: error: {printable(str(e))}\n")
        return 1


def _add_path(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    path = commands.add_parser("path", help="print the locations of ROCm files")
    place = path.add_mutually_exclusive_group(required=True)
    place.add_argument("--root", action="store_const", dest="place", const="", help="print the prefix")
    place.add_argument(
        "--bin", action="store_const", dest="place", const="bin", help="print the folder with the programs"
    )
    place.add_argument(
        "--cmake", action="store_const", dest="place", const="lib/cmake", help="print the value for CMAKE_PREFIX_PATH"
    )
    path.set_defaults(run=_print_path)


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="check the packages, the GPUs, and access to the GPUs")
    doctor.add_argument("--require-gpu", action="store_true", help="fail if there is no GPU")
    doctor.add_argument("--deep", action="store_true", help="read every file and compare its hash with RECORD")
    doctor.add_argument(
        "--report", action="store_true", help="print the information that a bug report needs, ready to paste"
    )
    doctor.add_argument("--json", action="store_true", dest="as_json", help="print the findings or the report as JSON")
    doctor.set_defaults(run=_run_doctor)


def _print_path(options: argparse.Namespace) -> int:
    """Print a path without escape sequences, because programs read the output."""
    try:
        root = _devel_root()
    except ModuleNotFoundError:
        core = find_root("core")
        if core is None or options.place == "lib/cmake":
            raise
        root = core
    sys.stdout.write(f"{root / options.place}\n")
    return 0


def _init(options: argparse.Namespace) -> int:
    root = _devel_root(is_strict=True)
    restored = int(import_module(f"{__package__}._devel").restore_device_links())
    if restored and not options.quiet:
        _print(f"Restored {restored} {'link' if restored == 1 else 'links'} to files from device packages")
    if not options.quiet:
        _print(f"The ROCm development files are ready in {root}")
    return 0


def _devel_root(*, is_strict: bool = False) -> Path:
    root: Path = import_module(f"{__package__}._devel").get_devel_root(is_strict=is_strict)
    return root


def _run_doctor(options: argparse.Namespace) -> int:
    words = {name: value for name, value in vars(options).items() if name != "run"}
    return int(import_module(f"{__package__}._doctor").run_doctor(**words))


def _print_targets() -> int:
    """Print the targets of the distribution, then the targets that only device packages add."""
    core = find_root("core")
    if core is None:
        sys.stderr.write(f"rocm-sdk: error: the ROCm core is not installed. Install with: {installation_hint()}\n")
        return 1
    return _print(";".join(dict.fromkeys([*_read_built_targets(core), *installed_devices()])))


def _read_built_targets(core: Path) -> list[str]:
    path = core / "share" / "therock" / "dist_info.json"
    try:
        facts = read_json(path, dict, "an object")
        names = read_field(path, facts, "dist_amdgpu_targets", str) if "dist_amdgpu_targets" in facts else ""
    except FileNotFoundError:
        return []
    except DamagedFileError as e:
        msg = f"{e}. Reinstall: {reinstallation_hint()}"
        raise ValueError(msg) from e
    return [target for target in names.split(";") if target]


def _print(text: str) -> int:
    sys.stdout.write(f"{in_one_line(text)}\n")
    return 0
