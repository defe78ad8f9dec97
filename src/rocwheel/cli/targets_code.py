"""``rocwheel targets coherent`` and ``runs-on``: show the GPUs for which packages and files have code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from rocwheel.binary.bundles.runtimes import known_release, release_of, releases, series_of
from rocwheel.binary.code_objects import TargetId
from rocwheel.cli.options import Output, complete_targets, shared
from rocwheel.cli.output import first_lines, print_json, print_line, printing_errors, report_first
from rocwheel.cli.parameters import argument, option, regular_places
from rocwheel.cli.targets import TargetCommand, print_target_set, read_targets, targets_app
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count, first_of
from rocwheel.core.workers import raise_all
from rocwheel.device.runs_on import FileVerdict, FolderLack, judge_files, opened_verdicts
from rocwheel.device.surroundings import NamedRelease, find_release
from rocwheel.environment.coherence import (
    CoherenceReport,
    Gap,
    PackageTargets,
)
from rocwheel.environment.library_code import CodeGap, Reach
from rocwheel.environment.package_targets import compare_packages
from rocwheel.targets.catalog import is_specific
from rocwheel.targets.compatibility import Runtime, covers
from rocwheel.targets.kernel_files import group_kernel_files, targets_in_path
from rocwheel.targets.target_set import TargetSet, parse_target_set, strip_setting, text_sort_key
from rocwheel.wheels.binaries import find_places

if TYPE_CHECKING:
    from collections.abc import Sequence


_PackagesArgument = Annotated[
    list[Path],
    argument(
        check=regular_places, metavar="PACKAGE", help="Wheels, rocm sdists, .deb files, or folders that contain them."
    ),
]
_TargetsOption = Annotated[
    list[str] | None, shared("--targets", "Check these targets: every package must have code for them.")
]
_ReduceOption = Annotated[bool, option("--reduce", help="Print the largest set of targets that all packages support.")]

_DIVIDED = "the packages with device code have no target in common"


@targets_app.command()
def coherent(
    packages: _PackagesArgument,
    targets: _TargetsOption = None,
    *,
    reduce: _ReduceOption = False,
    out: Output,
) -> None:
    """Check that packages have code for the same GPUs.

    The exit status is 1 if a package lacks code for a GPU that a dependent package supports. With --reduce, it is 1 if
    there is no common set, or if the set lacks a target from --targets. It is 2 if a package can't be read; the other
    packages are still compared.

    Example: rocwheel targets coherent dist/ --targets gfx90a,gfx1100
    """
    required = read_targets(targets or [], source="--targets", required=targets is not None)
    unread: list[RocwheelError] = []
    progress = out.progress
    package_targets, report = compare_packages(packages, required, unread=unread, progress=progress)
    status = report_first("packages", unread)
    if reduce:
        print_target_set("targets", _words(report.common), as_json=out.json)
        raise click.exceptions.Exit(status or _report_shortage(report, required))
    if out.json:
        print_json("coherence", 1, _coherence_json(report))
    with printing_errors():
        for line in [] if out.json else _coherence_lines(report, package_targets, out, partly=bool(unread)):
            print_line(line)
    raise click.exceptions.Exit(status or (0 if report.coherent else 1))


def _report_shortage(report: CoherenceReport, required: TargetSet) -> int:
    """Print to standard error why the reduced set isn't enough. Return the exit status."""
    missing = [str(target) for target in required if not covers(report.common, target)]
    reason = f"the set doesn't support {', '.join(missing)}, which --targets requires" if missing else ""
    if not report.common:
        reason = _DIVIDED if report.divided else "no package has device code"
    if reason:
        with printing_errors():
            print_line(reason, err=True)
    return 1 if reason else 0


def _coherence_json(report: CoherenceReport) -> dict[str, Any]:
    gaps = [
        {"package": gap.package, "target": str(gap.target), "wanted_by": gap.wanted_by, "carried": _words(gap.carried)}
        for gap in report.gaps
    ]
    return {
        "coherent": report.coherent,
        "packages": report.packages,
        "common": _words(report.common),
        "gaps": gaps,
        "absent": report.absent,
        "unusable": [_unusable_json(gap) for gap in report.unusable],
        "leaves": [{"package": gap.package, "target": str(gap.target)} for gap in report.leaves],
        "misdeclared": [
            {"package": one.package, "declared": _words(one.declared), "carried": _words(one.carried)}
            for one in report.misdeclared
        ],
    }


def _leaf_line(gap: Gap) -> str:
    carried = ", ".join(_words(gap.carried))
    return (
        f"{gap.package} has {carried}, but lacks {gap.target}, which {gap.wanted_by} supports; no package requires "
        f"{gap.package}"
    )


def _unusable_json(gap: CodeGap) -> dict[str, Any]:
    return {
        "package": gap.file.package,
        "file": gap.file.place,
        "targets": _words(gap.targets),
        "found": gap.found,
        "reach": gap.reach.value,
    }


def _coherence_lines(
    report: CoherenceReport, package_targets: list[PackageTargets], out: Output, *, partly: bool
) -> list[str]:
    def some(lines: Iterable[str]) -> list[str]:
        shown, more = first_lines(list(lines), verbose=out.verbose)
        return [*shown, more] if more else [*shown]

    fails = [gap for gap in report.unusable if gap.reach is Reach.FAILS]
    lines = some(str(finding) for finding in (*report.gaps, *report.misdeclared))
    lines += some(f"{gap.file.package}: {gap.file.place} {gap.found}" for gap in fails)
    if report.divided:
        lines.append(_DIVIDED)
    if out.quiet:
        return lines
    carried = some(f"{one.name}: {', '.join(_words(one.targets)) or 'no device code'}" for one in package_targets)
    carried += some(f"{gap.file.package}: {gap.file.place} {gap.found}" for gap in report.unusable if gap not in fails)
    carried += some(map(_leaf_line, report.leaves))
    absent = (
        [f"not compared, because these required packages weren't specified: {', '.join(report.absent)}"]
        if report.absent
        else []
    )
    verdict = "coherent" if report.coherent else "not coherent"
    verdict += ", based on the readable files" if partly else ""
    served = f"supported by all: {', '.join(_words(report.common)) or 'nothing'}"
    return [
        *carried,
        *lines,
        *absent,
        f"{verdict}; {served if report.has_device_code else 'no package has device code'}",
    ]


def _words(targets: tuple[Any, ...]) -> list[str]:
    return [str(target) for target in targets]


def _no_path(gpu: str) -> str:
    """Return the GPU. Raises `InputError` if the word is a path."""
    try:
        if Path(gpu).exists():
            parse_target_set([gpu], source="GPU", native=tuple, required=False)
    except InputError as e:
        expected = "the GPU before the paths: rocwheel targets runs-on GPU PATH..."
        raise InputError(gpu, "is a path", expected=expected) from e
    return gpu


class _EitherOrder(TargetCommand):
    """A command that accepts a GPU and paths in either order."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with the GPU moved before the paths."""
        words = [strip_setting(argument) for argument in args]
        given, _, _ = self.make_parser(ctx).parse_args(list(words))
        first, others = given.get("gpu"), given.get("paths")
        if not (isinstance(first, str) and isinstance(others, tuple)):
            return super().parse_args(ctx, words)
        if Path(first).exists() and not Path(others[-1]).exists():
            with suppress(InputError):
                parse_target_set([others[-1]], source="GPU", native=tuple, required=False)
                place = len(words) - 1 - words[::-1].index(others[-1])
                words = [others[-1], *words[:place], *words[place + 1 :]]
        return super().parse_args(ctx, words)


@targets_app.command("runs-on", cls=_EitherOrder)
def runs_on(
    gpu: Annotated[
        str,
        argument(
            check=_no_path,
            metavar="GPU",
            shell_complete=complete_targets,
            help="A target, such as gfx90a:xnack-, or native.",
        ),
    ],
    paths: Annotated[
        list[Path],
        argument(
            check=regular_places, metavar="PATH", help="Binaries, wheels, .deb files, or folders that contain them."
        ),
    ],
    *,
    rocm: Annotated[
        str,
        option(
            "--rocm",
            metavar="VERSION",
            help="Apply the rules of this ROCm release, such as 6.4.",
            show_default="the newest release that a package specifies, or all releases that differ",
        ),
    ] = "",
    out: Output,
) -> None:
    """Print which device code a GPU would use, and why.

    GPU can also come after PATH. For a GPU without features, the command checks each setting that a machine can have.
    It skips kernel files whose names contain other targets. Kernel files in a folder share one line if they have the
    same result; -v prints a line for each file.

    The result depends on the HIP release; see --rocm. Without --rocm, each line lists the releases that it applies to.
    With `native`, the command checks all GPUs of this machine together. If a library or its archive lacks code for one
    GPU, other GPUs may also get no code.

    The exit status is 1 if a stock runtime finds no code in at least one case. It is 2 if a file can't be read; the
    other files are still checked.

    Example: rocwheel targets runs-on gfx1031 lib/librocsparse.so.1
    """
    progress = out.progress
    is_machine, unread = gpu.partition(":")[0] == "native", list[RocwheelError]()
    gpus = _read_gpus(gpu)
    if rocm:
        release_of(rocm, source="--rocm")
    named = NamedRelease(rocm, "") if rocm else find_release(paths)
    release = named.release if named and named.is_known else ""
    found = judge_files(paths, gpus, rocm=release, is_machine=is_machine, unread=unread, progress=progress)
    if not found:
        raise_all("binaries", unread)
        raise InputError(_given(paths), "no device code", expected="a fat binary or a bundle file")
    status = report_first("binaries", unread)
    answer = _Answer(paths, tuple(gpus), found, named)
    if out.json:
        print_json("runs-on", 1, answer.document())
    with printing_errors():
        for line in [] if out.json else answer.lines(quiet=out.quiet, verbose=out.verbose):
            print_line(line)
    raise click.exceptions.Exit(status or (0 if answer.runs_on_stock else 1))


class _Answer:
    """The output for the verdicts on files, for each GPU and runtime."""

    def __init__(
        self,
        paths: Sequence[Path],
        gpus: Sequence[TargetId],
        found: Sequence[FileVerdict],
        named: NamedRelease | None,
    ) -> None:
        self._paths, self._found = paths, found
        self._named = named if named and named.is_known else None
        self._too_old = named if named and not named.is_known else None
        judged = dict.fromkeys(verdict.gpu for verdict in found)
        self._settings = {gpu: [setting for setting in judged if _is_setting(setting, gpu)] for gpu in gpus}
        self._judged = {verdict.path for verdict in found}
        self._opened = opened_verdicts(found)
        self._for_others = sorted(self._judged - {verdict.path for verdict in self._opened})
        left = {(verdict.gpu, verdict.runtime) for verdict in self._opened}
        pairs = dict.fromkeys((verdict.gpu, verdict.runtime) for verdict in found)
        self._without_files = [pair for pair in pairs if pair not in left]

    @property
    def runs_on_stock(self) -> bool:
        """Whether a stock runtime finds code in every file that it opens, and opens a file for every GPU."""
        fails = any(runtime is Runtime.STOCK for _, runtime in self._without_files)
        return not fails and all(verdict.runs for verdict in self._opened if verdict.runtime is Runtime.STOCK)

    def document(self) -> dict[str, Any]:
        """Return the command's JSON document."""
        rows = [_verdict_json(verdict) for verdict in self._opened]
        settings = {str(gpu): [str(setting) for setting in settings] for gpu, settings in self._settings.items()}
        return {
            "rocm": self._named.release if self._named else "",
            "rocm_named_by": self._named.source if self._named else "",
            "judged_as": self._judged_as,
            "verdicts": rows,
            "settings": settings,
            "without_code": self._without_code(),
            "for_others": self._for_others,
            "faults": self._faults(),
        }

    def lines(self, *, quiet: bool, verbose: bool) -> list[str]:
        """Return the lines for users. With ``quiet``, return only lines about files without usable code.

        Unless ``verbose``, kernel files in a folder share a line if they have the same result.
        """
        said = self._said() if verbose else _kernel_files_united(self._said())
        lines = [line for verdict in said for line in _verdict_lines(verdict, self._named, quiet=quiet)]
        lines += [self._no_file_line(gpu, runtime) for gpu, runtime in self._without_files]
        return lines if quiet else [*lines, *self._omission_lines(), *self._settings_lines(), *self._release_lines()]

    def _release_lines(self) -> list[str]:
        """Return the assumed ROCm release, unless the user chose it, and the packages with problems."""
        named, old = self._named, self._too_old
        by = (
            [f"checked with the rules for ROCm {named.release}, which {named.source} specifies"]
            if named and named.source
            else []
        )
        if old:
            known = f"the rules are known only for ROCm {releases()[0].since} and later"
            by = [f"not checked with the rules for ROCm {old.release}, which {old.source} specifies: {known}"]
        if named and self._judged_as:
            is_newest = self._judged_as == known_release("9999")
            why = "is newer than the known releases" if is_newest else "isn't a known release"
            by.append(f"ROCm {named.release} {why}, so it is treated as {self._judged_as}")
        return [*by, *self._faults()]

    @property
    def _judged_as(self) -> str:
        """The known release whose rules apply to an unknown release. Empty for a known release."""
        if self._named is None:
            return ""
        known = known_release(self._named.release)
        return known if series_of(known) != series_of(self._named.release) else ""

    def _faults(self) -> list[str]:
        return list(dict.fromkeys(fault for verdict in self._opened for fault in verdict.faults))

    def _said(self) -> list[FileVerdict]:
        """Return the verdicts. If they are the same for all settings of a GPU, return only one of them."""
        alike: dict[FileVerdict, list[FileVerdict]] = {}
        for verdict in self._opened:
            gpu = next(gpu for gpu, settings in self._settings.items() if verdict.gpu in settings)
            alike.setdefault(msgspec.structs.replace(verdict, gpu=gpu), []).append(verdict)
        whole = (len(verdicts) == len(self._settings[verdict.gpu]) for verdict, verdicts in alike.items())
        groups = zip(whole, alike.items(), strict=True)
        return [said for is_whole, (one, each) in groups for said in ([one] if is_whole else each)]

    def _settings_lines(self) -> list[str]:
        """Return the possible settings of a GPU without feature settings, if they make a difference."""
        opened = {gpu: settings for gpu, settings in self._settings.items() if len(settings) > 1}
        return [
            f"{gpu} stands for {', '.join(map(str, settings))}. A machine has one of these settings, and all of them "
            "must find code. XNACK is off unless HSA_XNACK=1. To see the setting, run rocminfo."
            for gpu, settings in opened.items()
        ]

    def _without_code(self) -> list[str]:
        with_code = {path.rpartition("!")[0] for path in self._judged} | self._judged
        others = [path for path in self._paths if path.is_file() and str(path) not in with_code]
        # Archives count as part of the libraries that open them.
        return [
            str(path) for path in others if not any(p.endswith(".kpack") for p in (path.name, *find_places([path])))
        ]

    def _no_file_line(self, gpu: TargetId, runtime: Runtime) -> str:
        files = count(len(self._judged), "file with device code is", "files with device code are")
        targets = {str(target) for verdict in self._found for target in targets_in_path(verdict.place)}
        named = first_of(sorted(targets, key=text_sort_key), 8)
        lead = f"{_given(self._paths)}: {_lead(gpu, runtime, self._named)}"
        return f"{lead}: finds no code, because all {files} named for other targets: {named}"

    def _omission_lines(self) -> list[str]:
        lines = [f"{path}: no device code" for path in self._without_code()]
        names = "its name is" if len(self._for_others) == 1 else "their names are"
        skipped = f"skipped {count(len(self._for_others), 'file')}, because {names} for other targets"
        return [*lines, skipped] if self._for_others else lines


def _kernel_files_united(verdicts: Iterable[FileVerdict]) -> Iterator[FileVerdict]:
    """Yield a single verdict for kernel files in a folder with the same result.

    The verdict has the total number of bundles.
    """
    for folder, each in group_kernel_files(verdicts, lambda verdict: verdict.path, _answer):
        if folder is None:
            yield each[0]
            continue
        same = _answer(each[0])
        sums = (sum(verdict.uses[number].bundles for verdict in each) for number in range(len(same.uses)))
        uses = tuple(msgspec.structs.replace(use, bundles=by) for use, by in zip(same.uses, sums, strict=True))
        path = f"{folder}: {count(len(each), 'kernel file')}"
        yield msgspec.structs.replace(same, path=path, uses=uses)


def _answer(verdict: FileVerdict) -> FileVerdict:
    """Return the result for a file, without its name and its number of bundles."""
    uses = tuple(msgspec.structs.replace(use, bundles=0) for use in verdict.uses)
    return msgspec.structs.replace(verdict, path="", place="", uses=uses)


def _is_setting(target: TargetId, gpu: TargetId) -> bool:
    """Return whether ``target`` is ``gpu`` or one of its settings."""
    return target.processor == gpu.processor and gpu.features.items() <= target.features.items()


def _given(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _read_gpus(text: str) -> TargetSet:
    gpus = read_targets([text], source="GPU")
    found = "is a target for code, not a GPU"
    portable = [f"{name!r} {found}" for name in gpus.processors if not is_specific(TargetId(name))]
    raise_all("GPU", [InputError("GPU", text, expected="a GPU such as gfx90a:xnack-, or native") for text in portable])
    return gpus


def _verdict_json(verdict: FileVerdict) -> dict[str, Any]:
    uses = [
        {"code": str(use.code) if use.code else None, "fit": use.fit.value, "why": use.reason, "bundles": use.bundles}
        for use in verdict.uses
    ]
    return {
        "gpu": str(verdict.gpu),
        "path": verdict.path,
        "runtime": verdict.runtime.value,
        "runs": verdict.runs,
        "kpacked": verdict.kpacked,
        "since": verdict.since,
        "up_to": verdict.up_to,
        "uses": uses,
        "kernel_folder": verdict.lack,
    }


def _lead(gpu: TargetId, runtime: Runtime, named: NamedRelease | None, since: str = "", up_to: str = "") -> str:
    lead = f"{gpu} on {'a stock' if runtime is Runtime.STOCK else 'an extended'} runtime"
    if named:
        return f"{lead} of ROCm {named.release}"
    if since and up_to:
        return f"{lead} of ROCm {since}" + (f" to {up_to}" if up_to != since else "")
    return lead + (f" since ROCm {since}" if since else f" up to ROCm {up_to}" if up_to else "")


def _lack_words(lack: FolderLack) -> str:
    if not lack.is_given:
        return f"opens {lack.folder}, but no specified package has kernels for it, so there is no verdict"
    compiled = "; kernels are compiled at first use" if lack.compiles else ""
    return f"finds nothing in {lack.folder}, which {lack.found}{compiled}"


def _verdict_lines(verdict: FileVerdict, named: NamedRelease | None, *, quiet: bool) -> list[str]:
    lead = f"{verdict.path}: {_lead(verdict.gpu, verdict.runtime, named, verdict.since, verdict.up_to)}"
    is_fine = verdict.lack is None or verdict.lack.compiles or not verdict.lack.is_given
    lack = None if quiet and is_fine else verdict.lack
    lines = [
        f"{lead}: {f'uses {use.code}' if use.code else 'finds nothing'} in "
        f"{count(use.bundles, 'bundle')} ({use.reason})"
        for use in verdict.uses
        if not (quiet and use.code)
    ]
    return [*lines, f"{lead}: {_lack_words(lack)}"] if lack else lines
