"""Reads finished wheels, and creates names and metadata for the host wheel and device wheels of a split."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.metadata import ExceptionGroup, Metadata, RawMetadata
from packaging.utils import InvalidName, canonicalize_name

import rocwheel
from rocwheel.binary.kpack.markers import PLACEHOLDER
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.names import is_file_name
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import map_collecting, open_workers, raise_all
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.targets.kernel_files import find_family
from rocwheel.wheels.checking import check_members
from rocwheel.wheels.file_names import (
    check_identity,
    is_distribution_name,
    parse_path,
    split_label,
    split_wheel_file_name,
    without_label,
)
from rocwheel.wheels.metadata import (
    CoreMetadata,
    CoreMetadataError,
    add_requirements,
    add_values,
    drop_values,
    is_license_name,
    parse_core_metadata,
    render_metadata,
    render_wheel_file,
    set_values,
    wheel_headers,
)
from rocwheel.wheels.record import SIGNATURES
from rocwheel.wheels.requirements import RequirementError, parse_requirement, readable_requirements
from rocwheel.wheels.tags import expand_tags
from rocwheel.wheels.variants import load_draft
from rocwheel.wheels.zip_directory import find_dist_info, read_directory
from rocwheel.wheels.zip_reader import ZipMember, read_member
from rocwheel.wheels.zip_refusals import refuse_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from packaging.specifiers import SpecifierSet
    from packaging.version import Version


_EXTRA = "device-"
ALL_EXTRA = f"{_EXTRA}all"
"""The extra that requests the device wheels of every target and family."""


def check_prefix(prefix: str) -> None:
    """Raise `InputError` if a distribution name can't begin with ``prefix``."""
    try:
        canonicalize_name(prefix, validate=True)
    except InvalidName as e:
        option, found = "--device-name", f"is {prefix!r}, but a distribution name can't begin with this text"
        expected = "letters and digits, with a single '-', '_', or '.' between them, such as torch-device"
        raise InputError(option, found, expected=expected) from e


def is_device_extra(extra: str) -> bool:
    """Return whether an extra is named for device wheels, either for one target or for all targets."""
    name = canonicalize_name(extra)
    return name == ALL_EXTRA or name.startswith(f"{_EXTRA}gfx")


def is_family(target: str) -> bool:
    """Return whether the name of a target or family, normalized or not, belongs to a family."""
    return any(find_family(spelling) is not None for spelling in (target, target.replace("-", "_")))


class DeviceNames(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution's device wheels; ``targets`` contains the base targets and families that have a wheel."""

    prefix: str
    """The prefix of the wheels' names, such as ``torch-device`` or ``amd-torch-device``."""
    version: str
    targets: tuple[str, ...]

    def distribution(self, target: str) -> str:
        """Return the normalized name of the wheel for a target or family, such as ``torch-device-gfx12-0``."""
        return canonicalize_name(f"{self.prefix}-{target}")

    def pin(self, target: str) -> str:
        """Return a requirement that only the wheel from the same split satisfies."""
        return f"{self.distribution(target)} == {self.version}"

    def extra_of(self, target: str) -> str:
        """Return the extra that requests a target's wheel."""
        return canonicalize_name(f"{_EXTRA}{target}")

    @property
    def single_targets(self) -> tuple[str, ...]:
        """The targets that aren't families."""
        return tuple(target for target in self.targets if find_family(target) is None)

    def families_of(self, target: str) -> tuple[str, ...]:
        """Return the families that ``target`` belongs to and that have their own wheel, smallest first.

        Files in a family's wheel also serve the target.
        """
        found = [(family, name) for name in self.targets if (family := find_family(name)) and target in family.targets]
        return tuple(name for _, name in sorted(found, key=lambda pair: (len(pair[0].targets), pair[1])))

    def requirements(self) -> tuple[str, ...]:
        """Return the host wheel's requirements for each extra."""
        chains = [
            f'{self.pin(name)}; extra == "{self.extra_of(target)}"'
            for target in self.single_targets
            for name in (target, *self.families_of(target))
        ]
        return (*chains, *(f'{self.pin(target)}; extra == "{ALL_EXTRA}"' for target in self.targets))

    def extras(self) -> tuple[str, ...]:
        """Return the host wheel's extras; families have no extras."""
        return (*map(self.extra_of, self.single_targets), ALL_EXTRA)


def unpacked_name(info: Path, wheel: bytes) -> str:
    """Return a wheel file name, made from the name of ``.dist-info`` and the build number and all tags in WHEEL.

    Raises `InputError` for an invalid build number or invalid tags, and for a name that refers to another folder.
    """
    headers = wheel_headers(wheel)
    tags = [tag for tag in (value.split("-") for key, value in headers if key == "tag") if len(tag) == 3]
    build = "".join(f"-{value}" for key, value in headers if key == "build")
    compressed = "-".join(".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True)) or "py3-none-any"
    name = f"{info.name.removesuffix('.dist-info')}{build}-{compressed}.whl"
    plain = f"x-1{build}-{compressed}.whl"
    # With a dash in the build number, the name may look like a variant's name.
    if not is_file_name(name) or not is_distribution_name(plain) or without_label(plain) != plain:
        found = f"results in the file name {quoted(name)}"
        raise InputError(info / "WHEEL", found, expected="a valid build number and valid tags for a wheel name")
    return name


_WRITTEN_ANEW = ("METADATA", "WHEEL", "RECORD", DECLARATION_NAME, *SIGNATURES)


class FinishedWheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel with its metadata.

    The text fields contain files from ``.dist-info``; a field is `None` if its file is missing.
    """

    path: str
    dist_info: str
    members: tuple[ZipMember, ...]
    metadata: bytes
    wheel: bytes
    declaration: bytes | None
    fields: RawMetadata
    tags: tuple[str, ...]
    """The tags, as listed in WHEEL."""
    is_purelib: bool
    build: str
    """The build number, or an empty string if the wheel has no build number."""
    file_tags: str
    """The compressed tags in the file name."""
    shown: str = ""
    """The name in messages, which is the folder that the wheel was packed from, or an empty string to use the path."""

    @property
    def source(self) -> str:
        """The wheel's name in messages."""
        return self.shown or self.path

    def source_of(self, member: ZipMember) -> str:
        """Return a member's name in messages."""
        return f"{self.shown}/{member.name}" if self.shown else member.source

    @property
    def shown_names(self) -> dict[str, str]:
        """Each member's name in messages, keyed by the member's name in the wheel."""
        return {member.name: self.source_of(member) for member in self.kept_members}

    @property
    def name(self) -> str:
        """The distribution's name, as written in METADATA."""
        return self.fields["name"]

    @property
    def version(self) -> str:
        """The version, as written in METADATA."""
        return self.fields["version"].strip()

    @property
    def kept_members(self) -> tuple[ZipMember, ...]:
        """The members that aren't rewritten, in archive order."""
        anew = {f"{self.dist_info}/{name}" for name in _WRITTEN_ANEW}
        return tuple(member for member in self.members if member.name not in anew)

    def licenses(self) -> dict[str, ZipMember]:
        """Return the license texts, keyed by their names in METADATA, or otherwise by their paths.

        If neither METADATA nor ``.dist-info`` has any license texts, return the license texts next to the code.
        """
        by_name = {member.name: member for member in self.members}
        found = {}
        for name in self.fields.get("license_files", ()):
            places = (f"{self.dist_info}/licenses/{name}", f"{self.dist_info}/{name}")
            if member := next((by_name[place] for place in places if place in by_name), None):
                found[name] = member
        known = {member.name for member in found.values()}
        return found | {
            name: member for member in self.members if member.name not in known and (name := self._license(member))
        } or {member.name: member for member in self.members if _is_text_of_license(member.name)}

    def _license(self, member: ZipMember) -> str:
        """Return the name of a license text in ``.dist-info``, or an empty string for another member."""
        folder, _, name = member.name.partition("/")
        if folder != self.dist_info or name.endswith("/"):
            return ""
        if name.startswith("licenses/"):
            return name.removeprefix("licenses/")
        return name if "/" not in name and is_license_name(name) else ""


def _is_text_of_license(path: str) -> bool:
    """Return whether a member is named like a license text and isn't a module about licenses."""
    name = path.rpartition("/")[2]
    return is_license_name(name) and not name.endswith((".py", ".pyi", ".pyc", ".so", ".h", ".json"))


def read_finished_wheel(path: Path, shown: str = "") -> FinishedWheel:
    """Read a wheel, unpacking only its metadata; ``shown``, or by default the path, identifies the wheel in messages.

    Raises `InputError`, or `ProblemsError` for several problems, for files that aren't wheels, damaged wheels, and
    wheel variants (a draft). Also raises errors for members that installers refuse, and for a missing METADATA, WHEEL,
    name, or version. There must be exactly one ``.dist-info``, and the name and version must match the file name.
    """
    source = shown or str(path)
    if label := split_label(path.name)[1]:
        raise _refuse_variant(source, label)
    project, version = _parse_name(path, source)
    members = read_directory(path)
    dist_info = find_dist_info(source, (member.name for member in members))
    if f"{dist_info}/{load_draft().names.in_wheel}" in {member.name for member in members}:
        raise _refuse_variant(source, "")
    refuse_outside(source, members)
    texts = _read_texts(source, dist_info, members)
    place = f"{dist_info}/METADATA"
    fields = _parse_metadata(f"{shown}/{place}" if shown else f"{path}!{place}", texts["METADATA"])
    check_identity(source, fields, project, version)
    headers = wheel_headers(texts["WHEEL"])
    parts = split_wheel_file_name(path.name)
    return FinishedWheel(
        path=str(path),
        shown=shown,
        dist_info=dist_info,
        members=members,
        metadata=texts["METADATA"],
        wheel=texts["WHEEL"],
        declaration=texts.get(DECLARATION_NAME),
        fields=fields,
        tags=tuple(value for key, value in headers if key == "tag"),
        is_purelib=("root-is-purelib", "true") in [(key, value.lower()) for key, value in headers],
        build="".join(parts.stem.split("-")[2:]),
        file_tags="-".join(parts.tags),
    )


def read_checked_wheel(path: Path, shown: str = "") -> FinishedWheel:
    """Read a wheel like `read_finished_wheel`, and check all its members against RECORD before they are copied.

    Also raises the same errors as `check_members`. A ``shown`` wheel was just packed from a folder, and isn't checked.
    """
    wheel = read_finished_wheel(path, shown)
    if not shown:
        with open_workers() as executor:
            check_members(path, wheel.members, executor=executor)
    return wheel


def _refuse_variant(source: str, label: str) -> InputError:
    """Return the error for a wheel variant (:pep:`825`, a draft), which would lack code for its GPUs after a split."""
    found = f"is a wheel variant{f' ({label})' if label else ''}, which contains its own code"
    remedy = (
        "Split the wheel without a variant, and create variants of its device wheels with `rocwheel index --variants`."
    )
    return InputError(source, found, expected="a wheel without a variant", remedy=remedy)


def _parse_name(path: Path, source: str) -> tuple[str, Version]:
    """Return the normalized project and the version from the file name."""
    if path.suffix != ".whl" or not is_distribution_name(path.name):
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM.whl"
        raise InputError(source, "doesn't have a wheel file name", expected=expected)
    named = parse_path(path)
    return named.project, named.version


def _read_texts(source: str, dist_info: str, members: tuple[ZipMember, ...]) -> dict[str, bytes]:
    by_name = {member.name: member for member in members}
    absent = [name for name in ("METADATA", "WHEEL") if f"{dist_info}/{name}" not in by_name]
    raise_all(source, [InputError(source, f"has no {dist_info}/{name}", expected="a wheel") for name in absent])
    wanted = [name for name in ("METADATA", "WHEEL", DECLARATION_NAME) if f"{dist_info}/{name}" in by_name]
    return {name: read_member(by_name[f"{dist_info}/{name}"]) for name in wanted}


def _parse_metadata(source: str, text: bytes) -> RawMetadata:
    try:
        fields, _ = parse_core_metadata(text)
    except CoreMetadataError as e:
        raise InputError(source, f"can't be read: {e}") from e
    absent = [field for field in ("Name", "Version") if not fields.get(field.lower())]
    raise_all(
        source, [InputError(source, f"has no {field}, or more than one", expected="exactly one") for field in absent]
    )
    return fields


_ONE_EXTRA = re.compile('extra == "([^"]+)"')
_DEVICE_NAME = re.compile("(.+)-(gfx[0-9a-z-]+)")


def asked_for_by(text: str, host: FinishedWheel) -> tuple[str, str]:
    """Return the device wheel that a requirement of ``host`` specifies, and its extra, or two empty strings.

    Such a requirement pins the host's version, and its name ends with a target or family. It applies only to an extra
    ``device-gfx…`` or ``device-all``, in the form that splitters write.
    """
    for found in readable_requirements([text]):
        name, extra = canonicalize_name(found.name), _ONE_EXTRA.fullmatch(str(found.marker))
        if (
            extra
            and is_device_extra(extra[1])
            and _DEVICE_NAME.fullmatch(name)
            and _pins(found.specifier, host.version)
        ):
            return name, extra[1]
    return "", ""


def device_names(host: FinishedWheel) -> frozenset[str]:
    """Return the names of a host wheel's device wheels, including families, or an empty set if it isn't split."""
    return frozenset(name for text in host.fields.get("requires_dist", ()) if (name := asked_for_by(text, host)[0]))


def is_device_wheel_of(wheel: FinishedWheel, host: FinishedWheel) -> bool:
    """Return whether a wheel is from the split that created ``host``: each wheel requires the other's exact version."""
    return canonicalize_name(wheel.name) in device_names(host) and _requires_exactly(wheel, host)


def looks_made_from(wheel: FinishedWheel, host: FinishedWheel) -> bool:
    """Return whether a wheel with a device wheel's name belongs to ``host``, if the host's METADATA doesn't list it."""
    return _requires_exactly(wheel, host) and any(
        is_device_mark(member) or member.name.endswith(".kpack") for member in wheel.members
    )


def check_device_wheel(device: FinishedWheel, host: FinishedWheel) -> None:
    """Raise `InputError` for a wheel that isn't a device wheel of exactly this host wheel."""
    if is_device_wheel_of(device, host):
        return
    wanted = f"{canonicalize_name(host.name)}=={host.version}"
    found = f"doesn't require {wanted}"
    if _requires_exactly(device, host):
        found = f"requires {wanted}, which has no extra that requests this wheel"
    raise InputError(device.path, found, expected=f"a device wheel of {host.path}")


def is_device_wheel(wheel: FinishedWheel) -> bool:
    """Return whether a wheel is from a split, based on its file for pip, or on its name and its archives."""
    prefix, target = split_device_name(wheel.name)
    is_called_so = target != "" and prefix.endswith("-device")
    return any(is_device_mark(member) or (is_called_so and member.name.endswith(".kpack")) for member in wheel.members)


def is_device_mark(member: ZipMember) -> bool:
    """Return whether a member is the empty file that a device wheel has for pip."""
    return not member.size and member.name.rpartition("/")[2].startswith(".device-")


def split_device_name(name: str) -> tuple[str, str]:
    """Return the prefix of a host's device wheel names, and the target or family, both normalized.

    The target is empty if the name doesn't end with a target or family.
    """
    normal = canonicalize_name(name)
    match = _DEVICE_NAME.fullmatch(normal)
    return (match[1], match[2]) if match else (normal, "")


def own_requirements(device: FinishedWheel, host: FinishedWheel) -> list[str]:
    """Return a device wheel's requirements, except those for its host and the host's other device wheels."""
    known = {canonicalize_name(host.name), *device_names(host)}
    texts = device.fields.get("requires_dist", ())
    return [
        text for text in texts for found in readable_requirements([text]) if canonicalize_name(found.name) not in known
    ]


def _requires_exactly(wheel: FinishedWheel, other: FinishedWheel) -> bool:
    """Return whether a wheel requires the exact version of another wheel, with or without extras."""
    required = readable_requirements(wheel.fields.get("requires_dist", ()))
    pinned = [found for found in required if found.marker is None and _pins(found.specifier, other.version)]
    return canonicalize_name(other.name) in {canonicalize_name(found.name) for found in pinned}


def _pins(specifiers: SpecifierSet, version: str) -> bool:
    return [(one.operator, one.version) for one in specifiers] == [("==", version)]


_FIRST_WITH_EXTRAS = (2, 1)
_COPIED = {
    "requires_python": ("Requires-Python", "a version specifier such as '>=3.10'"),
    "license_expression": ("License-Expression", "an SPDX expression such as 'MIT OR Apache-2.0'"),
}
"""The fields that device wheels copy from their host: the spelling in METADATA, and the allowed values."""
_CR_ALONE = re.compile(rb"\r(?!\n)")


def check_copied(wheel: FinishedWheel) -> None:
    """Raise `InputError`, or `ProblemsError` for several problems, for METADATA that prevents a split.

    The problems are headers with lines that end in a bare CR, and invalid values that would also be copied to device
    wheels.
    """
    place = f"{wheel.source}: METADATA"
    if _CR_ALONE.search(re.split(rb"(?<=\n)\r?\n", wheel.metadata, maxsplit=1)[0]):
        raise InputError(place, "has a line that ends with only CR", expected="lines that end with LF or CR LF")
    raise_all(
        wheel.source,
        [
            InputError(place, f"has {header} {quoted(str(wheel.fields.get(field)))}", expected=expected)
            for field, (header, expected) in _COPIED.items()
            if field in wheel.fields and not _is_valid(field, wheel.fields)
        ],
    )


def _is_valid(field: str, fields: RawMetadata) -> bool:
    try:
        Metadata.from_raw({"metadata_version": "2.4", "name": "x", "version": "1", field: fields.get(field)})  # type: ignore[misc]
    except ExceptionGroup:
        return False
    return True


def check_requirements(texts: Iterable[str], source: str, *, target: str = "") -> None:
    """Raise `InputError`, or `ProblemsError` for several problems, for invalid requirements.

    With a ``target``, ``@GFXARCH@`` may be a placeholder for the target.
    """
    expected = f"a requirement, such as {f'rocm-sdk-device-{PLACEHOLDER}==7.14' if target else 'rocm-bootstrap'!r}"
    raise_all(
        source,
        [
            InputError(source, f"{quoted(text)} is {error}", expected=expected)
            for text in texts
            if (error := _error_of(text.replace(PLACEHOLDER, target) if target else text))
        ],
    )


def _error_of(text: str) -> str:
    try:
        parse_requirement(text)
    except RequirementError as e:
        return str(e)
    return ""


def host_metadata(wheel: FinishedWheel, names: DeviceNames, requires: Sequence[str] = ()) -> bytes:
    """Return the host wheel's METADATA: all fields of the wheel, the extras for device wheels, and ``requires``."""
    old = {*wheel.fields.get("provides_extra", ())}
    metadata = add_values(wheel.metadata, "Provides-Extra", [extra for extra in names.extras() if extra not in old])
    metadata = add_requirements(metadata, [*requires, *names.requirements()])
    numbers = wheel.fields.get("metadata_version", "").split(".")
    knows_extras = all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= _FIRST_WITH_EXTRAS
    return metadata if knows_extras else set_values(metadata, "Metadata-Version", ["2.1"])


def joined_metadata(host: FinishedWheel) -> bytes:
    """Return a joined wheel's METADATA, which is the host's METADATA without references to device wheels.

    An extra stays if it also requests other packages.
    """
    texts = host.fields.get("requires_dist", ())
    gone = {extra for text in texts if (extra := asked_for_by(text, host)[1])}
    kept = {extra for text in texts if not asked_for_by(text, host)[0] for extra in gone if _is_asked_for(extra, text)}
    metadata = drop_values(host.metadata, "Requires-Dist", lambda text: asked_for_by(text, host)[0] != "")
    return drop_values(metadata, "Provides-Extra", lambda extra: canonicalize_name(extra) in gone - kept)


def _is_asked_for(extra: str, text: str) -> bool:
    """Return whether a requirement depends on an extra."""
    return any(f'extra == "{extra}"' in str(found.marker) for found in readable_requirements([text]))


def device_metadata(wheel: FinishedWheel, names: DeviceNames, target: str, requires: Sequence[str] = ()) -> bytes:
    """Return METADATA for the wheel of a target or family.

    The wheel requires the exact version of its host wheel, the wheels of families that serve the target, and
    ``requires``.
    """
    family = find_family(target)
    chain = [names.pin(other) for other in names.families_of(target)]
    fields = wheel.fields
    served = f"{target} GPUs" if family is None else f"GPUs in the family {target}: {', '.join(family.targets)}"
    return render_metadata(
        CoreMetadata(
            name=names.distribution(target),
            version=wheel.version,
            summary=f"{wheel.name} device code for {served}",
            requires_python=fields.get("requires_python", ""),
            license=fields.get("license", ""),
            license_expression=fields.get("license_expression"),
            license_files=tuple(wheel.licenses()),
            requires=(f"{wheel.name} == {wheel.version}", *chain, *requires),
        )
    )


def device_wheel_file(wheel: FinishedWheel) -> bytes:
    """Return WHEEL for a device wheel, with the same platforms and the same installation folder as its host wheel.

    The tags are the file name's tags, which installers use. The host's WHEEL may lack tags or list other tags, because
    tools that rename a finished wheel leave ``linux_x86_64`` in it.
    """
    named = expand_tags(*wheel.file_tags.split("-"))
    tags = wheel.tags if sorted(wheel.tags) == sorted(named) else named
    text = render_wheel_file(f"rocwheel {rocwheel.__version__}", tags, is_purelib=wheel.is_purelib)
    return text + f"Build: {wheel.build}\n".encode() if wheel.build else text


class WheelSplitOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for splitting a wheel: which code to keep, and the names and requirements of the new wheels."""

    choice: SplitChoice
    overlay_root: str = ""
    """The folder that device wheels add to, or an empty string for the folder with device code."""
    device_prefix: str = ""
    """The prefix of device wheel names, or an empty string for the wheel's name plus ``-device``."""
    host_requires: tuple[str, ...] = ()
    """Additional requirements for the host wheel."""
    device_requires: tuple[str, ...] = ()
    """Additional requirements for device wheels; ``@GFXARCH@`` represents the wheel's target."""
    kept_requires: dict[str, tuple[str, ...]] = {}
    """Literal requirements that replace `device_requires` for some targets, keyed by normalized name."""
    jobs: int = 1
    dry_run: bool = False
    """Whether this is a dry run, which writes nothing. If so, wheels have no size in the report."""
    progress: Progress = SILENT

    def requires_of(self, target: str) -> tuple[str, ...]:
        """Return the additional requirements for the device wheel of a target or family."""
        kept = self.kept_requires.get(canonicalize_name(target))
        if kept is not None:
            return kept
        is_shared = is_family(target)
        return tuple(
            text.replace(PLACEHOLDER, target)
            for text in self.device_requires
            if not (is_shared and PLACEHOLDER in text)
        )


def check_order(order: WheelSplitOrder) -> None:
    """Raise `InputError`, or `ProblemsError` for several problems, for an invalid name or invalid requirements."""
    prefixes = [order.device_prefix] if order.device_prefix else []
    checks: tuple[Callable[[], object], ...] = (
        lambda: map_collecting("--device-name", check_prefix, prefixes),
        lambda: check_requirements(order.host_requires, "--host-requires-dist"),
        lambda: check_requirements(order.device_requires, "--device-requires-dist", target="gfx900"),
    )
    map_collecting("options", lambda check: check(), checks)
