"""Which backend is active, and why: the full order of precedence."""

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import backend_of, choice, current, discovery, use_backend
from emberharmony.backend.discovery import BUILTIN, create_backend, is_installed
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendMismatchError,
    BackendNotFoundError,
    SettingsWarning,
)
from tests.sampling import portion

INSTALLED = [name for name in BUILTIN if is_installed(name)]


def run(program: str, **environment: str) -> str:
    """Runs a program in a fresh interpreter without any settings but the given ones; returns its output."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("EMBERHARMONY")}
    clean["EMBERHARMONY_CONFIG"] = os.devnull + "-none"
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SHOW = """
from emberharmony import ops
from emberharmony.core import selection
print(ops.get_backend(), selection.backend_source())
"""


def test_get_backend_names_the_backend_that_was_set(backend: str) -> None:
    assert ops.get_backend() == backend
    assert current().name == backend


def test_an_unknown_name_raises_with_a_suggestion_and_keeps_the_old_backend(backend: str) -> None:
    with pytest.raises(BackendNotFoundError, match=r"no backend is named 'torhc'; did you mean 'torch'\?"):
        ops.set_backend("torhc")
    assert ops.get_backend() == backend


@pytest.mark.parametrize("name", [None, 3, "", [], {}, np.ones(2), [[["numpy"]]]])
def test_an_object_that_is_not_a_name_is_refused(name: object) -> None:
    calls: list[Callable[[Any], object]] = [
        ops.set_backend,
        create_backend,
        lambda name: ops.use_backend(name).__enter__(),
    ]
    for call in calls[: 2 if name is None else 3]:
        with pytest.raises(
            BackendNotFoundError, match=r"a backend is named by a string \(numpy, |no backend is named ''"
        ):
            call(name)


@pytest.mark.sampled(6)
@pytest.mark.fresh_process
def test_the_environment_variable_chooses_the_backend(backend: str) -> None:
    assert run(SHOW, EMBERHARMONY_BACKEND=backend) == f"{backend} EMBERHARMONY_BACKEND"


def test_the_settings_file_chooses_the_backend(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('backend = "numpy"\n')
    assert run(SHOW, EMBERHARMONY_CONFIG=str(file)) == f"numpy {file}"


def test_the_environment_variable_overrules_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('backend = "nonsense"\n')
    assert run(SHOW, EMBERHARMONY_CONFIG=str(file), EMBERHARMONY_BACKEND="numpy").startswith("numpy")


def test_the_choice_is_automatic_when_nothing_names_a_backend() -> None:
    assert run(SHOW).endswith("automatic")


def test_the_first_op_names_a_wrong_environment_variable() -> None:
    program = (
        "from emberharmony import ops\n"
        "try: ops.sin([1.0])\n"
        "except ValueError as error: print(error)\n"
        "ops.set_backend('numpy'); print(ops.sin([0.0]))"
    )
    output = run(program, EMBERHARMONY_BACKEND="torhc")
    assert "did you mean 'torch'" in output
    assert "EMBERHARMONY_BACKEND" in output
    assert output.endswith("[0.]")


def test_a_new_process_reads_the_persisted_choice(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    run("from emberharmony import ops; ops.set_backend('numpy', persist=True)", EMBERHARMONY_CONFIG=str(file))
    assert file.read_text() == 'backend = "numpy"\n'
    assert run(SHOW, EMBERHARMONY_CONFIG=str(file)) == f"numpy {file}"


def test_a_failed_persist_keeps_the_old_backend(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(blocked / "config.toml"))
    other = next((name for name in ("numpy", *INSTALLED) if name != backend), None)
    if other is None:
        pytest.skip("needs two backends")
    with pytest.raises(OSError, match="file"):
        ops.set_backend(other, persist=True)
    assert ops.get_backend() == backend


def test_import_and_first_op_write_no_settings_file(tmp_path: Path) -> None:
    run("from emberharmony import ops; ops.sin([1.0])", EMBERHARMONY_CONFIG=str(tmp_path / "c.toml"))
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_settings_file_gives_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend import choice

    file = tmp_path / "config.toml"
    file.write_text("backend = ")
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(file))
    monkeypatch.delenv("EMBERHARMONY_BACKEND", raising=False)
    with pytest.warns(SettingsWarning, match=r"config\.toml cannot be read"):
        assert choice.choose_backend()[1] == "automatic"


def test_use_backend_nests_and_restores_the_outer_backend(backend: str) -> None:
    with ops.use_backend("numpy") as outer:
        assert outer.name == ops.get_backend() == "numpy"
        with ops.use_backend(backend):
            assert ops.get_backend() == backend
        assert ops.get_backend() == "numpy"
    assert ops.get_backend() == backend


def test_use_backend_restores_the_outer_backend_after_an_exception(backend: str) -> None:
    with pytest.raises(KeyError), ops.use_backend("numpy"):
        raise KeyError
    assert ops.get_backend() == backend


def test_use_backend_decorates_functions(backend: str) -> None:
    @ops.use_backend("numpy")
    def inner() -> str:
        """Documented."""
        return ops.get_backend()

    assert inner() == "numpy"
    assert inner.__doc__ == "Documented."
    assert ops.get_backend() == backend


def test_use_backend_decorates_coroutines(backend: str) -> None:
    @ops.use_backend("numpy")
    async def inner() -> str:
        await asyncio.sleep(0)
        return ops.get_backend()

    assert asyncio.run(inner()) == "numpy"
    assert ops.get_backend() == backend


def test_use_backend_does_not_decorate_generator_functions() -> None:
    with pytest.raises(ArgumentTypeError, match="generator function stream"):

        @ops.use_backend("numpy")
        def stream() -> object:
            yield 1


def test_use_backend_like_takes_the_backend_of_a_tensor(backend: str) -> None:
    x = ops.convert_to_tensor([1.0])
    with ops.use_backend("numpy"), ops.use_backend(like={"a": [x, None], "b": 3.0}):
        assert ops.get_backend() == backend
        assert type(ops.sin(x)) is type(x)


def test_use_backend_like_without_tensors_changes_nothing(backend: str) -> None:
    with ops.use_backend(like=[1.0, 2]):
        assert ops.get_backend() == backend


def test_use_backend_needs_exactly_one_of_name_and_like() -> None:
    with pytest.raises(ArgumentError, match="either"):
        use_backend()
    with pytest.raises(ArgumentError, match="either"):
        use_backend("numpy", like=1)


def test_backend_of_prefers_any_other_backend_to_numpy(backend: str) -> None:
    x = ops.convert_to_tensor([1.0])
    found = backend_of(np.ones(2), x)
    assert found is not None
    assert found.name == backend
    assert backend_of(1.0, None) is None


def test_a_tensor_of_a_library_that_is_not_loaded_loads_its_backend(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = ops.ones(2)
    for holder, name in ((discovery, "_LOADED"), (choice, "OWNERS")):
        monkeypatch.setattr(holder, name, {})
    monkeypatch.setattr(choice, "load", lambda name: f"the backend {name}")
    assert choice.owning_backend_of(x) == f"the backend {backend}"


def test_a_tensor_of_a_library_without_backend_is_refused() -> None:
    class Foreign:
        def __dlpack__(self) -> None:
            raise AssertionError

    with pytest.raises(ArgumentTypeError, match=r"no loaded backend has tensors of type .*Foreign \(loaded: .*numpy"):
        backend_of(Foreign())
    assert backend_of(object()) is None


def test_available_backends_leaves_out_those_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "backend_names", lambda: ["numpy", "jax", "cupy"])
    monkeypatch.setattr(choice, "loaded_backends", list)
    monkeypatch.setattr(choice, "is_installed", lambda name: name == "numpy")
    assert choice.available_backends() == {"numpy": {"version": np.__version__, "loaded": False, "devices": None}}


def test_backend_of_refuses_a_mixture_of_two_libraries() -> None:
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    with pytest.raises(BackendMismatchError, match="mlx and torch are mixed"):
        backend_of(torch.ones(1), mx.ones(1))


def test_available_backends_imports_no_array_library() -> None:
    program = "import sys; from emberharmony import ops; print(ops.available_backends()); print('torch' in sys.modules)"
    output = run(program, EMBERHARMONY_BACKEND="numpy")
    assert output.endswith("False")
    assert "'numpy': {'version':" in output


def test_available_backends_shows_the_devices_of_a_loaded_backend(backend: str) -> None:
    assert "cpu" in ops.available_backends()[backend]["devices"]


@pytest.mark.parametrize("name", portion(["numpy", "torch", "mlx"], 3))
def test_only_the_active_backend_is_imported(name: str) -> None:
    if name not in INSTALLED:
        pytest.skip(f"{name} is not installed")
    program = (
        "import sys; from emberharmony import ops; ops.sin([1.0]);"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'torch', 'mlx'}))"
    )
    wanted = [] if name == "numpy" else [name]
    assert run(program, EMBERHARMONY_BACKEND=name) == str(wanted)


def test_the_bare_package_imports_no_array_library() -> None:
    program = (
        "import sys; before = set(sys.modules); import emberharmony;"
        "print(sorted({m.partition('.')[0] for m in set(sys.modules) - before} & {'numpy', 'torch', 'mlx', 'inspect'}))"
    )
    assert run(program) == "[]"


def test_the_choice_survives_a_reload_of_ops(backend: str) -> None:
    import importlib

    importlib.reload(ops)
    assert ops.get_backend() == backend
    assert type(ops.sin([1.0])) is current().tensor_type


def test_threads_never_see_the_choice_of_another_thread(backend: str) -> None:
    """16 threads switch at random, thousands of times; each op must run on the backend that its own thread chose."""
    failures: list[str] = []
    types = {name: ops.backend_of(_tensor(name)).tensor_type for name in INSTALLED}  # type: ignore[union-attr]
    start = threading.Barrier(16)

    def work(seed: int) -> None:
        choose = random.Random(seed)
        start.wait()
        for _ in range(200):
            first, second = choose.choice(INSTALLED), choose.choice(INSTALLED)
            with ops.use_backend(first):
                _expect(first, types, failures)
                with ops.use_backend(second):
                    _expect(second, types, failures)
                _expect(first, types, failures)
            _expect(backend, types, failures)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_tasks_never_see_the_choice_of_another_task(backend: str) -> None:
    """200 asyncio tasks interleave at every switch."""
    failures: list[str] = []
    types = {name: ops.backend_of(_tensor(name)).tensor_type for name in INSTALLED}  # type: ignore[union-attr]

    async def work(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(10):
            first, second = choose.choice(INSTALLED), choose.choice(INSTALLED)
            with ops.use_backend(first):
                await asyncio.sleep(0)
                _expect(first, types, failures)
                with ops.use_backend(second):
                    await asyncio.sleep(0)
                    _expect(second, types, failures)
                await asyncio.sleep(0)
                _expect(first, types, failures)
            _expect(backend, types, failures)

    async def main() -> None:
        await asyncio.gather(*(work(seed) for seed in range(200)))

    asyncio.run(main())
    assert not failures


def test_set_backend_may_run_while_other_threads_run_ops(backend: str) -> None:
    """Each call runs completely on the old or completely on the new backend."""
    failures: list[Exception] = []
    values = np.ones(1, np.float32)
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                assert ops.add(values, 1).tolist() == [2.0]
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(60):
        ops.set_backend(INSTALLED[i % len(INSTALLED)])
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def _tensor(name: str) -> object:
    with ops.use_backend(name):
        return ops.convert_to_tensor([1.0])


def _expect(name: str, types: dict[str, type], failures: list[str]) -> None:
    if ops.get_backend() != name or type(ops.sin([1.0])) is not types[name]:
        failures.append(name)


@pytest.mark.parametrize("named", ["", "numpy"])
def test_the_choice_is_made_by_the_first_op(named: str) -> None:
    program = """
import sys
from emberharmony import ops
print("emberharmony.backend.numpy" in sys.modules)
ops.sin([1.0])
print("emberharmony.backend.numpy" in sys.modules)
"""
    assert run(program, EMBERHARMONY_BACKEND=named).split() == ["False", "True"]


def test_a_backend_that_sets_up_its_library_is_loaded_with_ops() -> None:
    pytest.importorskip("jax")
    program = "import jax; from emberharmony import ops; print(jax.numpy.arange(2).dtype)"
    assert run(program, EMBERHARMONY_BACKEND="jax").split() == ["int64"]


@pytest.mark.parametrize("name", ["MLX", "NumPy", "TORCH"])
def test_a_name_in_capitals_raises_with_a_suggestion(name: str) -> None:
    with pytest.raises(BackendNotFoundError, match=f"did you mean '{name.lower()}'"):
        ops.set_backend(name)


def test_the_error_for_an_unknown_name_in_the_settings_file_says_how_to_change_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('backend = "nope"\n')
    program = """
from emberharmony import ops
try:
    ops.sin([1.0])
except ValueError as error:
    print(error)
ops.set_backend("numpy")
print(ops.get_backend())
"""
    shown = run(program, EMBERHARMONY_CONFIG=str(file))
    assert "emberharmony backend set" in shown
    assert shown.endswith("numpy")


def test_unreadable_settings_give_one_warning(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("backend = [\n")
    program = "import warnings; warnings.simplefilter('always')\nfrom emberharmony import ops; ops.sin([1.0])"
    environment = os.environ | {"EMBERHARMONY_CONFIG": str(file)}
    environment.pop("EMBERHARMONY_BACKEND", None)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.count("SettingsWarning") == 1


@pytest.mark.parametrize("name", portion(INSTALLED, 3))
def test_the_first_op_raises_for_an_unknown_device_in_the_environment(name: str) -> None:
    program = """
from emberharmony import ops
try:
    ops.sin([1.0])
except ValueError as error:
    print(type(error).__name__, error)
"""
    shown = run(program, EMBERHARMONY_BACKEND=name, EMBERHARMONY_DEVICE="blah")
    assert shown.startswith("DeviceError")
    assert "available: cpu" in shown
    assert "EMBERHARMONY_DEVICE" in shown


def test_a_library_that_is_installed_but_broken_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text('raise OSError("libtorch_cpu.so: cannot open shared object file")')
    program = """
import warnings
import emberharmony
from emberharmony import ops
try:
    ops.set_backend("torch")
except ImportError as error:
    print(type(error).__name__, error)
warnings.simplefilter("ignore")
print(emberharmony.create_backend("torch").name)
"""
    shown = run(program, PYTHONPATH=os.pathsep.join((str(tmp_path), *sys.path[1:])))
    assert shown.startswith("BackendUnavailableError")
    assert "libtorch_cpu.so" in shown
    assert shown.endswith("numpy")


def test_a_variable_that_is_set_after_the_first_op_is_told_at_the_end() -> None:
    program = (
        "import os\nfrom emberharmony import ops\nx = ops.ones(2)\n"
        "os.environ['EMBERHARMONY_BACKEND'] = 'torch'\nx = ops.ones(2)"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith("EMBERHARMONY")}
    clean |= {"EMBERHARMONY_CONFIG": os.devnull + "-none", "EMBERHARMONY_BACKEND": "numpy"}
    for end, told in (("", True), ("\nops.set_backend('numpy')", False)):
        done = subprocess.run(
            [sys.executable, "-c", program + end], env=clean, capture_output=True, text=True, check=True
        )
        assert ("'torch' after the first op had chosen 'numpy', so it had no effect" in done.stderr) is told
