"""A backend imports the definitions of its ops by category, at the first use of one."""

import subprocess
import sys

import pytest

LIBRARIES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}

START = """
import sys
from emberharmony.backend.discovery import load
from emberharmony.core.registry import OPS
backend = load(sys.argv[1])
kind, package = type(backend), f"emberharmony.backend.{backend.name}."
"""

AT_FIRST_USE = """
for use in (lambda: backend.fft, lambda: backend.defines(OPS["matmul"]), lambda: backend.bound.argmax):
    left = dict(kind.categories)
    use()
    assert len(kind.categories) == len(left) - 1, left
assert package + "images.fft_ops" in sys.modules and "fft" in vars(kind)
try:
    backend.no_such_op
except AttributeError:
    pass
assert package + "neural.losses_ops" not in sys.modules and not backend.missing_ops()
assert {"cross_entropy", "fft", "add", "sort"} <= set(dir(backend)) and not kind.categories
"""

IN_A_SUBCLASS = """
class Loud(kind):
    def add(self, x1, x2):
        return super().add(x1, x2)

x = backend.ones((2,))
assert float(Loud().add(x, x)[0]) == 2.0
"""

BY_THREADS = """
import threading
start, results = threading.Barrier(8), []
x, y = backend.ones((2,)), backend.ones((2,), backend.dtypes["int32"])

def run():
    start.wait()
    results.append(backend.add(x, y).dtype)

threads = [threading.Thread(target=run) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == [x.dtype] * 8, results
"""

OF_ONE_CATEGORY = """
from importlib import import_module
others = {name for base in kind.__mro__ for name in vars(base)}
for place, name in kind.categories.items():
    definitions = getattr(import_module(package + place.replace("/", ".") + "_ops"), name)
    for definer in definitions.__mro__[:-1]:
        for attribute, definition in vars(definer).items():
            if not attribute.startswith("__"):
                assert attribute not in others, (name, attribute)
                assert attribute[0] == "_" or OPS[attribute].category_path == place, (name, attribute)
                code = getattr(getattr(definition, "__func__", definition), "__code__", None)
                assert code is None or "__class__" not in code.co_freevars, (name, attribute, "calls super()")
"""


def run(program: str, name: str) -> None:
    """Runs a program in a fresh process with one backend."""
    pytest.importorskip(LIBRARIES[name])
    command = [sys.executable, "-c", START + program, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.fresh_process
@pytest.mark.parametrize("name", ["numpy", "mlx"])
@pytest.mark.parametrize("program", [AT_FIRST_USE, IN_A_SUBCLASS, BY_THREADS])
def test_definitions_are_imported_at_their_first_use(program: str, name: str) -> None:
    run(program, name)


@pytest.mark.fresh_process
@pytest.mark.parametrize("name", LIBRARIES)
def test_definitions_that_wait_are_ops_of_one_category(name: str) -> None:
    """Whatever else a class defined would not be there before the first use of one of its ops."""
    run(OF_ONE_CATEGORY, name)
