"""Names of import libraries for Windows."""

from __future__ import annotations

import pytest

from rocwheel.environment.known_libraries import GnuImportLibrary, gnu_import_libraries


@pytest.mark.parametrize(
    ("paths", "expected", "beside"),
    [
        pytest.param(["lib/libx.dll.a"], "lib/x.lib", "", id="alone"),
        pytest.param(["lib/libx.dll.a", "lib/x.lib"], "lib/x.lib", "lib/x.lib", id="without lib"),
        pytest.param(["lib/libx.dll.a", "lib/libx.lib"], "lib/x.lib", "lib/libx.lib", id="with lib"),
        pytest.param(["lib/LibX.DLL.A", "lib/x.LIB"], "lib/X.lib", "lib/x.LIB", id="another case"),
        pytest.param(["lib/libx.dll.a", "bin/x.lib"], "lib/x.lib", "", id="another folder"),
        pytest.param(["x.dll.a"], "x.lib", "", id="no folder"),
    ],
)
def test_an_import_library_of_gnu_linkers_has_a_name_that_others_expect(
    paths: list[str], expected: str, beside: str
) -> None:
    assert list(gnu_import_libraries(paths)) == [GnuImportLibrary(paths[0], expected, beside)]


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(["lib/amdhip64.lib", "lib/libz.a", "bin/a.dll"], id="other libraries"),
        pytest.param(["demo/_c.cp312-win_amd64.pyd", "demo/_c.cp312-win_amd64.dll.a"], id="extension module"),
    ],
)
def test_others_are_none(paths: list[str]) -> None:
    assert list(gnu_import_libraries(paths)) == []
