"""The top-level package: its lazy names, and the state that its import leaves behind."""

import importlib
import subprocess
import sys
import types

import pytest

import emberharmony
from emberharmony import ops


def run(program: str) -> str:
    """Returns the output of a program that runs in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_no_array_library() -> None:
    assert (
        run("import emberharmony, sys; print({'numpy', 'torch', 'mlx', 'jax', 'dask'} & set(sys.modules))") == "set()"
    )


def test_lazy_names_are_in_dir_and_can_be_read() -> None:
    for name in ("ops", "create_backend", "register_op", "register_vjp"):
        assert name in dir(emberharmony)
        assert getattr(emberharmony, name) is not None


@pytest.mark.parametrize(
    ("package", "typo", "meant"),
    [
        ("emberharmony", "opps", "ops"),
        ("emberharmony.nn", "Lineer", "Linear"),
        ("emberharmony.optim", "Sharde", "Sharded"),
        ("emberharmony.io", "lod", "load"),
        ("emberharmony.testing", "gradchek", "gradcheck"),
        ("emberharmony.backend", "from_array_ap", "from_array_api"),
    ],
)
def test_a_package_suggests_the_nearest_name_and_lists_its_public_names(package: str, typo: str, meant: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError) as caught:
        getattr(module, typo)
    assert str(caught.value) == f"module {package!r} has no attribute {typo!r}; did you mean {meant!r}?"
    assert dir(module) == sorted(module.__all__)
    assert not hasattr(module, "_unknown")


@pytest.mark.parametrize("enabled", [True, False])
def test_an_import_leaves_the_garbage_collector_on_or_off_as_before(enabled: bool) -> None:
    start = "" if enabled else "gc.disable();"
    assert run(f"import gc; {start} from emberharmony import ops; print(gc.isenabled())") == str(enabled)
    failing = (
        "import gc, sys; sys.modules['emberharmony.core.dispatch'] = None\n"
        f"{start}\n"
        "try:\n    from emberharmony import ops\n"
        "except ImportError:\n    print(gc.isenabled())"
    )
    assert run(failing) == str(enabled)


def test_a_star_import_brings_ops_and_no_internal_modules() -> None:
    names = ("sin", "linalg", "choice", "math", "tensor")
    program = f"from emberharmony.ops import *; print(sorted(set({names}) & set(globals())))"
    assert run(program) == "['linalg', 'sin']"


def test_the_only_public_modules_of_ops_are_the_namespaces() -> None:
    modules = {name for name in ops.__all__ if isinstance(getattr(ops, name), types.ModuleType)}
    assert modules == {"fft", "image", "linalg", "nn", "random"}
