"""Case files are found where PUMICE_CASES says, and loaded without one test seeing what another did to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.testing import cases


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in ((first, ["b.yaml", "a.yaml"]), (second, ["c.yaml"])):
        (folder / "stories").mkdir(parents=True)
        for name in names:
            (folder / "stories" / name).write_text(f"id: {name}\nsteps: [1]\n")
    monkeypatch.setenv("PUMICE_CASES", f"{first}:{tmp_path / 'absent'}:{second}")
    return first, second


@pytest.mark.usefixtures("folders")
def test_all_folders_are_searched_and_missing_ones_passed_over() -> None:
    assert [file.name for file in cases.case_files("stories")] == ["a.yaml", "b.yaml", "c.yaml"]


@pytest.mark.usefixtures("folders")
def test_no_cases_is_an_empty_list() -> None:
    assert cases.case_files("no-such-folder") == []


def test_the_message_says_how_to_point_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUMICE_CASES", raising=False)
    assert "set PUMICE_CASES" in cases.missing("sessions")
    assert "../shared/cases" in cases.missing("sessions")


def test_a_change_does_not_reach_the_next_reader(folders: tuple[Path, Path]) -> None:
    path = folders[0] / "stories" / "a.yaml"
    cases.load(path)["steps"].append(2)
    assert cases.load(path) == {"id": "a.yaml", "steps": [1]}


def test_a_file_without_a_mapping_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("[1, 2]")
    with pytest.raises(TypeError, match=r"list\.yaml: a case file holds one mapping, not list"):
        cases.load(path)


@pytest.mark.cases("sessions")
def test_every_session_names_itself(case: Path) -> None:
    assert cases.load(case)["id"] == case.stem
