"""The planted faults of `utils/mutants`: how they are found in a source, tried and counted."""

import importlib
import json
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
    monkeypatch.syspath_prepend(str(ROOT / "utils"))
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
        ("Layer.size", "self.a + self.b", "return 0", {}, "quote the whole statement"),
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
    text = "\n".join(catalogue.faults({"core": [first, second], "io": [third]}, floor=4))
    for part in (
        "twice: 2 mutants have this name",
        "3 mutants are fewer than 4",
        "tests/core/missing.py does not exist",
        "test_dtypes.py has no test no",
        "`no_such_name` is not found in emberharmony/core/axes.py",
        "moved (utils/mutants/areas/io.py): emberharmony/moved.py does not exist",
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
    state.add("m", results.Result(key, results.NOTICED, "test_x", 0.1))
    state.add_passed("tests/test_m.py -k x", "tree", 1.5)
    again = results.Results(state.path)
    assert again.has("m", key)
    assert again.seconds("tests/test_m.py -k x", "tree") == 1.5
    assert again.seconds("tests/test_m.py -k x", "another tree") is None
    assert not results.Results(state.path, fresh=True).has("m", key)
    assert sorted(json.loads(state.path.read_text())) == ["mutants", "passed"]
    assert [file.name for file in state.path.parent.iterdir()] == ["results.json"]
    for file in (module, tests):
        file.write_text(file.read_text() + "  # changed")
        assert not again.has("m", mutant.key(tmp_path))
    assert not again.has("m", _mutant(mutants, "", "1", "3", tests=mutant.tests).key(tmp_path))
