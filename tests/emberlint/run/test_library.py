"""Summaries of files in the cache: what makes a cached result outdated, and runs in several processes."""

from itertools import pairwise
from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.findings import Report
from emberlint.run import check as single
from emberlint.run import pool
from emberlint.run.engine import check
from emberlint.run.order import group_in_import_order
from emberlint.source.discover import discover

CODES = frozenset({"EMB201", "EMB304"})
TENSOR = "from emberharmony import ops\n\ndef f(x):\n    return ops.exp(x)\n"
NUMBER = "from emberharmony import ops\n\ndef f(x):\n    return 3\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(tmp_path, "library/low.py", TENSOR)
    write(tmp_path, "library/middle.py", "from library.low import f as g\n")
    write(tmp_path, "library/high.py", "from library.middle import g\n\ny = g(3) + 1\n")
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def run(root: Path, *paths: str, cached: bool = True, jobs: int = 1) -> Report:
    settings = Settings(root=root)
    return check(discover([root / path for path in paths] or [root], settings), settings, CODES, jobs, cached)


def places(report: Report) -> list[str]:
    return [f"{one.path}:{one.line}" for one in report.findings]


def test_a_change_reaches_the_files_that_import_a_name_indirectly(tree: Path) -> None:
    for text, expected in ((TENSOR, ["library/high.py:3"]), (NUMBER, []), (TENSOR, ["library/high.py:3"])):
        write(tree, "library/low.py", text)
        assert places(run(tree)) == expected
        assert places(run(tree)) == expected


def test_a_change_that_keeps_the_summary_checks_only_the_changed_file(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tree)
    write(tree, "library/low.py", f"{TENSOR}\n# a comment\n")
    seen: list[str] = []
    check_text = single.check_text
    monkeypatch.setattr(single, "check_text", lambda path, *rest: (seen.append(path), check_text(path, *rest))[1])
    assert places(run(tree)) == ["library/high.py:3"]
    assert seen == ["library/low.py"]


def test_a_single_file_is_checked_with_the_files_that_it_imports(tree: Path) -> None:
    for _ in range(2):
        report = run(tree, "library/high.py")
        assert places(report) == ["library/high.py:3"]
        assert {*report.beyond} >= {"library/low.py"}
    write(tree, "library/low.py", NUMBER)
    assert places(run(tree, "library/high.py")) == []


def test_a_new_file_that_replaces_a_module_is_seen(tree: Path) -> None:
    write(tree, "library/ops/numpy/math.py", "")
    write(tree, "library/user.py", "from library.ops import numpy\n")
    assert "library/user.py:1" in places(run(tree))
    write(tree, "library/ops/numpy.py", "")
    assert "library/user.py:1" not in places(run(tree))


def test_files_that_no_import_leads_to_are_not_seen_whatever_the_order(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`import library` does not load `library.low`, so the findings may not depend on when that file is checked."""
    use = "import library, numpy\n\ny = library.low.f(3) + 1\n"
    write(tree, "library/__init__.py", "")
    write(tree, "a.py", use)
    write(tree, "z.py", use)
    expected = ["library/high.py:3"]
    assert places(run(tree, "z.py", cached=False)) == []
    assert places(run(tree, cached=False)) == expected
    write(tree, "library/__init__.py", "from library import middle\n")  # which imports `library.low`
    expected = ["a.py:3", *expected, "z.py:3"]
    assert places(run(tree)) == expected
    monkeypatch.setattr(pool, "POOL_FROM", 0)
    monkeypatch.setattr(pool, "BATCH", 1)
    assert places(run(tree, cached=False, jobs=2)) == expected
    assert places(run(tree)) == expected


def test_several_processes_find_the_same(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        write(
            tree,
            f"library/part{number}.py",
            f"from library.middle import g\nfrom library.part{number - 1} import h\n"
            "\ndef h(x):\n    return g(x)\n\ny = h(3) + 1\n",
        )
    alone = run(tree, cached=False)
    assert len(alone.findings) == 9
    monkeypatch.setattr(pool, "POOL_FROM", 0)
    monkeypatch.setattr(pool, "BATCH", 2)
    assert run(tree, cached=False, jobs=2) == alone


def test_the_order_of_a_circle_does_not_depend_on_the_first_file() -> None:
    imported = {"a": "bc", "b": "d", "c": "", "d": "a", "e": "d"}
    edges = imported.__getitem__
    assert group_in_import_order("abcde", edges, edges) == [["c"], ["d", "b", "a"], ["e"]]
    for start in ("ae", "de", "eb"):
        groups = group_in_import_order(start, edges, edges)
        assert [one for one in groups if len(one) > 1] == [["d", "b", "a"]]
        assert groups[-1] == ["e"]


def test_a_circle_that_comes_and_goes_outdates_the_files_in_it(tree: Path) -> None:
    write(tree, "library/b.py", "from library.a import f\n\ny = f(3) + 1\n")
    for _ in range(2):
        write(tree, "library/a.py", TENSOR)
        assert places(run(tree, "library/b.py")) == ["library/b.py:3"]
        write(tree, "library/a.py", f"import library.b\n{TENSOR}")  # which comes after `library.b` then
        assert places(run(tree, "library/b.py")) == []


def test_imports_inside_functions_decide_the_order_of_a_circle_last() -> None:
    imported = {"a": "bd", "b": "c", "c": "a", "d": "c"}
    at_once = {"a": "b", "b": "c", "c": "", "d": ""}
    for start in "abcd":
        (group,) = group_in_import_order(start, imported.__getitem__, at_once.__getitem__)
        assert group.index("c") < group.index("b") < group.index("a")


BASE = """
from emberharmony import ops

class Base:
    def __init__(self):
        self.w = ops.ones(3)

    def late(self):
        from library import layers
        return layers
"""
LAYERS = """
from library import base
from library import helper

class Layer(base.Base):
    def f(self):
        return self.w + 1
"""


def test_a_base_class_is_known_although_its_package_imports_everything(tree: Path) -> None:
    write(tree, "library/__init__.py", "from library import base\nfrom library import layers\n")
    write(tree, "library/base.py", BASE)
    write(tree, "library/layers.py", LAYERS)
    write(tree, "library/helper.py", "import library\n")
    found = [one.line for one in run(tree, cached=False).findings if one.path == "library/layers.py"]
    assert found == [LAYERS.split("\n").index("        return self.w + 1") + 1]


def test_a_long_chain_of_imports_needs_no_recursion() -> None:
    paths = [f"{number:05}" for number in range(5000)]
    following = dict(pairwise(paths))

    def edges(path: str) -> list[str]:
        return [following[path]] if path in following else []

    groups = group_in_import_order(paths, edges, edges)
    assert [one for (one,) in groups] == paths[::-1]
