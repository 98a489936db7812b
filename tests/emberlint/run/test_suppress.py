"""Suppression comments: the lines they cover."""

from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run.engine import check_texts
from emberlint.run.registry import all_rules

SETTINGS = Settings(root=Path("/nowhere"))


def codes(source: str, selected: frozenset[str] = frozenset(all_rules())) -> list[str]:
    report = check_texts({"library/module.py": source}, SETTINGS, selected)
    return [f"{one.line}:{one.code}" for one in report.findings]


@pytest.mark.parametrize(
    "source",
    [
        "import numpy  # emberlint: ignore[EMB101]\n",
        "import numpy  # emberlint: ignore[backend-import] -- oracle\n",
        "import numpy  # noqa: F401  # emberlint: ignore[EMB101]\n",
        "import numpy  #emberlint:ignore[ EMB101 , ]\n",
        "import numpy  # noqa: EMB101\n",
        "import numpy  # noqa: F401, EMB101 -- the oracle\n",
        "from numpy import (\n    sin,  # NOQA:EMB101\n    cos,\n)\n",
        "# emberlint: file-ignore[EMB101]\nimport numpy\nimport torch\n",
        "import numpy\nimport torch\n# emberlint: file-ignore[EMB101]\n",
        "# emberlint: off[EMB101]\nimport numpy\n\nimport torch\n# emberlint: on[EMB101]\n",
        "# emberlint: off[EMB101]\nimport numpy\n# emberlint: on\n",
        "from numpy import (  # emberlint: ignore[EMB101]\n    sin,\n    cos,\n)\n",
        "from numpy import (\n    sin,\n    cos,  # emberlint: ignore[EMB101]\n)\n",
        "import torch  # emberlint: ignore[EMB101]\n\n"
        "@torch.no_grad()  # emberlint: ignore[EMB102]\ndef f():\n    return 1\n",
        "import torch  # emberlint: ignore[EMB101]\n\n"
        "@torch.no_grad()\ndef f(  # emberlint: ignore[EMB102]\n    x,\n):\n    return 1\n",
    ],
)
def test_a_suppression_comment_silences_the_finding(source: str) -> None:
    assert [one for one in codes(source) if "EMB903" not in one] == []


def test_a_header_does_not_cover_its_body() -> None:
    source = "import torch  # emberlint: ignore[EMB101]\n\ndef f():  # emberlint: ignore[EMB102]\n    torch.ones(3)\n"
    assert codes(source) == ["3:EMB901", "4:EMB102"]


def test_a_body_does_not_cover_its_header() -> None:
    source = (
        "import torch  # emberlint: ignore[EMB101]\n\nif torch.is_grad_enabled():\n    # emberlint: ignore[EMB102]\n"
        "    x = 1  # emberlint: ignore[EMB102]\n"
    )
    assert codes(source) == ["3:EMB102", "4:EMB901", "5:EMB901"]


def test_only_the_named_code_is_silenced() -> None:
    assert codes("import numpy  # emberlint: ignore[EMB103]\n") == ["1:EMB101", "1:EMB901"]


def test_text_inside_a_string_is_not_a_suppression() -> None:
    assert codes("'''\n# emberlint: file-ignore[EMB101]\n'''\nimport numpy\n") == ["4:EMB101"]


def test_rules_that_did_not_run_have_no_unused_suppressions() -> None:
    source = "x = 1  # emberlint: ignore[EMB102]\n"
    assert codes(source) == ["1:EMB901"]
    assert codes(source, frozenset({"EMB000", "EMB101", "EMB901"})) == []


def test_each_off_comment_ends_at_the_on_comment_of_its_code() -> None:
    source = (
        "# emberlint: off[EMB101]\nimport numpy\n# emberlint: off[EMB102]\nx = numpy.pi\n"
        "# emberlint: on[EMB101]\nimport torch\ny = numpy.e\n# emberlint: on[EMB102]\nz = numpy.e\n"
    )
    assert codes(source) == ["6:EMB101", "9:EMB102"]


def test_a_file_that_does_not_parse_cannot_be_silenced() -> None:
    assert codes("# emberlint: file-ignore[EMB000]\nx = (\n") == ["2:EMB000"]


def test_noqa_of_other_linters_silences_nothing() -> None:
    for comment in ("# noqa", "# noqa: F401", "# noqa: E501, F401"):
        assert codes(f"import numpy  {comment}\n") == ["1:EMB101"]
    assert codes("x = 1  # noqa: EMB101\n") == ["1:EMB901"]
