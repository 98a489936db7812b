"""The package's front door: lazy names, and what its import leaves behind."""

import subprocess
import sys
import types

import pytest

import emberharmony
from emberharmony import ops


def run(program: str) -> str:
    """Returns what a program prints in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert run("import emberharmony, sys; print({'numpy', 'torch', 'mlx'} & set(sys.modules))") == "set()"


def test_lazy_names_are_listed_and_found() -> None:
    for name in ("ops", "create_backend", "register_op", "register_vjp"):
        assert name in dir(emberharmony)
        assert getattr(emberharmony, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'opps'"):
        _ = emberharmony.opps


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    start = "" if enabled else "gc.disable();"
    assert run(f"import gc; {start} from emberharmony import ops; print(gc.isenabled())") == str(enabled)
    failing = (
        "import gc, sys; sys.modules['numpy'] = None\n"
        f"{start}\n"
        "try:\n    from emberharmony import ops\n"
        "except ImportError:\n    print(gc.isenabled())"
    )
    assert run(failing) == str(enabled)


def test_a_star_import_brings_ops_and_no_modules_of_ours() -> None:
    names = ("sin", "linalg", "choice", "math", "tensor")
    program = f"from emberharmony.ops import *; print(sorted(set({names}) & set(globals())))"
    assert run(program) == "['linalg', 'sin']"


def test_every_public_name_of_ops_but_the_namespaces_is_no_module() -> None:
    modules = {name for name in ops.__all__ if isinstance(getattr(ops, name), types.ModuleType)}
    assert modules == {"fft", "image", "linalg", "nn", "random"}
