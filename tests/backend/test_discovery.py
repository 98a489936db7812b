"""From a name to a backend: built-in backends, plugins, fallbacks, and the checks at load."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from emberharmony import create_backend, ops
from emberharmony.backend import discovery, unsupported
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.backend.protocol import TensorBackend
from emberharmony.core.errors import (
    BackendFallbackWarning,
    BackendNotFoundError,
    BackendProtocolError,
    BackendUnavailableError,
    UnsupportedOpError,
)
from emberharmony.core.registry import OPS

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "tests" / "plugin"


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_backend_follows_the_protocol(backend: str) -> None:
    assert isinstance(create_backend(backend), TensorBackend)
    assert not isinstance(object(), TensorBackend)


def test_a_backend_is_loaded_once(backend: str) -> None:
    assert create_backend(backend) is create_backend(backend)


def test_a_backend_object_has_all_ops_as_methods(backend: str) -> None:
    made = create_backend(backend)
    x = made.convert([1.0, 3.0])
    assert float(made.mean(x)) == 2.0
    assert made.softsign(x).shape == (2,)
    assert made.asin is not None
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        made.softmaxx(x)


def test_the_error_for_an_unknown_name_lists_the_known_names() -> None:
    with pytest.raises(BackendNotFoundError, match=r"'numpyy'; did you mean 'numpy'\? \(known: numpy, torch, mlx"):
        create_backend("numpyy")


def test_the_error_for_a_missing_library_says_how_to_install_it() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import warnings; warnings.simplefilter('error')\n"
        "from emberharmony import create_backend, ops\n"
        "try: create_backend('torch', fallback=None)\n"
        "except ImportError as error: print(error)\n"
        "try: create_backend('torch')\n"
        "except UserWarning as warning: print(type(warning).__name__)\n"
        "before = ops.get_backend()\n"
        "try: ops.set_backend('torch')\n"
        "except ImportError: print(ops.get_backend() == before)\n"
        "warnings.simplefilter('ignore'); print(create_backend('torch').name)\n"
    )
    lines = run(program, EMBERHARMONY_BACKEND="numpy").splitlines()
    assert 'pip install "torch"' in lines[0]
    assert lines[1:] == [BackendFallbackWarning.__name__, "True", "numpy"]


def test_the_install_line_names_what_the_extra_of_a_backend_installs() -> None:
    """The library itself is named, because it is installed in the same way wherever the package came from."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert discovery.install_line("numpy") == 'pip install "numpy"'
    for name in {*discovery.BUILTIN, *discovery.OPTIONAL} - {"numpy"}:
        library = re.fullmatch(r'pip install "([a-z-]+)(\[\w+\])?"', discovery.install_line(name))
        assert library is not None
        assert any(re.match(rf"{library[1]}\b", requirement) for requirement in extras[name])


def test_a_module_missing_in_a_frozen_program_is_not_blamed_on_the_library() -> None:
    program = (
        "import sys; sys.modules['emberharmony.backend.mlx'] = None\n"
        "from emberharmony import create_backend\n"
        "try: create_backend('mlx', fallback=None)\n"
        "except ImportError as error: print(error)\n"
    )
    assert run(program).endswith("tell the bundler to include all of emberharmony")


def test_an_unavailable_backend_raises_an_import_error() -> None:
    assert issubclass(BackendUnavailableError, ImportError)


def test_a_backend_without_an_op_is_refused() -> None:
    class Lacking(NumpyBackend):
        name = "lacking"
        add = None  # type: ignore[assignment]

    with pytest.raises(BackendProtocolError, match=r"lacks 1 primitive ops: add; define them"):
        discovery.check_backend(Lacking())
    with pytest.raises(BackendProtocolError, match="'lacking' lacks the primitive op 'add'"):
        Lacking().implementation(OPS["add"])
    assert Lacking.missing_ops() == ["add"]
    assert not isinstance(Lacking(), TensorBackend)


def test_an_unsupported_op_raises_with_the_reason() -> None:
    class Partial(NumpyBackend):
        name = "partial"
        eig = unsupported("no kernel")

    assert isinstance(Partial(), TensorBackend)
    with ops.use_backend(Partial()), pytest.raises(UnsupportedOpError, match=r"eig\(\).*no kernel"):
        ops.eig([[1.0]])


def test_a_plugin_is_found_by_its_entry_point_and_imported_when_it_is_set() -> None:
    program = (
        "import sys\nfrom emberharmony import ops\n"
        "print('strict' in ops.available_backends(), 'ember_strict' in sys.modules)\n"
        "ops.grad(ops.square)(ops.ones(()))\n"
        "print([name for name in sys.modules if '.fallback' in name or '.arrayapi' in name])\n"
        "ops.set_backend('strict')\n"
        "x = ops.add([1.0, 2.0], 1)\n"
        "print(type(x).__module__, ops.to_numpy(ops.softmax(x)).sum().round(6))\n"
        "try: ops.use_backend('strict_lazy').__enter__(), ops.bincount([1])\n"
        "except NotImplementedError as error: print('reads tensors' in str(error))\n"
        "try: ops.set_backend('strickt')\n"
        "except ValueError as error: print(\"did you mean 'strict'\" in str(error))\n"
    )
    lines = run(program, PYTHONPATH=str(PLUGIN), EMBERHARMONY_BACKEND="numpy").splitlines()
    assert lines[0] == "True False"
    assert lines[1] == "[]"  # no built-in backend pays for the bodies of others
    assert lines[2].startswith("array_api_strict")
    assert lines[3:] == ["True", "True"]


def test_a_plugin_passes_the_sample_rows() -> None:
    program = (
        "from emberharmony.testing.conformance import run_sample\n"
        "from emberharmony.testing.samples import all_samples\n"
        "rows = all_samples()\n"
        "bad = [o for op in ('add', 'divide', 'exp', 'less', 'relu', 'sigmoid', 'softsign')\n"
        "       for o in run_sample(rows[op], 'strict') if o.failure and o.dtype in ('float32', 'float64')]\n"
        "print(bad)"
    )
    assert run(program, PYTHONPATH=str(PLUGIN), EMBERHARMONY_BACKEND="numpy") == "[]"


def test_a_plugin_whose_factory_does_not_return_a_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "odd", "odd:make"

        @staticmethod
        def load() -> object:
            return lambda: object()

    monkeypatch.setattr(discovery, "_plugins", lambda: {"odd": Point})
    with pytest.raises(BackendProtocolError, match="not a Backend"):
        discovery.load("odd")


def test_reversed_read_only_and_byte_swapped_arrays_are_accepted(backend: str) -> None:
    array = np.arange(4.0)[::-1]
    assert ops.to_numpy(ops.add(array, 0)).tolist() == [3.0, 2.0, 1.0, 0.0]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert ops.to_numpy(ops.add(frozen, 0)).tolist() == [0.0, 1.0, 2.0]
    assert ops.to_numpy(ops.add(np.arange(3, dtype=">i4"), 0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("system", "machine", "installed", "devices", "wanted"),
    [
        ("Darwin", "arm64", ("mlx", "torch"), [], "mlx"),
        ("Darwin", "arm64", ("torch",), [], "torch"),
        ("Darwin", "arm64", (), [], "numpy"),
        ("Darwin", "x86_64", ("mlx", "torch"), [], "numpy"),
        ("Linux", "x86_64", ("torch",), ["cpu", "gpu"], "torch"),
        ("Linux", "x86_64", ("torch",), ["cpu"], "numpy"),
        ("Linux", "x86_64", (), ["cpu", "gpu"], "numpy"),
    ],
)
def test_the_default_backend_is_the_fastest_of_the_machine(
    system: str,
    machine: str,
    installed: tuple[str, ...],
    devices: list[str],
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(discovery.platform, "system", lambda: system)
    monkeypatch.setattr(discovery.platform, "machine", lambda: machine)
    monkeypatch.setattr(discovery, "is_installed", lambda name: name in installed)
    monkeypatch.setattr(discovery, "_may_have_cuda", lambda: bool(devices))
    monkeypatch.setattr(discovery, "load", lambda name: SimpleNamespace(get_available_devices=lambda: devices))
    assert discovery.default_backend_name() == wanted
