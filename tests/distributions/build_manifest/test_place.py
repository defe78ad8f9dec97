"""Where manifests and checksums stand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwheel.core.errors import InputError, ProblemsError, WorkError
from rocwheel.distributions.build_manifest.place import check_manifest_place, remove_manifest, write_manifest
from rocwheel.distributions.build_manifest.provenance import make_predicate, render_json
from rocwheel.distributions.build_manifest.read import read_manifest
from tests.distributions.build_manifest.manifests import manifest_of

MANIFEST = manifest_of({"dist/a.whl": b"a"})


def test_the_manifest_is_written_and_goes_with_its_checksums(tmp_path: Path) -> None:
    assert write_manifest(tmp_path, MANIFEST) == tmp_path / "rocwheel-build.json"
    assert read_manifest(tmp_path / "rocwheel-build.json") == MANIFEST
    check_manifest_place(tmp_path)
    remove_manifest(tmp_path)
    assert list(tmp_path.iterdir()) == []
    remove_manifest(tmp_path)


def test_a_folder_that_is_not_there_yet_is_fine(tmp_path: Path) -> None:
    check_manifest_place(tmp_path / "new")
    remove_manifest(tmp_path / "new")


@pytest.mark.parametrize(
    "line", [f"{'0' * 64}  base_lib_generic.tar.xz", f"{'0' * 64}  dist/app.js", f"{'x' * 64}  dist/b.whl"]
)
def test_checksums_of_other_files_are_never_replaced(tmp_path: Path, line: str) -> None:
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  dist/a.whl\n{line}\n")
    with pytest.raises(InputError, match="SHA256SUMS: holds checksums of other files than a build's; expected nothing"):
        check_manifest_place(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_is_told_for_both(tmp_path: Path, kind: str) -> None:
    for name in ("rocwheel-build.json", "SHA256SUMS"):
        if kind == "folder":
            (tmp_path / name).mkdir()
        elif kind == "link":
            (tmp_path / name).symlink_to("elsewhere")
        else:
            os.mkfifo(tmp_path / name)
    with pytest.raises(ProblemsError) as caught:
        check_manifest_place(tmp_path)
    found = "a symlink" if kind == "link" else "not a file"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path / name}: is {found}; expected nothing, or what an earlier build wrote. "
        "Move it, or change --dest-dir."
        for name in ("rocwheel-build.json", "SHA256SUMS")
    ]


def test_a_manifest_that_can_t_be_removed_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "rocwheel-build.json").mkdir()
    with pytest.raises(WorkError, match=r"rocwheel-build\.json: can't be written"):
        remove_manifest(tmp_path)


@pytest.mark.parametrize("dest_dir", [".", "{}", "../{0.name}"])
def test_attestations_of_an_earlier_build_go_and_other_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest_dir: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "attestations"
    (folder / "gfx906").mkdir(parents=True)
    predicate = make_predicate(manifest_of({}), b"{}")
    statement = {"_type": "", "subject": [], "predicateType": "", "predicate": predicate}
    (folder / "provenance.json").write_bytes(render_json(predicate))
    (folder / "gfx906/a.whl.intoto.json").write_bytes(render_json(statement))
    others = {
        "b.whl.intoto.json": b'{"payload": "c2lnbmVk"}',
        "c.whl.intoto.json": render_json({"payload": statement, "signatures": []}),
        "d.whl.intoto.json": b"-----BEGIN PGP SIGNED MESSAGE-----\n\n" + render_json(statement),
        "notes.txt": b"",
    }
    for name, data in others.items():
        (folder / name).write_bytes(data)
    remove_manifest(Path(dest_dir.format(tmp_path)))
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == [*others]


def test_attestations_behind_a_link_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/provenance.json").touch()
    (tmp_path / "attestations").symlink_to("other")
    remove_manifest(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["other", "provenance.json"]
