"""`Deferred` imports a module at its first use."""

import subprocess
import sys

import pytest

from emberharmony.core.deferred import Deferred


def test_attributes_are_those_of_the_module() -> None:
    import math

    assert Deferred("math").sqrt is math.sqrt
    with pytest.raises(AttributeError, match="sqroot"):
        _ = Deferred("math").sqroot
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = Deferred("no_such_module").name


def test_a_deferred_module_is_imported_at_its_first_use_only() -> None:
    code = (
        "import sys; from emberharmony import ops; print('emberharmony.transforms.derivatives' in sys.modules);"
        "ops.set_backend('numpy'); ops.grad(ops.sin)(1.0); print('emberharmony.transforms.derivatives' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


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
from emberharmony.transforms import rules
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
