"""Engines of compiled functions: results, memory, draws and errors are those of NumPy, whatever library runs."""

import functools
import importlib.util
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.backend.numpy.flow import engines
from emberharmony.backend.numpy.flow.compilation import NumpyFunction
from emberharmony.backend.numpy.flow.engines import Engines, RefusedError, checked_runner, fastest_runner_name
from emberharmony.core import selection
from emberharmony.core.state import settings

NAMES = [name for name in ("torch", "jax", "numba") if importlib.util.find_spec(name) is not None]
BY_OPS = [name for name in NAMES if name != "numba"]


@pytest.fixture(autouse=True)
def on_numpy(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lets PyTorch only trace, because its compiler takes seconds, and keeps caches in a folder of the tests."""
    folder = str(tmp_path_factory.getbasetemp() / "caches")
    monkeypatch.setenv("XDG_CACHE_HOME", folder)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", folder)
    if "torch" in NAMES:
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    if "jax" in NAMES:
        jax = importlib.import_module("jax")
        before = {name: getattr(jax.config, name) for name in ("jax_compilation_cache_dir", "jax_enable_x64")}
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_compilation_cache_dir", folder)
    with ops.use_backend("numpy"):
        yield
    if "jax" in NAMES:
        for name, value in before.items():
            jax.config.update(name, value)


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compiled(function: Callable[..., Any], name: str) -> NumpyFunction:
    return NumpyFunction(function, selection.current(), Engines(name))


def is_on_numpy(function: NumpyFunction) -> bool:
    """Returns whether calls of NumPy run the last program of a function."""
    assert function._last_program is not None
    return getattr(function._last_program.replay, "__name__", "") == "replay"


def close(a: Any, b: Any) -> bool:
    pairs = zip(ops.tree_leaves(a), ops.tree_leaves(b), strict=True)
    return all(x.dtype == y.dtype and x.shape == y.shape and np.allclose(x, y, 1e-5, 1e-6) for x, y in pairs)


def chain(x: Any, y: Any) -> Any:
    z = ops.tanh(x * 2.0 + y) * 0.5 - ops.exp(-y)
    return {"z": z, "sum": ops.sum(z, axis=-1), "least": ops.min(z)}


def gradient(x: Any, y: Any) -> Any:
    return ops.value_and_grad(lambda x: ops.mean(ops.square(ops.tanh(ops.matmul(x, y.T)) - 0.1)))(x)


def of_constants(x: Any, y: Any) -> Any:
    table = np.arange(5.0, dtype=np.float32)
    return ops.tanh(ops.where(x > np.float32(0.0), x + table, y)) * x.shape[0], ops.cast(x, x.dtype) + np.float64(1.0)


def of_layouts(x: Any, y: Any) -> Any:
    z = ops.tanh(ops.concatenate([x, y[1:, ::-1]], axis=0))
    return z.T, ops.transpose(z)[1], ops.reshape(z, (-1,))[2:], ops.broadcast_to(ops.sum(z), (2, 3))


def of_dtypes(x: Any, y: Any) -> Any:
    return ops.sum(x * 0.5, axis=0, dtype="float64"), ops.cast(y * 4.0, "int32")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", [chain, gradient, of_constants, of_layouts, of_dtypes])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_engine_gives_what_numpy_gives(name: str, function: Callable[..., Any], dtype: str) -> None:
    run = compiled(function, name)
    for seed in (0, 1, 2):
        x, y = random(4, 5, seed=seed).astype(dtype), random(4, 5, seed=seed + 9).astype(dtype)
        before = x.copy(), y.copy()
        assert close(run(x, y), function(x, y))
        assert np.array_equal((x, y), before)
    assert function is of_layouts or is_on_numpy(run) is (name == "numba")
    assert close(run(x[:3], y[:3]), function(x[:3], y[:3]))


@pytest.mark.parametrize("name", BY_OPS)
def test_results_have_memory_of_their_own_but_where_those_of_numpy_have_not(name: str) -> None:
    def function(x: Any) -> Any:
        y = ops.tanh(x)
        return y, ops.tanh(x), y + 0.0, x[1:], x, ops.tanh(x)[1:]

    run, x = compiled(function, name), random(6)
    for _ in range(3):
        y, again, third, view, same, part = run(x)
        assert same is x
        assert np.shares_memory(view, x)
        assert not any(np.shares_memory(y, other) for other in (again, third, x, part))
        y[:] = again[:] = third[:] = 7.0
        view[0] = 0.5
        assert x[1] == 0.5
        assert close(run(x), function(x))


@pytest.mark.parametrize("name", BY_OPS)
def test_a_broadcast_result_is_for_reading_alone_as_that_of_numpy(name: str) -> None:
    run, x = compiled(lambda x: ops.broadcast_to(ops.tanh(x), (2, 3)), name), random(3)
    assert [run(x).flags.writeable for _ in range(2)] == [False, False]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_may_be_for_reading_alone_or_have_any_strides(name: str) -> None:
    def function(x: Any) -> Any:
        return ops.tanh(x + 1.0) * x

    run, x = compiled(function, name), random(8, 8)
    x.flags.writeable = False
    packed = np.zeros(6, dtype=[("a", "i1"), ("x", "f4")])
    for array in (x, x[::-1], x[:, ::2], x.T, x[3:3], x[0, 0:1].reshape(()), packed["x"]):
        for _ in range(2):
            assert close(run(array), function(array))
    assert not x.flags.writeable


@pytest.mark.parametrize("name", BY_OPS)
def test_random_numbers_are_those_of_the_function_itself(name: str) -> None:
    def function(x: Any) -> Any:
        return ops.tanh(x + ops.random.normal(x.shape, seed=None)) + ops.dropout(x, 0.5), x

    run, x = compiled(function, name), random(3, 4)
    ops.random.seed(7)
    wanted = [function(x) for _ in range(4)]
    ops.random.seed(7)
    assert all(close(run(x), each) for each in wanted)
    assert not is_on_numpy(run)


@pytest.mark.parametrize("name", BY_OPS)
def test_parameters_gradients_and_steps_are_as_without_an_engine(name: str) -> None:
    def trained(engine: Any) -> Any:
        weight, x = Parameter(random(5, 3)), random(4, 5, seed=1)
        adam = optim.AdamW([weight], lr=0.1)

        def step(x: Any) -> Any:
            loss = ops.backward(lambda: ops.mean(ops.square(ops.tanh(ops.matmul(x, weight.value)))), [weight])
            adam.step()
            ops.zero_grad([weight])
            return loss

        run = ops.compile(step, engine)
        return [run(x) for _ in range(4)], weight.value

    assert close(trained(name), trained(None))


def test_an_error_is_that_of_the_function_itself() -> None:
    pytest.importorskip("torch")
    run, x = compiled(lambda x, i: ops.tanh(ops.take(x, i)), "torch"), random(5)
    assert close(run(x, np.array([0, 4])), np.tanh(x[[0, 4]]))
    with pytest.raises(errors.IndexOutOfBoundsError, match="take"):
        run(x, np.array([0, 5]))
    with pytest.raises(errors.ShapeError, match="add"):
        ops.compile(lambda x, y: x + y, "torch")(x, random(4))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        pytest.param("torch", lambda x: x, id="computes nothing"),
        pytest.param("jax", lambda x: ops.tanh(ops.take(x, ops.argmax(x, axis=0), axis=0)), id="indices on jax"),
        pytest.param("jax", lambda x: ops.tanh(ops.cholesky(ops.matmul(x, x.T))), id="a matrix on jax"),
    ],
)
def test_a_program_that_an_engine_cannot_run_is_left_to_numpy_with_one_warning(
    name: str, function: Callable[..., Any]
) -> None:
    if name not in NAMES:
        pytest.skip(f"{name} is not installed")
    run: Any = ops.compile(function, name)  # type: ignore[arg-type]
    given = [random(3, 5), random(3, 5), random(4, 6)]
    with pytest.warns(errors.EngineWarning, match=rf"compile\(engine='{name}'\): NumPy computes") as seen:
        results = [run(x) for x in given]
    assert [each.filename for each in seen] == [__file__]
    assert close(results, [function(x) for x in given])


def test_engines_are_named() -> None:
    with pytest.raises(errors.ArgumentError, match=r"no engine 'numbat'; did you mean 'numba'\? \(known: torch, jax"):
        ops.compile(chain, "numbat")  # type: ignore[call-overload, arg-type, unused-ignore]
    with pytest.raises(errors.ArgumentError, match="no engine 3 "):
        ops.compile(chain, engine=3)  # type: ignore[call-overload, arg-type, unused-ignore]


@pytest.mark.parametrize("name", ["torch", "jax", "numba"])
def test_an_engine_that_is_not_installed_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    run = ops.compile(chain, name)  # type: ignore[arg-type]
    with pytest.raises(
        errors.BackendUnavailableError, match=rf"not installed: pip install \"{name}\", or the extra '{name}'"
    ):
        run(random(3), random(3))
    assert close(ops.compile(chain, "auto")(random(3), random(3)), chain(random(3), random(3)))


def test_other_backends_take_no_engine_but_auto() -> None:
    pytest.importorskip("torch")
    named, chosen = ops.compile(ops.tanh, "torch"), ops.compile(ops.tanh, "auto")
    with ops.use_backend("torch"):
        with pytest.raises(errors.ArgumentError, match=r"compile\(engine='torch'\) on backend 'torch'.*leave engine"):
            named([1.0])
        assert chosen([0.0]).tolist() == [0.0]
    with ops.record() as log:
        assert close(named(random(3)), np.tanh(random(3)))
    assert [event.op for event in log] == ["tanh"]


def test_the_shape_of_a_result_is_that_of_the_function_inside_of_eval_shape() -> None:
    assert ops.eval_shape(ops.compile(ops.tanh, "auto"), random(3)).shape == (3,)


class Fake:
    """The runner of an engine that computes the hyperbolic tangent with NumPy."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, inputs: Any) -> list[Any]:
        self.runs += 1
        return [np.tanh(x) for x in inputs]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs "numba" and "torch" by fakes; the times of NumPy and of these are the numbers by name."""
    made: dict[str, Any] = {"": 1.0, "torch": 2.0, "numba": 3.0, "tried": []}

    def runner(_: Any, name: str) -> Fake:
        made["tried"].append(name)
        fake = Fake()
        fake.name = name  # type: ignore[attr-defined]
        return fake

    monkeypatch.setattr(engines.EngineTrial, "_runner", runner)
    monkeypatch.setattr(engines, "_is_installed", lambda name: name != "jax")
    monkeypatch.setattr(engines, "_mean_seconds", lambda run, *_: made[getattr(run, "name", "")])
    return made


@pytest.mark.parametrize(
    ("torch", "numba", "wanted"), [(2.0, 3.0, ""), (0.95, 0.91, ""), (0.5, 0.4, "numba"), (0.4, 0.5, "torch")]
)
def test_auto_keeps_the_fastest_if_it_saves_a_tenth(
    torch: float, numba: float, wanted: str, fakes: dict[str, Any]
) -> None:
    fakes |= {"torch": torch, "numba": numba}
    run = compiled(ops.tanh, "auto")
    assert all(close(run(random(3)), np.tanh(random(3))) for _ in range(2))
    assert fakes["tried"] == ["torch", "numba"]
    assert run._last_program is not None
    assert getattr(run._last_program.replay, "name", "") == wanted


def test_auto_tries_only_its_choice_for_shapes_of_the_same_class(fakes: dict[str, Any]) -> None:
    fakes["numba"] = 0.1
    run = compiled(ops.tanh, "auto")
    for n in (17, 18, 31):
        run(random(n))
    assert fakes["tried"] == ["torch", "numba", "numba", "numba"]
    run(random(32))
    assert fakes["tried"][4:] == ["torch", "numba"]
    fakes["numba"] = 2.0
    for shape in ((64,), (65,), (33, 2)):
        run(random(*shape))
    assert fakes["tried"][6:] == ["torch", "numba"] * 2


def test_a_compiled_function_tells_the_engine_of_its_last_program(fakes: dict[str, Any]) -> None:
    run = ops.compile(ops.tanh, engine="auto")
    assert run.engine is None
    fakes["numba"] = 0.1
    run(random(3))
    assert run.engine == "numba"
    fakes["numba"] = 2.0
    run(random(300))
    assert run.engine is None


def test_a_function_that_is_compiled_again_has_an_engine_of_its_own(fakes: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    run = ops.compile(ops.tanh, engine="auto")
    named = ops.compile(run, engine="torch")
    assert [named.engine, ops.compile(run).engine] == [None, None]
    named(random(3))
    assert named.engine == "torch"


def test_auto_tries_no_engine_whose_call_takes_longer_than_the_program(fakes: dict[str, Any]) -> None:
    for seconds, wanted in ((1e-6, []), (2e-5, ["numba"]), (1e-3, ["torch", "numba"])):
        fakes |= {"": seconds, "tried": []}
        compiled(ops.tanh, "auto")(random(3))
        assert fakes["tried"] == wanted


def test_an_interruption_leaves_the_choice_to_the_next_call(
    fakes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    run, choose = compiled(ops.tanh, "numba"), engines.EngineTrial._runner
    monkeypatch.setattr(engines.EngineTrial, "_runner", interrupt)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(random(3))
    monkeypatch.setattr(engines.EngineTrial, "_runner", choose)
    assert close(run(random(3)), np.tanh(random(3)))
    assert run._last_program is not None
    assert run._last_program.replay.name == "numba"


def test_other_threads_go_on_with_numpy_while_one_chooses(
    fakes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, results = compiled(ops.tanh, "numba"), []
    choose = engines.EngineTrial._runner

    def meanwhile() -> None:
        with ops.use_backend("numpy"):
            results.append(run(random(3, seed=5)))

    def in_thread(trial: Any, name: str) -> Any:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join(60)
        return choose(trial, name)

    monkeypatch.setattr(engines.EngineTrial, "_runner", in_thread)
    run(random(3))
    assert close(results, [np.tanh(random(3, seed=5))])
    assert run._last_program is not None
    assert run._last_program.replay.name == "numba"


X = np.linspace(-1.0, 1.0, 6)
KEPT = np.tanh(X)
RUNNERS: dict[str, Any] = {
    "an argument": (lambda x: [x[0]], lambda x: [x[0].copy()]),
    "another result": (lambda x: [KEPT.copy()] * 2, lambda x: [KEPT.copy(), KEPT.copy()]),
    "the next run": (lambda x: [KEPT], lambda x: [KEPT.copy()]),
}


@pytest.mark.parametrize("name", RUNNERS)
def test_a_result_that_shares_memory_is_copied(name: str) -> None:
    shared, own = RUNNERS[name]
    expected = own([X])
    one, other = checked_runner(shared, [X], expected)([X]), checked_runner(shared, [X], expected)([X])
    arrays = [*one, *other, X]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    assert all(np.array_equal(a, b) for a, b in zip(one, expected, strict=True))


@pytest.mark.parametrize(
    ("array", "expected", "same"),
    [
        (KEPT + 1e-11, KEPT, True),
        (KEPT + 1e-8, KEPT, False),
        (KEPT.astype("float32"), KEPT, False),
        (KEPT[None], KEPT, False),
        (np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0]), True),
        (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), False),
        (np.array([1.0, 1.0]), np.array([np.nan, 1.0]), False),
        (np.array([-np.inf]), np.array([np.inf]), False),
        (np.float32([1.0, 1e-5]), np.float32([1.0, 5e-5]), True),
        (np.float32([1.0, 2e-4]), np.float32([1.0, 0.0]), False),
        (np.array([1 + 1e-4j]), np.array([1 + 0j]), False),
        (np.array([2, 3]), np.array([2, 3]), True),
        (np.array([2, 3]), np.array([2, 4]), False),
        (np.zeros((0, 3)), np.zeros((0, 3)), True),
    ],
)
def test_a_result_has_to_be_close_to_that_of_numpy(array: Any, expected: Any, same: bool) -> None:
    if same:
        assert checked_runner(lambda _: [array.copy()], [], [expected])([])[0] is not array
    else:
        with pytest.raises(RefusedError):
            checked_runner(lambda _: [array.copy()], [], [expected])


def test_the_fastest_is_found_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"": iter([3.0, 1.0, 3.0, 3.0, 3.0]), "torch": iter([2.0, 2.0, 0.5, 2.0, 2.0])}
    runners = {name: functools.partial(next, each) for name, each in times.items()}
    monkeypatch.setattr(engines, "_mean_seconds", lambda run, *_: run())
    assert fastest_runner_name(runners, [], 1e-3) == "torch"  # type: ignore[arg-type]


def test_engines_have_one_turn_if_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"": iter([3.0]), "torch": iter([2.0])}
    runners = {name: functools.partial(next, each) for name, each in times.items()}
    monkeypatch.setattr(engines, "_mean_seconds", lambda run, *_: run())
    monkeypatch.setattr(engines, "_MOST", -1.0)
    assert fastest_runner_name(runners, [], 1e-3) == "torch"  # type: ignore[arg-type]


def test_a_thread_that_comes_late_chooses_no_engine_again(fakes: dict[str, Any]) -> None:
    trials: list[engines.EngineTrial] = []
    adopted: list[Any] = []

    class Trial(engines.EngineTrial):
        def _choose_engine(self, inputs: Any) -> None:
            trials.append(self)
            adopted.append(inputs)

    trial = Trial(Engines("auto"), None, (None, 1, ()), lambda inputs: [*inputs], adopted.append)  # type: ignore[arg-type]
    assert [trial([2.0]), trial([3.0])] == [[2.0], [3.0]]
    assert (trials, adopted) == ([trial], [[2.0]])


def test_a_folder_that_cannot_be_made_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "file"))
    assert settings.cache_folder("torch") is None
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path))
    assert settings.cache_folder("torch") == str(tmp_path / "torch")
    assert (tmp_path / "torch").is_dir()


def test_jax_is_left_out_of_the_choice_unless_it_computes_in_64_bits() -> None:
    jax = pytest.importorskip("jax")
    assert "jax" in Engines("auto").candidate_names(1.0, None)
    jax.config.update("jax_enable_x64", False)
    with warnings.catch_warnings():
        assert "jax" not in Engines("auto").candidate_names(1.0, None)
