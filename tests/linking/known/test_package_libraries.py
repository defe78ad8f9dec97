"""Packages that bring libraries of other names."""

from __future__ import annotations

import pytest

from rocwheel.environment.known_libraries import known_package_folders, package_of_library


@pytest.mark.parametrize(
    ("library", "packages", "package"),
    [
        ("libc10_cuda.so", ("numpy", "torch"), "torch"),
        ("libcudart.so.13", ("numpy", "torch"), "torch"),
        ("libparquet.so.2200", ("pyarrow",), "pyarrow"),
        ("libc10_cuda.so", ("numpy",), ""),
        ("libcurl.so", ("torch",), ""),
        ("libz.so.1", ("torch",), ""),
    ],
)
def test_a_library_is_brought_by_the_required_package_that_is_known_for_it(
    library: str, packages: tuple[str, ...], package: str
) -> None:
    assert package_of_library(library, packages) == package


def test_libraries_of_torch_are_known_to_be_in_its_folder() -> None:
    (torch,) = known_package_folders()
    assert (torch.distribution, torch.folder) == ("torch", "torch/lib")
    assert {"libtorch.so", "libtorch_hip.so", "libc10.so"} <= {*torch.libraries}
    assert "libtorchaudio.so" not in torch.libraries
