"""Reading, in a folder of distributions, the packages that exist for each GPU: their metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import convert_all
from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.formats.wheel_file_name import is_wheel_file_name, name_and_version, split_wheel_file_name
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.dist_info import find_dist_info, find_metadata
from rocwheel.distributions.zip.reader import read_member
from rocwheel.packages.variants.gpu_package import GpuPackage, split_distribution
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["list_wheels", "read_packages"]


def list_wheels(dist_dir: Path) -> list[Path]:
    """Return the wheels that stand in a folder, by name; raise `InputError` for a folder that can't be listed."""
    try:
        paths = sorted(path for path in dist_dir.iterdir() if path.suffix == ".whl" and not path.name.startswith("."))
    except OSError as e:
        raise read_error(dist_dir, e, remedy="Give the folder that holds the wheels and sdists.") from e
    return [path for path in paths if is_wheel_file_name(path.name)]


def read_packages(dist_dir: Path) -> list[GpuPackage]:
    """Return the packages in a folder whose names end with a GPU.

    Raises `InputError` for a wheel that can't be read, `ProblemsError` for several.
    """
    wheels = [path for path in list_wheels(dist_dir) if _is_named_for_gpus(path)]
    return convert_all(str(dist_dir), _read, wheels)


def _is_named_for_gpus(path: Path) -> bool:
    return not split_wheel_file_name(path.name).label and split_distribution(name_and_version(path.name)[0]) is not None


def _read(path: Path) -> GpuPackage:
    distribution, version = name_and_version(path.name)
    name = split_distribution(distribution)
    assert name is not None, path
    members = {member.name: member for member in read_directory(path)}
    try:
        metadata = parse_core_metadata(read_member(members[find_metadata(path, members)]))[0]
    except CoreMetadataError as e:
        raise InputError(path, f"its metadata can't be read: {e}") from e
    return GpuPackage(
        *name,
        version,
        split_wheel_file_name(path.name).tags,
        _read_declared(path, members),
        tuple(metadata.get("requires_dist", ())),
        metadata.get("requires_python", ""),
    )


def _read_declared(path: Path, members: Mapping[str, ZipMember]) -> tuple[str, ...]:
    place = f"{find_dist_info(path, members)}/{DECLARATION_NAME}"
    if place not in members:
        return ()
    declaration = decode_declaration(read_member(members[place]), source=f"{path}!{place}")
    return tuple(dict.fromkeys(target.processor for target in declaration.targets))
