"""The explanation of a tensor: the steps back to the first evidence."""

from emberlint.config.settings import Settings
from emberlint.inference import FileInference
from emberlint.source.source_file import SourceFile

SOURCE = """from emberharmony import ops

class Box:
    def __init__(self):
        self.w = ops.ones(3)

    def f(self, n, parts: "list[Box]"):
        y = self.w
        return y * n, len(parts), [y]
"""


def explained(line: int) -> list[str]:
    return [*FileInference(SourceFile("library/module.py", SOURCE, Settings())).explain(line)]


def test_an_explanation_gives_the_steps_with_their_lines() -> None:
    text = "\n".join(explained(9))
    assert "y * n: a tensor, tier B" in text
    assert "bound to `y` (line 8)" in text
    assert "kept in `.w` (line 5)" in text
    assert "`emberharmony.ops.ones` returns a tensor (line 5)" in text
    assert "[y]: a container of tensors" in text
    assert "n: no evidence of a tensor" in text
    assert "len(parts): a number" in text


def test_an_empty_line_has_no_explanation() -> None:
    assert explained(2) == []
