"""Files that are for one target as a whole: kernel files, databases and kpack archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.core.workers import raise_all
from rocwheel.targets.kernel_files.check import check_kernel_file
from rocwheel.targets.kernel_files.classify import KernelFile, classify_path

if TYPE_CHECKING:
    from rocwheel.core.reading import Data
    from rocwheel.device.splitting.files import NamedFile

__all__ = ["find_kernels"]


def find_kernels(data: Data, file: NamedFile) -> KernelFile | None:
    """Return which target a file, whose bytes are ``data``, is for; none if it isn't for one alone.

    Raises `InputError` for a file whose name and content disagree, and for a damaged archive.
    """
    kernels = classify_path(file.path)
    if kernels is not None:
        raise_all(file.name, check_kernel_file(data, file.path, name=file.name))
        return kernels
    if not is_kpack(data):
        return None
    processors = read_archive(data, name=file.name).processors
    return KernelFile(min(processors), "kpack") if len(processors) == 1 else None
