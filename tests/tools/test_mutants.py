"""The planted faults of `tools/mutants`: how they are found in a source, tried and counted."""

import functools
import importlib
import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''
class Layer:
    @property
    def size(self):
        return self.a + self.b  # a comment

    def call(self, x):
        """Returns é."""
        if x is None:
            return 0
        elif x == "é" and self.size > 2:
            x = x * 2; y = 1
            return x
        return f"{x + 1}" + str(x + 1)


def outer(a, b=1 + 2):
    def inner():
        return a + a
    return inner() + a + a
'''


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("mutants.catalogue"), importlib.import_module("mutants.planting")


def _mutant(mutants, function, original, replacement, **fields):
    module = importlib.import_module("mutants.mutant")
    given = {"name": "m", "module": "m.py", "tests": ("tests/core",), "why": "wrong"} | fields
    return module.Mutant(function=function, original=original, replacement=replacement, **given)


def _planted(mutants, *arguments, **fields):
    _, planting = mutants
    return planting.plant(_mutant(mutants, *arguments, **fields), planting.Module.parse("m.py", SOURCE))


@pytest.mark.parametrize(
    "function, original, replacement, before, after",
    [
        ("Layer.size", "self.a+self . b", "self.a - self.b", "self.a + self.b  #", "(self.a - self.b)  #"),
        ("Layer.size", "return self.a + self.b", "return 0", "return self.a + self.b  #", "return 0  #"),
        ("Layer.call", "x == 'é' and self.size > 2", "True", 'x == "é" and self.size > 2', "(True)"),
        ("Layer", "self.size > 2", "self.size >= 2", "self.size > 2", "(self.size >= 2)"),
        ("Layer.call", "x = x * 2\ny = 1", "y = 1\nx = 3", "x = x * 2; y = 1", "y = 1\n            x = 3"),
        ("Layer.call", "x + 1", "x + 2", "str(x + 1)", "str((x + 2))"),
        ("outer", "1 + 2", "4", "1 + 2", "(4)"),
        ("outer.inner", "a + a", "a", "return a + a", "return (a)"),
        ("outer", "return a + a", "pass", "return a + a", "pass"),
        ("", "inner() + a + a", "a", "inner() + a + a", "(a)"),
    ],
)
def test_only_the_named_part_changes(mutants, function, original, replacement, before, after):
    assert SOURCE.count(before) == 1
    assert _planted(mutants, function, original, replacement) == SOURCE.replace(before, after)


def test_the_second_of_two_equal_places(mutants):
    planted = _planted(mutants, "Layer.call", "2", "3", nth=2)
    assert planted == SOURCE.replace("x * 2", "x * (3)")


@pytest.mark.parametrize(
    "function, original, replacement, fields, message",
    [
        ("Layer.size", "self.c", "0", {}, "`self.c` is not found in Layer.size of m.py: copy"),
        ("Layer.area", "self.c", "0", {}, "m.py has no function or class 'Layer.area'"),
        ("Layer.call", "2", "3", {}, r"occurs 2 times in Layer.call of m.py \(lines 11, 12\): quote more"),
        ("Layer.call", "2", "3", {"nth": 3}, "nth is 3, but `2` occurs 2 times"),
        ("Layer.size", "self.a + self.b", "(self.a+self.b)", {}, "are the same program"),
        ("Layer.size", "self.a +", "0", {}, "neither an expression nor statements"),
        ("Layer.size", "self.a + self.b", "return 0", {}, "not found in Layer.size"),
    ],
)
def test_a_mutant_that_does_not_apply_says_what_to_do(mutants, function, original, replacement, fields, message):
    with pytest.raises(mutants[1].PlantingError, match=message):
        _planted(mutants, function, original, replacement, **fields)


def test_faults_of_the_catalogue_are_named(mutants):
    catalogue, _ = mutants
    fields = {"module": "emberharmony/core/axes.py"}
    first = _mutant(mutants, "", "0", "1", name="twice", **fields, tests=("tests/core/missing.py", "-k axes"), nth=1)
    second = _mutant(mutants, "", "no_such_name", "1", name="twice", **fields, tests=("tests/core/test_dtypes.py::no",))
    third = _mutant(mutants, "", "0", "1", name="moved", module="emberharmony/moved.py")
    text = "\n".join(catalogue.fault_messages({"core": [first, second], "io": [third]}, floor=4))
    for part in (
        "twice: 2 mutants have this name",
        "3 mutants are fewer than 4",
        "tests/core/missing.py does not exist",
        "test_dtypes.py has no test no",
        "`no_such_name` is not found in emberharmony/core/axes.py",
        "moved (tools/mutants/areas/io.py): emberharmony/moved.py does not exist",
    ):
        assert part in text


def test_results_last_until_the_mutant_its_module_or_its_tests_change(mutants, tmp_path):
    results = importlib.import_module("mutants.results")
    module, tests = tmp_path / "m.py", tmp_path / "tests" / "test_m.py"
    tests.parent.mkdir()
    module.write_text("x = 1")
    tests.write_text("def test_x(): pass")
    mutant = _mutant(mutants, "", "1", "2", tests=("tests/test_m.py -k x",))
    key = mutant.key(tmp_path)
    state = results.Results(tmp_path / ".state" / "results.json")
    state.add_result("m", results.Result(key, results.NOTICED, "test_x", 0.1))
    again = results.Results(state.path)
    assert again.has_result("m", key)
    assert json.loads(state.path.read_text())["mutants"]["m"]["outcome"] == "noticed"
    assert [file.name for file in state.path.parent.iterdir()] == ["results.json"]
    for file in (module, tests):
        file.write_text(file.read_text() + "  # changed")
        assert not again.has_result("m", mutant.key(tmp_path))
    again.forget_results(["m", "unknown"])
    assert not again.has_result("m", key)
    again = results.Results(state.path)
    assert not again.has_result("m", _mutant(mutants, "", "1", "3", tests=mutant.tests).key(tmp_path))


PACKAGE = {
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    ".gitignore": "__pycache__\n",
    "pack/__init__.py": "",
    "pack/m.py": "LIMIT = 3\n\ndef low(x):\n    return x < LIMIT\n\ndef loop(n):\n    return n\n",
    "tests/test_m.py": (
        "import pack.m\n\n"
        "def test_red():\n    assert False\n\n"
        "def test_low():\n    assert pack.m.low(2) and not pack.m.low(3)\n\n"
        "def test_number():\n    assert pack.m.loop(1)\n"
    ),
}


GONE = "'tests/test_m.py::test_low[1]' tests/test_m.py::test_number tests/test_m.py::test_low"
"""An entry that names a case which the test file does not have any more."""


@pytest.fixture
def trials(mutants, tmp_path, monkeypatch):
    """Returns the module of trials, for a small package in a repository of its own."""
    for name, content in PACKAGE.items():
        file = tmp_path / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "tree", check=True)
    module = importlib.import_module("mutants.trials")
    for name in ("mutant", "copies"):
        monkeypatch.setattr(importlib.import_module(f"mutants.{name}"), "ROOT", tmp_path / "tree")
    monkeypatch.setattr(importlib.import_module("mutants.mutant").Mutant.key, "__defaults__", (tmp_path / "tree",))
    monkeypatch.setattr(importlib.import_module("mutants.copies"), "LIBRARIES", ("pytest",))
    return module


@pytest.mark.fresh_process
def test_mutants_are_tried_in_a_copy(mutants, trials, tmp_path, monkeypatch):
    results = importlib.import_module("mutants.results")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    fields = {"module": "pack/m.py", "tests": ("tests/test_m.py -k low", "tests/test_m.py -k number")}
    beside = {"module": "pack/m.py", "tests": ("tests/test_m.py -k 'red or low'",)}
    planted = [
        _mutant(mutants, "low", "x < LIMIT", "x > LIMIT", name="beside", **beside),
        _mutant(mutants, "low", "x < LIMIT", "x <= LIMIT", name="wrong", **fields),
        _mutant(mutants, "low", "x < LIMIT", "LIMIT > x", name="right", **fields),
        _mutant(mutants, "", "3", "missing", name="import", **fields),
        _mutant(mutants, "", "3", "4", name="red", module="pack/m.py", tests=("tests/test_m.py -k red",)),
        _mutant(mutants, "", "3", "4", name="none", module="pack/m.py", tests=("tests/test_m.py -k absent",)),
        _mutant(mutants, "loop", "return n", "__import__('os').abort()", name="crash", **fields),
        _mutant(mutants, "low", "x < LIMIT", "x <= LIMIT", name="gone", module="pack/m.py", tests=(GONE,)),
    ]
    said = []
    kept = results.Results(tmp_path / ".mutants" / "results.json")
    trials.Trials(kept, 1, said.append).try_mutants(planted)
    found = {name: (result.outcome, result.by) for name, result in kept.mutants.items()}
    assert found == {
        "beside": (results.NOTICED, "tests/test_m.py::test_low"),
        "wrong": (results.NOTICED, "tests/test_m.py::test_low"),
        "right": (results.SURVIVED, ""),
        "import": (results.INVALID, ""),
        "red": (results.UNTRIED, ""),
        "none": (results.UNTRIED, ""),
        "gone": (results.NOTICED, "tests/test_m.py::test_low"),
        "crash": (results.NOTICED, "signal 6 of tests/test_m.py -k number"),
    }
    assert len(said) == 9
    trials.Trials(kept, 1, said.append).try_mutants(planted)
    assert said[9:10] == ["2 mutants to try, 6 results kept"]
    assert (tmp_path / "tree" / "pack/m.py").read_text() == PACKAGE["pack/m.py"]


@pytest.fixture
def draw(mutants, tmp_path):
    """Returns the function that draws mutants, without a record of what tests call."""
    reach = importlib.import_module("mutants.reach").Reach(tmp_path)
    return functools.partial(importlib.import_module("mutants.drawing").draw_mutants, reach=reach)


def test_the_same_seed_draws_the_same_mutants(mutants, draw):
    catalogue, _ = mutants
    paths = ["emberharmony/core/axes.py", "emberharmony/core/numeric"]
    drawn = draw(20, 3, paths)
    assert drawn == draw(20, 3, paths)
    assert len({mutant.name for mutant in drawn}) == 20
    assert drawn != draw(20, 4, paths)
    assert not list(catalogue.fault_messages({"drawn": drawn}, floor=0))
    assert drawn[0].tests[0].startswith("tests/core")


def test_conditions_are_drawn_that_mention_dtypes_sizes_and_options(mutants, draw):
    drawn = draw(1000, 0, ["emberharmony/backend/torch/algebra/norms_ops.py"], conditions=True)
    assert len(drawn) > 10
    for mutant in drawn:
        assert mutant.replacement in ("True", "False") or mutant.replacement.startswith("not (")
    assert not [*mutants[0].fault_messages({"drawn": drawn}, floor=0)]


SAME = '''
import functools, sys

def f(a, b):
    """Text."""
    if sys.platform == "win32":
        raise ValueError(a + 1)
    return functools.lru_cache(maxsize=4)(dict)(zip(a, b, strict=True))
'''


def test_nothing_is_drawn_that_cannot_change_a_result(draw, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("mutants.drawing"), "ROOT", tmp_path)
    file = tmp_path / "pack" / "same.py"
    file.parent.mkdir()
    file.write_text(SAME)
    assert draw(10, 0, ["pack"]) == []
    file.write_text(SAME.replace("sys.platform", "a").replace("strict", "reverse"))
    assert len(draw(10, 0, ["pack"])) == 3


@pytest.mark.fresh_process
def test_the_tests_that_call_a_function_are_found(mutants, trials, tmp_path, monkeypatch):
    reach = importlib.import_module("mutants.reach")
    monkeypatch.setattr(reach, "ROOT", tmp_path / "tree")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "tree" / "tests" / "test_none.py").write_text("")
    said = []
    found = reach.Reach(tmp_path / "reached")
    found.update_records(said.append)
    assert [case.test for case in found.cases("pack/m.py", "low")] == ["tests/test_m.py::test_low"]
    assert [case.breadth for case in found.cases("pack/m.py", "loop")] == [1]
    assert found.cases("pack/m.py", "absent") == []
    assert len(said) == 2
    assert (-3, 4) in found.taken_branches()["pack/m.py"]
    reach.Reach(tmp_path / "reached").update_records(said.append)
    assert len(said) == 2
    (tmp_path / "tree" / "tests" / "test_none.py").write_text("import pack.m\ndef test_new(): pack.m.low(1)")
    found.update_records(said.append)
    assert said[2].startswith("1 test file")
    assert [case.test for case in found.cases("pack/m.py", "low")][1:] == ["tests/test_none.py::test_new"]


def test_the_nearest_tests_of_a_function_come_first(mutants):
    ring = importlib.import_module("mutants.ring")
    reach = importlib.import_module("mutants.reach")

    class Known:
        def cases(self, module, function):
            called = [("test_state.py::b", 0, 9), ("ops/test_math.py::a[1]", 1, 7), ("ops/test_math.py::a[2]", 1, 7)]
            called += [("core/test_axes.py::m", 2, 30), ("test_docs.py::long", 3, 3)]
            return [reach.Case(f"tests/{n}", 500.0 if "long" in n else 1.0, c, count) for n, c, count in called]

    entries = ring.tests_of("emberharmony/core/axes.py", "f", Known())
    assert entries == (
        "tests/core/test_axes.py::m",
        "'tests/ops/test_math.py::a[1]' tests/test_state.py::b",
        "'tests/ops/test_math.py::a[2]'",
    )
