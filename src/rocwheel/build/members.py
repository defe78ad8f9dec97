"""Produces the members of a planned wheel in order. Edits are applied as files are read."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import rocwheel
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.kpack.archive import begins_with_frames
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.binary.runpath import plan_runpath
from rocwheel.binary.stubs import make_exec_stub, make_forwarding_library, make_relay
from rocwheel.build.plan import (
    FileMember,
    ForwardingMember,
    Member,
    PlannedWheel,
    RelayMember,
    StubMember,
    TarMember,
    TextMember,
    member_files,
)
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.hashing import source_hash
from rocwheel.core.patch import patched_view
from rocwheel.device.edit_bundles import device_patch
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.wheels.content import (
    BytesContent,
    Content,
    EditedContent,
    FileContent,
    PatchedContent,
    TarFile,
    TarLink,
    tar_content,
)
from rocwheel.wheels.member_compression import codec_identity
from rocwheel.wheels.metadata import metadata_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from rocwheel.core.patch import FilePatch
    from rocwheel.core.reading import Data
    from rocwheel.wheels.member_compression import StreamFormat
    from rocwheel.wheels.writing import OpenWheel


_ARCHIVE = ".kpack"


def member_content(member: Member, *, mtime: int, executor: Executor | None = None) -> Content:
    """Return the content of a member. ``mtime`` is for the entries of a tar, and ``executor`` compresses device code.

    Raises `InputError` if a file can't be read or edited.
    """
    match member:
        case FileMember():
            return _file_content(member, executor)
        case StubMember():
            return BytesContent(make_exec_stub(member.machine, member.target))
        case RelayMember():
            return BytesContent(make_relay(member.target, member.arguments))
        case ForwardingMember():
            return BytesContent(make_forwarding_library(member.soname, member.machine, member.tag))
        case TextMember():
            return BytesContent(member.text.encode())
        case TarMember():
            entries = (
                TarFile(entry.path, entry.mode, _file_content(entry.file))
                if entry.file is not None
                else TarLink(entry.path, entry.link or "")
                for entry in member.entries
            )
            return tar_content(entries, mtime=mtime)


def is_compressed(member: Member) -> bool:
    """Return whether a member is an archive of compressed code objects.

    Deflating such an archive saves little space.
    """
    if not isinstance(member, FileMember) or not member.path.endswith(_ARCHIVE):
        return False
    with member.source.view() as data:
        return begins_with_frames(data)


def edited_content(member: FileMember) -> EditedContent | None:
    """Return content that plans a file's edit on demand, or `None` if the file is not edited."""
    if (member.run_path is None and member.compress_for is None) or is_compressed(member):
        return None
    edit = msgspec.msgpack.encode((member.run_path, member.compress_for, member.trim, DEVICE_CODE_LEVEL))
    plan, is_costly = partial(_file_content, member), member.compress_for is not None
    return EditedContent(member.source, edit + _edit_identity(), plan, is_costly=is_costly)


@cache
def _edit_identity() -> bytes:
    """Return a value that changes with the editing code and codecs, because edits may then produce different bytes."""
    root = Path(rocwheel.__file__).parent
    places = (root / "binary", root / "device", root / "core", Path(__file__))
    return b"".join([codec_identity(), *map(source_hash, places)])


def _file_content(member: FileMember, executor: Executor | None = None) -> Content:
    if member.run_path is None and member.compress_for is None:
        return FileContent(member.source)
    with member.source.view() as data:
        patch = _plan_patch(member, data, executor)
    return PatchedContent(member.source, patch) if patch else FileContent(member.source)


def _plan_patch(member: FileMember, data: Data, executor: Executor | None) -> FilePatch | None:
    """Return all changes to a file as one patch, or `None` if the file needs no changes."""
    name = f"{member.artifact}: {member.origin}"
    device = None
    if member.compress_for is not None:
        storage = Storage(compress=True, rocm=member.compress_for, level=DEVICE_CODE_LEVEL)
        try:
            device = device_patch(data, name=name, storage=storage, trim=member.trim, executor=executor)
        except SignedFileError:
            # `warn_of_signed_code` has already warned about these files. Files with certificates have no run path.
            return None
    if member.run_path is None:
        return device
    if device is None:
        run_path = plan_runpath(data, member.run_path.value, member.run_path.tag, name=name)
        return None if run_path.is_identity else run_path
    # Only trimming moves the bytes that a new run path is written to.
    changed = patched_view(data, device) if member.trim else data
    return device.then(plan_runpath(changed, member.run_path.value, member.run_path.tag, name=name))


class PlacedMember(msgspec.Struct, frozen=True):
    """A member with its name and permission bits in the wheel."""

    name: str
    mode: int
    member: Member


def wheel_members(wheel: PlannedWheel) -> list[PlacedMember]:
    """Return all members of a wheel except its metadata: largest first, license texts last.

    The small members at the end keep all workers busy until the wheel is done.
    """
    placed = []
    for member in sorted(wheel.members, key=lambda member: (-planned_size([member]), member.path)):
        is_program = isinstance(member, StubMember | RelayMember | ForwardingMember)
        mode = member.mode if isinstance(member, FileMember) else 0o755 if is_program else 0o644
        placed.append(PlacedMember(member.path, mode, member))
    licenses = f"{wheel.name.dist_info}/licenses"
    return placed + [PlacedMember(f"{licenses}/{text.path}", 0o644, text) for text in wheel.licenses]


def add_member(
    target: OpenWheel, placed: PlacedMember, *, mtime: int, executor: Executor, is_cached: bool = False
) -> None:
    """Add a member to a wheel. ``mtime`` is for the entries of a tar, and ``executor`` compresses device code.

    With ``is_cached``, the member's edit is planned only if the cache lacks the member. Raises `InputError` if a file
    can't be read or edited.
    """
    member = placed.member
    if is_cached and isinstance(member, FileMember) and (edited := edited_content(member)):
        target.add(placed.name, placed.mode, edited)
        return
    content = member_content(member, mtime=mtime, executor=executor)
    if encoding := stream_format(member):
        target.add_encoded(placed.name, placed.mode, content, encoding)
    else:
        add = target.add_stored if is_compressed(member) else target.add
        add(placed.name, placed.mode, content)


def stream_format(member: Member) -> StreamFormat | None:
    """Return the format of the compressed stream that a member consists of, or `None` if the member is a plain file."""
    return member.compression if isinstance(member, TarMember) and member.compression != "none" else None


def planned_size(members: Sequence[Member]) -> int:
    """Return the total size of the members' source files in bytes, before edits."""
    return sum(file.source.size for member in members for file in member_files(member))


def wheel_metadata(wheel: PlannedWheel) -> dict[str, bytes]:
    """Return the files of the ``.dist-info`` folder, keyed by name, except license texts and RECORD."""
    texts = {DECLARATION_NAME: wheel.declaration, **wheel.info_texts}
    return metadata_files(
        wheel.metadata,
        wheel.name.tag,
        is_purelib=wheel.is_purelib,
        entry_points={"console_scripts": wheel.console_scripts} if wheel.console_scripts else {},
        others={name: text.encode() for name, text in texts.items() if text},
    )
