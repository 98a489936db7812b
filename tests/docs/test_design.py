"""The page on the design is short, and its drawing shows the house as it is."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("design.md", "programs.md", "steps.md", "life_of_a_call.md")


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", DOCS / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_at_most_300_lines_long() -> None:
    assert len((DOCS / "design.md").read_text(encoding="utf-8").splitlines()) <= 300


def test_the_drawing_shows_the_rooms_their_sentences_and_their_imports(house: ModuleType) -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawing(), "run `python docs/house.py`"
    text = " ".join(re.findall(r"<text [^>]*>([^<]*)</text>", house.drawing()))
    for room in house.imports():
        assert house.sentence(room)
        assert f"{room} {house.sentence(room)}" in text


def test_every_arrow_goes_down_as_the_import_contracts_say(house: ModuleType) -> None:
    rows = {room: row for row, floor in enumerate(house.floors()) for room in floor}
    drawn = re.findall(r'data-rooms="(\w+) (\w+)" d="M\S+ (\d+)L.* (\d+)"', house.PICTURE.read_text(encoding="utf-8"))
    assert {(room, other) for room, other, _, _ in drawn} == set(house.arrows())
    for room, other, start, end in drawn:
        assert rows[room] < rows[other], f"{room} is not above {other}"
        assert int(start) < int(end)


def test_the_arrows_lead_to_all_rooms_that_are_imported(house: ModuleType) -> None:
    arrows = house.arrows()

    def reached(room: str) -> set[str]:
        direct = {other for name, other in arrows if name == room}
        return direct.union(*map(reached, direct))

    for room, others in house.imports().items():
        assert others <= reached(room)
        assert room not in reached(room)


@pytest.mark.parametrize("page", PAGES)
def test_the_files_and_folders_that_a_page_names_exist(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    roots = (DOCS.parent, DOCS.parent / "emberharmony")
    for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?)`", text):
        assert any((root / name).exists() for root in roots), f"{page} names {name}"
