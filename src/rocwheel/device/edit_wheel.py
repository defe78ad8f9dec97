"""Edits a wheel's device code, writes the result to another wheel, and copies other members unchanged."""

from __future__ import annotations

import stat
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import NotTrimmableError, TargetId
from rocwheel.binary.kind import is_binary
from rocwheel.binary.kpack.markers import find_split_library
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of
from rocwheel.core.workers import open_workers, raise_all
from rocwheel.core.writing import safe_mode
from rocwheel.device.edit_bundles import Prune, is_any_kept
from rocwheel.device.edit_file import FileRewrite, RewriteOrder, RewriteReport, signed_warning
from rocwheel.device.edit_tree import (
    EditableCode,
    PruneAction,
    file_action,
    file_targets,
    find_emptied_libraries,
    link_action,
    read_file_code,
)
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration, encode_declaration
from rocwheel.targets.kernel_files import processors_of_name
from rocwheel.targets.serving import serves
from rocwheel.targets.target_set import id_sort_key
from rocwheel.wheels.checking import check_members
from rocwheel.wheels.content import FileContent
from rocwheel.wheels.file_names import split_label
from rocwheel.wheels.record import signature_paths, unhashed_paths
from rocwheel.wheels.sbom import SBOM_NAME, change_notes, changed_bill
from rocwheel.wheels.variants import load_draft, read_wheel_text
from rocwheel.wheels.writing import write_wheels
from rocwheel.wheels.zip_directory import find_dist_info, read_directory
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_unpacked, read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.wheels.content import Digest
    from rocwheel.wheels.sdist import SourceDate
    from rocwheel.wheels.writing import OpenWheel, WheelPacker
    from rocwheel.wheels.zip_reader import ZipMember


class WheelTargets(msgspec.Struct, frozen=True):
    """The targets that a wheel's files have code for, before and after an edit."""

    before: set[TargetId] = msgspec.field(default_factory=set)
    after: set[TargetId] = msgspec.field(default_factory=set)

    def require_any(self, wheel: Path, keep: Sequence[TargetId]) -> None:
        """Raise `InputError` if all code was removed."""
        if self.before and not self.after:
            offered = ", ".join(map(str, sorted(self.before, key=id_sort_key)))
            expected = f"code for one of {', '.join(map(str, keep))}"
            raise InputError(
                wheel,
                "has no code for any of the targets to keep",
                expected=expected,
                remedy=f"The wheel has code for {offered}.",
            )

    def redeclare(self, declaration: bytes, keep: Sequence[TargetId] | None, *, source: str) -> bytes:
        """Return the wheel's declaration, updated if targets were removed or added.

        A target that no file has code for is omitted, unless it is one of the targets to keep. A previous record of the
        package's compatibility with other packages is removed. Raises `InputError` for a malformed declaration.
        """
        old = set(decode_declaration(declaration, source=source).targets)
        kept = {target for target in old if target in self.before or keep is None or is_any_kept([target], keep)}
        new = (kept - (self.before - self.after)) | (self.after - self.before)
        return declaration if new == old else encode_declaration(new)


def check_promise(wheel: Path, dist_info: str, members: Mapping[str, ZipMember], keep: Sequence[TargetId]) -> None:
    """Raise `InputError` if the code for the targets to ``keep`` doesn't serve all GPUs that a wheel variant promises.

    Otherwise, installers would select the wheel based on a false promise. Also raises the same errors as
    `read_wheel_text`.
    """
    member = members.get(f"{dist_info}/{load_draft().names.in_wheel}")
    data = read_member(member) if member is not None else None
    metadata = read_wheel_text(data, label=split_label(wheel.name)[1], wheel=str(wheel), dist_info=dist_info)
    if metadata is None:
        return
    provider = load_draft().provider
    values = metadata.properties.get(provider.namespace, {}).get(provider.feature, ())
    lost = [value for value in values if not any(serves(str(target), [TargetId(value)]) for target in keep)]
    if lost:
        found = f"is the wheel variant for {', '.join(values)}, and would lose its code for {', '.join(lost)}"
        raise InputError(wheel, found, remedy="Also keep these targets, or prune the wheel without a variant.")


_METADATA = ("METADATA", "WHEEL")


class WheelRewriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a wheel: the omitted members, the members with edited bundles, and the number of other members."""

    path: str
    dropped: tuple[str, ...]
    edited: tuple[RewriteReport, ...]
    copied: int
    warnings: tuple[str, ...] = ()


def rewrite_wheel(source: Path, output: Path, order: RewriteOrder, source_date: SourceDate) -> WheelRewriteReport:
    """Write the wheel ``source`` to ``output``, with its files' bundles edited and a correct RECORD.

    The rules for members are the same as in a folder (`file_action`): pruning omits files for other targets. Standalone
    code objects don't change. Unlinked code doesn't change either, and a warning is logged. With ``order.trim``,
    libraries that can't be trimmed are edited in place, with a warning. Signatures of RECORD, which are no longer
    valid, are omitted. Only safe permissions are kept (`safe_mode`). The declared targets (``rocm_targets.json``)
    become the targets of the edited code.

    Raises the same errors as `check_members` and `check_promise`. Raises `InputError` if no file has device code. Also
    raises it if pruning would remove all code from the wheel, or from one of its split libraries, unless the edit
    allows this. Raises `ProblemsError` with every file that can't be edited, and `WorkError` if writing fails. After an
    error, there is no output wheel.
    """
    members = read_directory(source)
    dist_info = find_dist_info(source, (member.name for member in members))
    if isinstance(order.edit, Prune):
        check_promise(source, dist_info, {member.name: member for member in members}, order.edit.keep)
    order.progress.begin(f"rewriting {source.name}", sum(member.size for member in members))
    try:
        with (
            open_workers(order.jobs) as executor,
            write_wheels(executor, source_date.zip_time, progress=order.progress) as packer,
        ):
            digests = check_members(source, members, executor=executor)
            job = _Job(source, dist_info, order, packer, digests)
            return job.run(members, packer.open(output, dist_info=job.dist_info))
    finally:
        order.progress.end()


class _Job:
    """The work on one wheel: the results so far, and the problems."""

    def __init__(
        self,
        source: Path,
        dist_info: str,
        order: RewriteOrder,
        packer: WheelPacker,
        digests: Mapping[ZipMember, Digest],
    ) -> None:
        self.source, self.dist_info, self.packer, self.digests = source, dist_info, packer, digests
        self.keep: Sequence[TargetId] | None = order.edit.keep if isinstance(order.edit, Prune) else None
        # The packer reports progress.
        self.order = msgspec.structs.replace(order, progress=SILENT)
        self.dropped: list[str] = []
        self.edited: list[RewriteReport] = []
        self.copied = 0
        self.warnings: list[str] = []
        self.problems: list[InputError] = []
        self.targets = WheelTargets()
        self.is_host = False

    def run(self, members: Sequence[ZipMember], wheel: OpenWheel) -> WheelRewriteReport:
        """Copy or edit every member, and then write the metadata; raise the collected problems."""
        # Process everything except the metadata, which is rewritten.
        named = (f"{self.dist_info}/{name}" for name in (*_METADATA, DECLARATION_NAME, SBOM_NAME))
        own = {*named, *unhashed_paths(self.dist_info)}
        for member in members:
            if member.name in own:
                continue
            try:
                self._bring(member, wheel)
            except InputError as e:
                self.problems.append(e)
        raise_all(str(self.source), self.problems)
        if not self.targets.before and not self.dropped:
            remedy = "Specify the device wheels, one at a time." if self.is_host else ""
            found = "is a host wheel, whose device code is in device wheels" if self.is_host else "no device code"
            raise InputError(self.source, found, expected="a wheel with device code", remedy=remedy)
        if isinstance(self.order.edit, Prune) and not self.order.edit.allow_empty:
            self.targets.require_any(self.source, self.order.edit.keep)
            raise_all(str(self.source), list(find_emptied_libraries(self.source, self.order.edit)))
        signatures = signature_paths(self.dist_info)
        signing = [member.source for member in members if member.name in signatures]
        self.warnings += [f"{source}: left out, because it signs the old wheel's RECORD" for source in signing]
        wheel.close(self._metadata(members))
        return WheelRewriteReport(
            path=str(self.source),
            dropped=tuple(self.dropped),
            edited=tuple(self.edited),
            copied=self.copied,
            warnings=tuple(self.warnings),
        )

    def _bring(self, member: ZipMember, wheel: OpenWheel) -> None:
        place = PurePosixPath(member.name)
        if stat.S_ISLNK(member.mode):
            action = link_action(place, self.keep) if self.keep is not None else PruneAction.COPIED
            self._keep_or_drop(member, wheel, action)
        elif not is_binary(member_head(member)):
            self._keep_or_drop(member, wheel, self._action(place, EditableCode()))
        else:
            with open_unpacked(member) as (unpacked, _), unpacked.view() as data:
                code = read_file_code(data, member.source)
                self.targets.before.update(code.targets)
                self.is_host |= find_split_library(data, name=member.source) is not None
                action = self._action(place, code)
                if action is PruneAction.EDITED:
                    self.targets.after.update(self._edit(member, wheel, data))
                else:
                    self.targets.after.update(code.targets if action is PruneAction.COPIED else ())
                    self._keep_or_drop(member, wheel, action)

    def _action(self, place: PurePosixPath, code: EditableCode) -> PruneAction:
        if self.keep is not None:
            return file_action(place, code, self.keep)
        if self.order.edit is None:
            return PruneAction.EDITED if code.has_bundles or code.is_archive else PruneAction.COPIED
        # Libraries don't look for code for another target in a file that is named for one target.
        is_named = bool(processors_of_name(place.as_posix()))
        return PruneAction.EDITED if code.has_bundles and not is_named else PruneAction.COPIED

    def _keep_or_drop(self, member: ZipMember, wheel: OpenWheel, action: PruneAction) -> None:
        if action is PruneAction.DROPPED:
            self.dropped.append(member.name)
            return
        self.copied += 1
        wheel.add_packed(member, safe_mode(member.mode), self.digests[member])

    def _edit(self, member: ZipMember, wheel: OpenWheel, data: Data) -> Collection[TargetId]:
        """Copy a member with edited bundles, or a signed member unchanged.

        Returns the targets that the copied member has code for.
        """
        try:
            return self._edit_unsigned(member, wheel, data)
        except SignedFileError as e:
            self.warnings.append(signed_warning(e))
            self._keep_or_drop(member, wheel, PruneAction.COPIED)
            return file_targets(data, member.source)

    def _edit_unsigned(self, member: ZipMember, wheel: OpenWheel, data: Data) -> Collection[TargetId]:
        """Work like `_edit`, but raise `SignedFileError` if a signature would become invalid."""
        with _edited(data, member, self.order) as (content, report, warning):
            if not report.changed:
                self._keep_or_drop(member, wheel, PruneAction.COPIED)
                return file_targets(data, member.source)
            self.edited.append(msgspec.structs.replace(report, path=member.name))
            self.warnings += [warning] if warning else []
            if not self.problems:
                wheel.add(member.name, safe_mode(member.mode), content)
            # The edited file disappears after the block. Editing one file at a time keeps the required space small.
            self.packer.drain()
            with content.source.view() as new:
                return file_targets(new, member.source)

    def _metadata(self, members: Sequence[ZipMember]) -> dict[str, bytes]:
        by_name = {member.name: member for member in members}
        paths = {name: f"{self.dist_info}/{name}" for name in _METADATA}
        metadata = {name: read_member(by_name[path]) for name, path in paths.items() if path in by_name}
        if declaration := by_name.get(f"{self.dist_info}/{DECLARATION_NAME}"):
            old = read_member(declaration)
            metadata[DECLARATION_NAME] = self.targets.redeclare(old, self.keep, source=declaration.source)
        edit = self.order.edit
        command = "compress" if edit is None else "prune" if isinstance(edit, Prune) else "retarget"
        changed = [report.path for report in self.edited]
        done = {"changed the device code of": changed, "left out": self.dropped}
        notes = change_notes(f"rocwheel device {command}", done)
        return {**metadata, **changed_bill(members, self.dist_info, notes)}


@contextmanager
def _edited(data: Data, member: ZipMember, order: RewriteOrder) -> Iterator[tuple[FileContent, RewriteReport, str]]:
    """Yield the edited file, which is temporary and unnamed, with a report and a warning, which may be empty."""
    try:
        with open_temporary(buffering=-1) as file:
            try:
                report, warning = FileRewrite(data, member.source, order).write(file), ""
            except (NotTrimmableError, SignedFileError) as e:
                if not order.trim:
                    raise
                file.seek(0)
                file.truncate()
                in_place = msgspec.structs.replace(order, trim=False)
                report, warning = FileRewrite(data, member.source, in_place).write(file), f"not trimmed: {e}"
            file.flush()
            size = file.seek(0, 2)
            yield FileContent(FileRange(path_of(file), 0, size)), report, warning
    except OSError as e:
        raise no_room(member.source, "its edited bytes", e) from e
