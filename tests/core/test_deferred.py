"""`Deferred` imports a module at its first use."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import emberharmony
from emberharmony.core.deferred import Deferred


def test_attributes_are_those_of_the_module() -> None:
    import math

    assert Deferred("math").sqrt is math.sqrt
    with pytest.raises(AttributeError, match="sqroot"):
        _ = Deferred("math").sqroot
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = Deferred("no_such_module").name


def test_attributes_follow_the_module_and_may_have_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    deferred = Deferred("json")
    assert deferred.load is json.load
    for made in (object(), object()):
        monkeypatch.setattr(json, "load", made)
        found: object = deferred.load
        assert found is made


def test_a_deferred_module_is_imported_at_its_first_use_only() -> None:
    code = (
        "import sys; from emberharmony import ops; print('emberharmony.transforms.derivatives' in sys.modules);"
        "ops.set_backend('numpy'); ops.grad(ops.sin)(1.0); print('emberharmony.transforms.derivatives' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


PACKAGE = Path(emberharmony.__file__).parent
STAND_IN = re.compile(r"^    (\w+) = Deferred\(\"([\w.]+)\"\)$", re.MULTILINE)


def stand_ins() -> list[tuple[Path, str, str]]:
    """Returns the file, the name and the module of each stand-in."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [(file, *found) for file in files for found in STAND_IN.findall(file.read_text(encoding="utf-8"))]


def test_type_checkers_see_the_module_that_is_deferred() -> None:
    assert len(stand_ins()) > 15
    for file, name, module in stand_ins():
        package, _, last = module.rpartition(".")
        named = rf".*\b{last}\b.*" if name == last else f" {last} as {name}"
        statement = rf"^    from {re.escape(package)} import{named}$" if package else rf"^    import{named}$"
        found = re.search(statement, file.read_text(encoding="utf-8"), re.MULTILINE)
        assert found, f"{file}: {name} is not imported for type checkers"


def test_the_import_of_ops_loads_no_deferred_module() -> None:
    # A module of ops stands for another one of ops to avoid a circle of imports.
    modules = sorted({module for _, _, module in stand_ins() if not module.startswith("emberharmony.ops.")})
    code = f"import sys, emberharmony.ops; print([name for name in {modules} if name in sys.modules])"
    environment = {name: value for name, value in os.environ.items() if name != "EMBERHARMONY_BACKEND"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.sampled(2)
def test_modules_that_torch_compile_may_trace_are_imported_with_torch() -> None:
    pytest.importorskip("torch")
    shared = "emberharmony.backend.shared."
    ops = [(file, module) for file, _, module in stand_ins() if "nn" not in file.relative_to(PACKAGE).parts]
    modules = sorted({module for _, module in ops if module.startswith((shared, "emberharmony.transforms.trees"))})
    start = "import sys; from emberharmony import ops; ops.set_backend('torch')"
    code = f"{start}; print([name for name in {modules} if name not in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_threads_that_use_a_module_first_wait_for_its_import() -> None:
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from emberharmony import ops
sys.setswitchinterval(1e-6)
ops.set_backend("numpy")
with ThreadPoolExecutor(16) as pool:
    print(sum(g.tolist() for g in pool.map(lambda i: ops.grad(ops.square)(float(i)), range(64))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"{float(sum(2 * i for i in range(64)))}\n", done.stderr


def test_the_rules_of_gradients_are_published_in_one_step() -> None:
    code = """
from emberharmony.transforms import rule_registry as rules
steps = []
class Watched(dict):
    def update(self, *args):
        steps.append(len(*args))
        super().update(*args)
    def __setitem__(self, key, value):
        steps.append(1)
        super().__setitem__(key, value)
rules.RULES = Watched()
import emberharmony.rules
print(steps == [len(rules.RULES)], len(rules.RULES) > 100)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr
