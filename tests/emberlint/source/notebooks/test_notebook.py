"""Notebooks as Python source: the way to the cells, to the file, and back from a repaired source."""

import json
from collections.abc import Sequence

import pytest

from emberlint.source.notebooks.notebook import Notebook, NotebookError
from tests.emberlint.notebooks import cell, notebook

CELLS = [
    cell(["# A title\n"], kind="markdown"),
    cell(["%matplotlib inline\n", "import numpy\n"]),
    cell(["%%bash\n", "ls\n"]),
    cell(["%%time\n", "x = 1  # é\n", "files = !ls\n", "x = 2"]),
]


def text_of(cells: Sequence[dict[str, object]] = CELLS, **options: object) -> str:
    return notebook(*cells, **options)


def test_the_code_cells_are_joined_and_each_line_knows_its_place() -> None:
    content = text_of()
    found = Notebook(content)
    lines = found.text.splitlines()
    file_lines = content.splitlines()
    for number, line in enumerate(lines, 1):
        place = found.place(number)
        if " cell " not in line:
            source = CELLS[place.cell - 1]["source"]
            assert isinstance(source, list)
            assert source[place.line - 1] == json.loads(file_lines[place.file_line - 1].strip().rstrip(","))
            assert found.joined_line(place.cell, place.line) == number
    assert [found.place(number).cell for number in range(1, len(lines) + 1)] == [2, 2, 2, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("number", [1, 3, 9])
def test_a_cell_without_python_has_no_lines(number: int) -> None:
    with pytest.raises(ValueError, match=f"cell {number} has no Python code"):
        Notebook(text_of()).joined_line(number, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"indent": 1},
        {"indent": 4, "ensure_ascii": True},
        {"indent": "\t", "end": ""},
        {"indent": None, "separators": (",", ":")},
        {"indent": 1, "line_end": "\r\n"},
        {"indent": 2, "sort_keys": True, "end": "\n\n"},
    ],
    ids=str,
)
@pytest.mark.parametrize("as_string", [False, True], ids=["lists", "strings"])
def test_a_replaced_source_changes_only_its_strings(options: dict[str, object], as_string: bool) -> None:
    def changed(text: str) -> str:
        return text.replace("import numpy", "import torch").replace("x = 1", "y = 1").replace("x = 2", "y = 2")

    cells = [{**one, "source": "".join(one["source"])} for one in CELLS] if as_string else CELLS  # type: ignore[arg-type]
    content = text_of(cells, **options)
    found = Notebook(content)
    assert found.json_with_text(found.text) == content
    assert found.json_with_text(changed(found.text)) == changed(content)


def test_lines_may_be_added_and_removed() -> None:
    found = Notebook(text_of(indent=1))
    after = found.text.replace("import numpy\n", "").replace("x = 2\n", "x = 2\nimport a\nimport b\n")
    again = json.loads(found.json_with_text(after))
    assert again["cells"][1]["source"] == ["%matplotlib inline\n"]
    assert again["cells"][3]["source"] == [
        "%%time\n",
        "x = 1  # é\n",
        "files = !ls\n",
        "x = 2\n",
        "import a\n",
        "import b",
    ]
    (_, _, _, last) = found.json_with_text(after).split('"source"')[1:]
    assert last.split("]")[0].count("\n    ") == 6  # each in a line of its own, indented as before


def test_an_empty_cell_may_be_filled() -> None:
    found = Notebook(text_of([cell([])]))
    again = json.loads(found.json_with_text(found.text + "x = 1\ny = 2\n"))
    assert again["cells"][0]["source"] == ["x = 1\n", "y = 2"]


@pytest.mark.parametrize(
    "change",
    [
        ("# emberlint-notebook cell 2\n", ""),
        ("pass  # emberlint-notebook line 0\n", ""),
        ("# emberlint-notebook cell 2\n", "import a\n# emberlint-notebook cell 2\n"),
        ("# emberlint-notebook line 1\n", "import a\n# emberlint-notebook line 1\n"),
    ],
)
def test_a_source_whose_cells_are_lost_is_refused(change: tuple[str, str]) -> None:
    found = Notebook(text_of())
    assert change[0] in found.text
    with pytest.raises(NotebookError):
        found.json_with_text(found.text.replace(*change))


def test_a_mark_in_the_code_is_no_mark() -> None:
    found = Notebook(text_of([cell(["x = '''\n", "# emberlint-notebook cell 7\n", "'''\n"]), cell(["y = 1\n"])]))
    assert [found.place(number).cell for number in range(1, 7)] == [1, 1, 1, 1, 2, 2]
    assert found.json_with_text(found.text) == found.content


@pytest.mark.parametrize(
    "metadata",
    [
        {"language_info": {"name": "R"}},
        {"kernelspec": {"language": "julia", "name": "julia-1.10", "display_name": "Julia"}},
    ],
)
def test_a_notebook_of_another_language_has_no_source(metadata: dict[str, object]) -> None:
    assert Notebook(text_of([cell(["x <- 1\n"])], metadata=metadata)).text == ""
    assert Notebook(text_of([cell(["x = 1\n"])], metadata={"kernelspec": {"name": "k"}})).text.endswith("x = 1\n")


def test_a_cell_of_another_language_in_an_editor_has_no_source() -> None:
    cells = [cell(["ls\n"], metadata={"vscode": {"languageId": "shellscript"}}), cell(["x = 1\n"])]
    assert Notebook(text_of(cells)).text == "# emberlint-notebook cell 2\nx = 1\n"


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "Expecting '{'"),
        ("[]", "Expecting '{'"),
        ("{", "Expecting"),
        ('{"cells": [}', "Expecting"),
        ("{}", "no number `nbformat`"),
        ('{"nbformat": 4}', "no list `cells`"),
        ('{"nbformat": 3, "worksheets": []}', "a notebook of format 3; `jupyter nbconvert"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "cell 1 has no source"),
        ('{"nbformat": 4, "cells": [{"cell_type": "sql", "source": ""}]}', "cell 1 has the type 'sql'"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "the source of cell 1 holds int"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": 1}]}', "Expecting"),
        ('{"nbformat": 4, "cells": []} x', "text after its JSON"),
        ('{"nbformat": 4, "cells": ' + "[" * 100_000, "not a notebook"),
    ],
)
def test_other_content_is_refused(content: str, message: str) -> None:
    with pytest.raises(NotebookError, match=message.replace("{", "\\{")):
        Notebook(content)
