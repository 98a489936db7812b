"""Places and edits in the units of the protocol."""

import pytest

from emberlint.server.positions import DocumentPlace, DocumentText, Edit

LINE = "a = 'é', '𝕏', b\r\n"


@pytest.mark.parametrize("encoding, units", [("utf-8", [5, 7, 16]), ("utf-16", [5, 6, 13]), ("utf-32", [5, 6, 12])])
def test_columns_are_counted_in_the_units_of_the_connection(encoding: str, units: list[int]) -> None:
    text = DocumentText("\n" + LINE, encoding)
    for column, character in zip((6, 7, 13), units, strict=True):
        assert text.place(2, column) == DocumentPlace(1, character)
        assert text.line_and_column(DocumentPlace(1, character)) == (2, column)
    assert text.line_and_column(DocumentPlace(1, 99)) == (2, len(LINE) - 1)
    assert text.line_and_column(DocumentPlace(9, 3)) == (10, 1)


@pytest.mark.parametrize(
    "before, after, edits",
    [
        ("a\nb\nc\n", "a\nB\nc\n", [Edit(DocumentPlace(1, 0), DocumentPlace(2, 0), "B\n")]),
        ("a\nb", "a\nc", [Edit(DocumentPlace(1, 0), DocumentPlace(1, 1), "c")]),
        ("a\nb\n", "i\na\nb\n", [Edit(DocumentPlace(0, 0), DocumentPlace(0, 0), "i\n")]),
        ("a\nb\n", "a\n", [Edit(DocumentPlace(1, 0), DocumentPlace(2, 0), "")]),
        ("a\nb\n", "a\nb\nc\n", [Edit(DocumentPlace(2, 0), DocumentPlace(2, 0), "c\n")]),
        ("a\r\nb\r\n", "a\r\nB\r\n", [Edit(DocumentPlace(1, 0), DocumentPlace(2, 0), "B\r\n")]),
        ("a\n", "a\n", []),
        ("", "a\n", [Edit(DocumentPlace(0, 0), DocumentPlace(0, 0), "a\n")]),
    ],
)
def test_edits_lead_from_one_text_to_the_other(before: str, after: str, edits: list[Edit]) -> None:
    assert [*DocumentText(before).edits(after)] == edits
