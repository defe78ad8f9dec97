"""``rocwheel device``: options and text that several commands for device code share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from rich.filesize import decimal

from rocwheel.binary.bundles.compressed import HIGHEST_LEVEL
from rocwheel.binary.bundles.runtimes import first_reader, parse_rocm
from rocwheel.binary.bundles.storage import Storage
from rocwheel.cli.app import Group, app
from rocwheel.cli.options import JsonOption, Output, QuietOption, VerboseOption, shared
from rocwheel.cli.output import messages, print_json, print_line, report_warning, setup_logging
from rocwheel.cli.parameters import FolderToMake, argument, option, regular_file, regular_place, regular_places
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import worker_count
from rocwheel.core.writing import check_place
from rocwheel.device.edit_bundles import BundleEdit, Prune
from rocwheel.device.edit_file import RewriteOrder, RewriteReport, rewrite_device_code
from rocwheel.device.edit_tree import edit_tree
from rocwheel.device.edit_wheel import rewrite_wheel
from rocwheel.device.inspection import add_up_targets, summarize_targets
from rocwheel.wheels.binaries import is_given_wheel
from rocwheel.wheels.file_names import name_and_version
from rocwheel.wheels.sdist import SourceDate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.device.device_facts import BundleFacts, DeviceFacts, KpackFacts
    from rocwheel.device.edit_file import RewriteReport
    from rocwheel.device.edit_tree import TreeEdit
    from rocwheel.device.edit_wheel import WheelRewriteReport
    from rocwheel.device.kernels import CodeKernels, KernelFacts
    from rocwheel.device.make_bundle import MadeBundle
    from rocwheel.device.split.splitting import LackingCode


device_app = Group("device", help="List, edit, split, and join device code.")
app.add_command(device_app)


KERNEL_HEADINGS = (
    "bundle",
    "target",
    "kernel",
    "VGPRs",
    "AGPRs",
    "SGPRs",
    "spilled",
    "LDS",
    "scratch",
    "wavefront",
    "workgroup",
)
"""The headings for the rows from `kernel_rows`. Numbers begin in the fourth column."""


def container_line(device: DeviceFacts) -> str:
    """Return the container of a file's code, the number of bundles, and their sizes in the file and decompressed."""
    if device.kpack:
        lead = _kpack_lead(device, device.kpack)
        return f"{lead}, {_sizes(device)}" if device.kpack.archives else lead
    number = len(device.bundles)
    bundles = count(number, "bundle")
    lead = bundles if device.container == "bundles" else device.container + (f", {bundles}" if number else "")
    wrappers = f", {count(device.wrappers, 'wrapper')}" if device.wrappers not in {0, number} else ""
    return f"{lead}{wrappers}, {_sizes(device)}{_readers(device)}"


def _readers(device: DeviceFacts) -> str:
    """Return the ROCm releases that can read all compressed bundles, or an empty string without such bundles."""
    since = {first_reader(bundle.version) for bundle in device.bundles if bundle.version}
    if not since:
        return ""
    return ", which no ROCm release can read" if "" in since else f", for ROCm {max(since, key=parse_rocm)} and later"


def _kpack_lead(device: DeviceFacts, kpack: KpackFacts) -> str:
    if kpack.wrappers:
        archives = count(len(kpack.archives), "kpack archive") if kpack.archives else "kpack archives elsewhere"
        return f"{device.container}, {count(device.wrappers, 'wrapper')}, its code in {archives}"
    [archive] = kpack.archives
    codes = f"{count(archive.code_objects, 'code object')} under {count(len(kpack.keys), 'key')}"
    return f"{device.container} {archive.group}, {archive.scheme}, {codes}".replace("  ", " ")


def _sizes(device: DeviceFacts) -> str:
    raw = f" ({decimal(device.raw_size)} decompressed)" if device.raw_size != device.size else ""
    return f"{decimal(device.size)}{raw}"


def kpack_lines(kpack: KpackFacts) -> Iterator[str]:
    """Yield a line for each wrapper in a split library, with its lookup key, and for each archive that was found."""
    for wrapper in kpack.wrappers:
        yield f"wrapper at {wrapper.offset:#x}: {wrapper.key} in {' or '.join(wrapper.search_paths)}"
    for archive in kpack.archives if kpack.wrappers else ():
        yield f"{archive.path}: {archive.scheme}, {', '.join(archive.targets)}"


def bundle_line(bundle: BundleFacts) -> str:
    """Return the number, location, format, and sizes of a bundle."""
    kind = f"compressed, version {bundle.version}, {bundle.method}" if bundle.version else "plain"
    return f"bundle {bundle.number} at {bundle.offset:#x}: {kind}, {bundle.size} bytes, {bundle.raw_size} decompressed"


def entry_lines(device: DeviceFacts) -> Iterator[str]:
    """Yield a line for every entry, with its size and ID, after a line for its bundle.

    Entries without a bundle come last.
    """
    for bundle in device.bundles:
        yield bundle_line(bundle)
        for host in bundle.hosts:
            yield f"  {host.size:>12}  {host.id} (host)"
        for entry in bundle.entries:
            yield f"  {entry.size:>12}  {entry.id}"
    if device.kpack:
        yield from kpack_lines(device.kpack)
    for entry in device.entries:
        yield f"  {entry.size:>12}  {f'{entry.id} {entry.target}'.lstrip()}"


def target_rows(*files: DeviceFacts) -> Iterator[tuple[str, str, str, str, str, str]]:
    """For each target, yield the size, size in the file, kernels, bundles, and number of bundles without the target.

    For several files, these are sums, and the last number is 0.
    """
    for target in summarize_targets(files[0]) if len(files) == 1 else add_up_targets(files):
        stored = "?" if target.stored_size is None else decimal(target.stored_size)
        kernels = "?" if target.kernels is None else str(target.kernels)
        yield target.target, decimal(target.size), stored, kernels, str(target.bundles), str(target.missing or "")


def kernel_files_line(folder: str, files: Sequence[DeviceFacts], unreadable: int = 0) -> str:
    """Return a line with the number of kernel files in a folder, and their sizes on disk and decompressed."""
    size, raw = sum(device.size for device in files), sum(device.raw_size for device in files)
    decompressed = f" ({decimal(raw)} decompressed)" if raw != size else ""
    others = f"; {count(unreadable, 'other file')} can't be read" if unreadable else ""
    return f"{folder}: {count(len(files), 'kernel file')} with device code, {decimal(size)}{decompressed}{others}"


def kernel_rows(codes: Iterable[CodeKernels]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kernel: its bundle, target, and name, and the registers and memory that it uses."""
    for code in codes:
        bundle = "-" if code.bundle is None else str(code.bundle)
        for kernel in code.kernels:
            yield bundle, code.target, kernel.name, *map(_known, _resources(kernel))


def _resources(kernel: KernelFacts) -> tuple[int | str | None, ...]:
    spills = [spills for spills in (kernel.vgpr_spills, kernel.sgpr_spills) if spills is not None]
    # More than the declared size, because of recursion or calls through pointers.
    scratch = f"{_known(kernel.scratch)}+" if kernel.has_dynamic_stack else kernel.scratch
    spilled = sum(spills) if spills else None
    registers = (kernel.vgprs, kernel.agprs, kernel.sgprs, spilled)
    return *registers, kernel.lds, scratch, kernel.wavefront, kernel.max_workgroup


def _known(value: int | str | None) -> str:
    return "-" if value is None else str(value)


def rewrite_line(report: RewriteReport, output: Path) -> str:
    """Return a line about the changes to a file."""
    if not report.bundles:
        return f"{output}: a code object, {'now for another target' if report.changed else 'unchanged'}"
    unit = "code object" if report.is_archive else "bundle"
    sizes = f"{decimal(report.size_before)} -> {decimal(report.size_after)} of device code"
    return f"{output}: {report.changed} of {count(report.bundles, unit)} changed, {sizes}"


def made_line(made: MadeBundle) -> str:
    """Return a line about a new bundle."""
    kind = f"compressed, version {made.version}" if made.version else "plain"
    raw = f" ({decimal(made.raw_size)} decompressed)" if made.version else ""
    return f"{made.path}: {kind}, {decimal(made.size)}{raw}, for {', '.join(made.targets)}"


def many_files_line(report: TreeEdit | WheelRewriteReport, output: Path) -> str:
    """Return a line about the changes to a folder or a wheel."""
    saved = sum(edited.size_before - edited.size_after for edited in report.edited)
    change = f"{decimal(saved)} saved" if saved >= 0 else f"{decimal(-saved)} more"
    dropped, edited, copied = len(report.dropped), len(report.edited), report.copied
    parts = [f"{count(dropped, 'file')} left out"] if dropped else []
    parts += [f"device code in {count(edited, 'file')} edited ({change})"] if edited else []
    parts += [f"{count(copied, 'file')} copied"] if copied else []
    return f"{output}: {', '.join(parts) or 'no files'}"


def zeros_line(path: str, size: int) -> str:
    """Return a line about the space that was freed in a library by removing code."""
    return f"still contains {decimal(size)} of zeros instead of its code: {path}"


def disk_change(number: int, before: int, after: int) -> str:
    """Return the disk space of libraries before and after splitting, or an empty string if there are no libraries."""
    return f", on disk {decimal(before)} -> {decimal(after)}" if number else ""


def split_libraries(number: int, left_out: int) -> str:
    """Return the number of split libraries and of omitted files."""
    split = f"{count(number, 'library', 'libraries') if number else 'no library'} split"
    return f"{split}, {count(left_out, 'file')} left out" if left_out else split


def share_line(place: Path | str, archives: int, files: int, size: int | None) -> str:
    """Return a line about a target's share: archives, other files, and the total size if it is known."""
    parts = [count(archives, "archive")] if archives else []
    parts += [count(files, "other file" if archives else "file")] if files else []
    parts += [] if size is None else [decimal(size)]
    return f"{place}: {', '.join(parts)}"


def lacking_line(lacking: LackingCode) -> str:
    """Return the files that have no code for a requested target."""
    return f"no code for {lacking.target} in {', '.join(lacking.paths)}"


def _code_argument(metavar: str, text: str, *, dir_okay: bool = False) -> Any:
    """Return the argument for a file with device code. With ``dir_okay``, it can also be a folder with such files."""
    return argument(metavar=metavar, help=text, check=regular_place if dir_okay else regular_file)


SourceArgument = Annotated[
    Path,
    _code_argument(
        "PATH",
        "A fat binary, a bundle file, an object file, a static library, a kpack archive, a wheel, or a folder.",
        dir_okay=True,
    ),
]
CodesArgument = Annotated[
    list[Path],
    argument(
        metavar="PATH",
        help="Fat binaries, bundles, code objects, object files, static libraries, wheels, or folders.",
        check=regular_places,
    ),
]
PathArgument = Annotated[
    Path,
    _code_argument("PATH", "A fat binary, a bundle file, a kpack archive, a wheel, or a folder.", dir_okay=True),
]
LimitOption = Annotated[
    int,
    shared("--limit", min=1),
]
ForceOption = Annotated[bool, shared("--force")]
GIB = 1 << 30
"""The unit of ``--limit``, in bytes."""


def _place_to_write(output: Path) -> Path:
    check_place(output)
    return output


OutputOption = Annotated[
    Path,
    shared(
        "--output",
        "Write the result to this file or folder. An existing file is replaced.",
        metavar="OUTPUT",
        check=_place_to_write,
    ),
]
RocmOption = Annotated[
    str,
    shared("--rocm"),
]
LevelOption = Annotated[
    int, option("--level", metavar="N", min=1, max=HIGHEST_LEVEL, help="Compress at this zstd level.")
]
JobsOption = Annotated[int, shared("--jobs", min=0)]
TrimOption = Annotated[
    bool,
    option("--trim", help="Remove the freed space from shared libraries, object files, and static libraries."),
]


class Rewriting(Output, frozen=True, kw_only=True):
    """Options for rewriting device code and for the output."""

    trim: bool
    jobs: int

    def rewrite(self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage) -> int:
        """Write a file or wheel with edited device code, print a report, and return the number of changes."""
        reports = (self._rewrite_wheel if is_given_wheel(file) else self._rewrite_file)(file, output, edit, storage)
        if not self.quiet:
            _print_remarks(reports)
        return sum(report.changed for report in reports)

    def rewrite_folder(self, folder: Path, output: Path, edit: Prune | None, storage: Storage) -> None:
        """Write a folder with edited device code to ``output``, and print a report.

        Raises the same errors as `edit_tree`.
        """
        report = edit_tree(folder, output, edit, storage, trim=self.trim, jobs=self.jobs, progress=self.progress)
        if self.json:
            print_json("device-prune" if edit else "device-compress", 1, report)
        elif not self.quiet:
            for dropped in report.dropped if self.verbose else ():
                print_line(f"left out: {dropped}")
            print_line(many_files_line(report, output))
        if not self.quiet:
            _print_remarks(report.edited)
        for warning in () if self.quiet else report.warnings:
            report_warning(warning)

    def _rewrite_file(
        self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage
    ) -> tuple[RewriteReport, ...]:
        if output.is_dir() or isinstance(output, FolderToMake):
            raise InputError(output, "is a folder", expected="an output file", remedy="Change --output.")
        report = rewrite_device_code(
            file, output, edit, storage, trim=self.trim, jobs=self.jobs, progress=self.progress
        )
        if self.json:
            print_json("device-rewrite", 1, {**msgspec.to_builtins(report), "output": str(output)})
        elif not self.quiet:
            print_line(rewrite_line(report, output))
        return (report,)

    def _rewrite_wheel(
        self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage
    ) -> tuple[RewriteReport, ...]:
        target = wheel_output(file, output)
        order = RewriteOrder(edit=edit, storage=storage, trim=self.trim, jobs=self.jobs, progress=self.progress)
        report = rewrite_wheel(file, target, order, SourceDate.from_environment(os.environ))
        if self.json:
            print_json("device-rewrite-wheel", 1, {**msgspec.to_builtins(report), "output": str(target)})
        elif not self.quiet:
            for name in report.dropped if self.verbose else ():
                print_line(f"left out: {name}")
            print_line(many_files_line(report, target))
        for warning in () if self.quiet else report.warnings:
            report_warning(warning)
        return report.edited


def wheel_output(wheel: Path, output: Path) -> Path:
    """Return the path for the edited ``wheel``: the file ``output``, or a file with the wheel's name in that folder.

    A nonexistent path without a file extension is a folder to create. Raises `InputError` for a file name that
    would belong to another distribution, because installers reject such a wheel.
    """
    if output.is_dir() or not (output.suffix or output.exists()):
        return output / wheel.name
    own, new = name_and_version(wheel.name), name_and_version(output.name)
    if output.suffix != ".whl" or own != new:
        expected = f"a folder, or a name that begins with {'-'.join(own)} and ends with .whl"
        raise InputError(output, f"the edited {wheel.name} can't have this name", expected=expected)
    return output


def read_rewriting(
    trim: TrimOption = False,
    jobs: JobsOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Rewriting:
    """Return the options that all commands for rewriting share, and set up the logging."""
    setup_logging(quiet=quiet, verbose=verbose)
    return Rewriting(trim=trim, jobs=worker_count(jobs), json=json, quiet=quiet, verbose=verbose)


def read_storage(rocm: RocmOption = "", level: LevelOption = DEVICE_CODE_LEVEL, limit: LimitOption = 4) -> Storage:
    """Return the storage options for edited bundles."""
    return Storage(rocm=rocm, level=level, limit=limit * GIB)


def _print_remarks(reports: Sequence[RewriteReport]) -> None:
    for warning in (warning for report in reports for warning in report.warnings):
        report_warning(warning)
    if hosts_spelled := sum(report.hosts_spelled for report in reports):
        done = f"changed the host entries of {count(hosts_spelled, 'bundle')} from Clang 16's form to Clang 17's"
        messages.print(f"note: {done}, because later readers reject the old form in compressed bundles", markup=False)
    for fault in dict.fromkeys(fault for report in reports for fault in report.faults):
        messages.print(f"note: {fault}", markup=False)
    if versions := [version for report in reports for version in report.versions]:
        since = first_reader(max(versions))
        messages.print(f"note: the result requires ROCm {since} or later", markup=False)
