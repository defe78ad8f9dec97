"""Code and tables of kernels that are offered to other GPUs: what names the target changes, and nothing else."""

from __future__ import annotations

import io
import zlib
from typing import Any

import msgspec

from rocwheel.binary.bundles.sequence import Bundle, iter_bundles, iter_entry
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, is_code_object, parse_target_id, read_code_object
from rocwheel.binary.kernel_metadata import TARGET_KEY, kernel_names, rename_target
from rocwheel.binary.kind import is_bundle
from rocwheel.core.reading import join_data
from rocwheel.device.retarget import KernelNames, write_kernel_file
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.bundles import bundle_of
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import fixtures
from trials.fuzz.seeds.metadata_notes import code_with_note, note_seeds

_PLACE = CodePlace("input")
_RENAMES = (("gfx906", "gfx900"), ("gfx1030", "gfx906"), ("gfx90a:xnack+", "gfx90c"))
"""Of the same length, and of fewer letters."""
_ARCHITECTURES = {
    "gfx906": "amdgpu9.06",
    "gfx900": "amdgpu9.00",
    "gfx1030": "amdgpu10.30",
    "gfx90a:xnack+": "amdgpu9.0a",
    "gfx90c": "amdgpu9.0c",
}
"""Those of LLVM 24."""
[_PAIR] = parse_pairs("gfx906=gfx900", force=True)
_NAMES = KernelNames(_PAIR, ("TensileLibrary_gfx906", "Kernels.so-000-gfx906"))
_UNREADABLE = (ValueError, TypeError, RecursionError)
"""What msgspec raises for MessagePack of which Python has no values."""


def _target_note(data: bytes) -> None:
    """Take an input as the MessagePack of a code object's note, and rename the target that it is for."""
    made = bytearray(whole := code_with_note(data))
    view = memoryview(whole)
    code = read_code_object(view, place=_PLACE)
    for old, new in _RENAMES:
        if _names(data, old):
            edits = rename_target(view, code, parse_target_id(old), parse_target_id(new), place=_PLACE)
            for offset, edit in edits:
                made[offset : offset + len(edit)] = edit
            _check_note(whole, bytes(made), data, (old, new))
            return
    raise DeviceCodeError(_PLACE, "a note for none of the targets")


def _names(note: bytes, target: str) -> bool:
    return f"-{target}".encode() in note


def _check_note(whole: bytes, made: bytes, note: bytes, names: tuple[str, str]) -> None:
    """Require that a note, as msgspec reads it, names another target and has the same values otherwise."""
    start = whole.rindex(note) if note else 0
    rest = made[:start], made[start + len(note) :]
    require(rest == (whole[:start], whole[start + len(note) :]), "bytes outside of the note have changed")
    before, after = _decoded(note), _decoded(made[start : start + len(note)])
    if isinstance(before, dict) and isinstance(before.get(TARGET_KEY), str):
        before[TARGET_KEY] = _renamed_target(before[TARGET_KEY], *names)
    _require_equal(after, before)


def _renamed_target(isa: str, old: str, new: str) -> str:
    """Return what a note for one target has for another: LLVM 24 names the processor in the architecture, too."""
    architecture, dash, rest = isa.removesuffix(old).partition("-")
    if architecture == _ARCHITECTURES[old]:
        architecture = _ARCHITECTURES[new]
    return f"{architecture}{dash}{rest}{new}"


def _decoded(data: bytes) -> Any:
    """Return the values; none where Python has none for them, such as for dates before the year 1."""
    try:
        return msgspec.msgpack.decode(data)
    except _UNREADABLE:
        return None


def _require_equal(own: object, expected: object) -> None:
    """Compare values as they are written: those that are no numbers aren't equal to themselves."""
    require(msgspec.msgpack.encode(own) == msgspec.msgpack.encode(expected), f"{own!r}, expected {expected!r}")


def _written(data: bytes, name: str) -> bytes:
    file = io.BytesIO()
    write_kernel_file(memoryview(data), file, _NAMES, name=name)
    return file.getvalue()


def _kernel_file(data: bytes) -> None:
    """Relabel an input: a code object, a bundle, or a table that is packed or not."""
    view = memoryview(data)
    if is_code_object(view):
        _check_code(data, memoryview(_written(data, "a.co")))
    elif is_bundle(view):
        _check_bundles(data, memoryview(_written(data, "a.hsaco")))
    else:
        _written(data, "a.dat.zlib")


def _check_code(data: bytes, made: memoryview) -> None:
    target = read_code_object(made, place=_PLACE).target
    require(target is not None and target.processor == "gfx900", f"code for {target}")
    require(len(made) == len(data), "code of another size")
    names = kernel_names(memoryview(data), place=_PLACE)
    require(kernel_names(made, place=_PLACE) == names, f"other kernels than {names}")


def _check_bundles(data: bytes, made: memoryview) -> None:
    before, after = ([*iter_bundles(one, name="input")] for one in (memoryview(data), made))
    require(len(after) == len(before), f"{len(after)} bundles of {len(before)}")
    for old, new in zip(before, after, strict=True):
        entries = [(one.target, one.size) for one in old.plain.device_entries]
        targets = [(size and target and _PAIR.agent_of(target)) or target for target, size in entries]
        found = [one.target for one in new.plain.device_entries]
        require(sorted(map(str, found)) == sorted(map(str, targets)), f"code for {found}, expected {targets}")
        _check_payloads(made, new)


def _check_payloads(data: memoryview, bundle: Bundle) -> None:
    """Require that the code of each entry for the new target is for it: the label alone makes none run."""
    for entry in bundle.plain.device_entries:
        code = memoryview(join_data(iter_entry(data, bundle, entry)))
        if entry.target and entry.target.processor == "gfx900" and is_code_object(code):
            target = read_code_object(code, place=_PLACE).target
            require(target is None or target.processor != "gfx906", f"code for {target} is labeled {entry.target}")


def _table(data: bytes) -> None:
    """Rename the texts of a table, plain and packed; msgspec, whose texts are whole, finds the same ones renamed."""
    made = _written(data, "a.dat")
    packed = zlib.decompress(_written(zlib.compress(data), "a.dat.zlib"))
    require(packed == made, "another table where it was packed")
    values = _decoded(data)
    # Tensile's writer takes the shortest form of each value, by which texts are told apart from other bytes.
    if _is_plain(values) and msgspec.msgpack.encode(values) == data:
        _require_equal(_decoded(made), _renamed(values))


def _is_plain(value: object) -> bool:
    """Return whether nothing but a whole text can have the bytes of a text, in a table as Tensile writes it.

    Its texts are ASCII, and it writes no bytes. A number of eight bytes may have those of a short name, one in 2^56.
    """
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return value.isascii()
    return value is None or (isinstance(value, int) and abs(value) < 1 << 31)


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {_renamed(key): _renamed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_renamed, value))
    return _NAMES.changes.get(value, value) if isinstance(value, str) else value


def _note_seeds() -> list[bytes]:
    notes = note_seeds()
    newer = [note.replace(b"\xb9amdgcn-amd-amdhsa--", b"\xd9\x24amdgpu9.06-amd-amdhsa-unknown-") for note in notes]
    others = (note.replace(b"\xb9amd", b"\xbaamd").replace(b"gfx906", b"gfx1030") for note in notes)
    return [*notes, *others, *newer]


def _kernel_seeds() -> list[bytes]:
    bundles = [bundle_of("gfx906", "gfx90a:xnack+")[:9000], *fixtures("v22/*.ccob.hipfb")]
    large = fixtures("edge/two.plain.fatbin", largest=60 << 10)
    return [*fixtures("elf/gfx906.co"), *bundles, *large, zlib.compress(_TABLE)]


_TABLE = msgspec.msgpack.encode(
    {"files": ["TensileLibrary_gfx906", "TensileLibrary_gfx90a"], "gfx906": {"type": "Processor", "value": "gfx906"}}
)
_TOKENS = (b"\xa6gfx906", b"\xb5TensileLibrary_gfx906", b"\xd9\x06gfx906", b"\xc4\x07", b"\xcb", b"\xcf")

HARNESSES = (
    Harness(
        "retargeting.target_note",
        _target_note,
        _note_seeds,
        tokens=(b"\xd9\x19", b"\xb9", b"\x92\x01\x02", b"-gfx1030", b"amdgpu9.06-", b"amdgpu9.0a-"),
    ),
    Harness("retargeting.kernel_file", _kernel_file, _kernel_seeds, tokens=(b"CCOB", b"gfx906", b"gfx900")),
    Harness("retargeting.table", _table, lambda: [_TABLE, b"\x91" * 3000], tokens=_TOKENS),
)
"""See `trials.fuzz.harness.Harness`."""
