"""An unknown name or keyword is reported together with ours, also where another library has that name."""

import copy
import importlib
import inspect
import os
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from emberharmony import create_backend, ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.dispatch import DISPATCH, SWAP
from emberharmony.core.names import elsewhere, members, spellings
from emberharmony.core.names.spellings import KEYWORDS, METHODS, NAMES, method_hint
from emberharmony.core.registry import OPS

NUMPY_AND_MLX = [name for name in BUILTIN if name != "torch" and is_installed(name)]


def test_every_name_that_a_hint_gives_exists() -> None:
    for call in (*NAMES.values(), *METHODS.values()):
        for path in re.findall(r"(?:^|ops\.)([a-z_][\w.]*)", call):
            space = ops
            for part in path.split("."):
                assert part in space.__all__, call
                space = getattr(space, part)


def test_every_parameter_that_a_hint_gives_exists() -> None:
    parameters = {parameter.name for spec in OPS.values() for parameter in spec.parameters}
    assert {name for names in KEYWORDS.values() for name in names} <= parameters


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("summ", "; did you mean 'sum'?"),
        ("randn", "; use ops.random.normal(shape)"),
        ("randint", "; did you mean ops.random.randint?"),
        ("unsqueeze", "; use ops.expand_dims(x, axis)"),
        ("tensor", "; use ops.convert_to_tensor(x)"),
        ("choice", "; did you mean ops.random.choice?"),
        ("reduce_mean", "; use ops.mean(x, axis)"),
        ("long", "; use ops.cast(x, dtype), or ops.int64 for the dtype"),
        ("float_power", "; use ops.power(ops.cast(x, 'float64'), exponent)"),
        ("Conv2D", "; did you mean nn.Conv2d?"),
        ("adaptive_avg_pool2d", "; use ops.adaptive_average_pool(x, ...)"),
        ("qqqqqqqq", elsewhere.WITHOUT_COUNTERPART["ops"]),
        ("_repr_html_", ""),
    ],
)
def test_an_unknown_op_has_a_hint(name: str, hint: str) -> None:
    assert not hasattr(ops, name)
    with pytest.raises(AttributeError) as caught:
        getattr(ops, name)
    assert str(caught.value) == f"module 'emberharmony.ops' has no attribute {name!r}{hint}"
    assert caught.value.name == name


def test_an_unknown_name_of_a_namespace_has_a_hint() -> None:
    with pytest.raises(
        AttributeError, match=r"'emberharmony.ops.linalg' has no .* 'choleski'; did you mean 'cholesky'\?"
    ):
        _ = ops.linalg.choleski  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'einsum'; did you mean ops\.einsum\?"):
        _ = ops.linalg.einsum  # type: ignore[attr-defined]


def test_the_modules_of_the_declarations_are_no_names_of_ops() -> None:
    from emberharmony.ops import tensor  # as a module it can still be imported

    assert inspect.ismodule(tensor)
    assert not any(hasattr(ops, module) for module in ("tensor", "reduction", "random_ops", "math", "transforms"))
    importlib.reload(ops)
    assert ops.get_backend() == ops.get_backend()


def test_an_unknown_op_of_a_backend_has_a_hint(backend: str) -> None:
    found = create_backend(backend)
    with pytest.raises(AttributeError, match=f"backend '{backend}' has no op 'randn'; use ops.random.normal"):
        _ = found.randn  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"has no op 'summ'; did you mean 'sum'\?"):
        _ = found.summ  # type: ignore[attr-defined]


def spaces() -> dict[str, Any]:
    """Returns the objects whose unknown names are reported with a hint."""
    backend = create_backend("numpy")
    xp = ops.array_namespace(np.ones(2))
    return {"ops": ops, "ops.linalg": ops.linalg, "xp": xp, "xp.linalg": xp.linalg, "backend": backend}


@pytest.mark.parametrize("space", list(spaces()))
def test_a_hint_is_computed_when_the_message_is_read(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(spellings, "hint_for_name", lambda *names: asked.append(names) or "; a hint")
    value = spaces()[space]
    assert not hasattr(value, "determinat")
    assert getattr(value, "determinat", None) is None
    with pytest.raises(AttributeError) as caught:
        _ = value.determinat
    assert asked == []
    assert str(caught.value).endswith(" 'determinat'; a hint")
    assert len(asked) == 1


def test_the_error_for_an_unknown_name_is_read_like_any_other() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = ops.summ  # type: ignore[attr-defined]
    message = "module 'emberharmony.ops' has no attribute 'summ'; did you mean 'sum'?"
    assert f"{caught.value}" == message
    assert repr(caught.value) == f"AttributeError({message!r})"
    for copied in (pickle.loads(pickle.dumps(caught.value)), copy.deepcopy(caught.value)):
        assert type(copied) is AttributeError
        assert str(copied) == message
    with pytest.raises(AttributeError) as private:
        _ = ops._summ  # type: ignore[attr-defined]
    assert private.value.args == ("module 'emberharmony.ops' has no attribute '_summ'",)


@pytest.mark.fresh_process
@pytest.mark.parametrize("name", ["ops.summ", "ops.linalg.choleski", "xp.summ", "xp.linalg.choleski"])
def test_a_traceback_has_one_hint(name: str) -> None:
    program = f"from emberharmony import ops\nxp = ops.array_namespace(ops.ones(2))\n{name}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"EMBERHARMONY_BACKEND": "numpy"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.lower().count("did you mean") == 1, done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("AttributeError: ")


def test_the_import_of_an_unknown_name_raises_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'randn' from 'emberharmony\.ops'"):
        from emberharmony.ops import randn  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize(
    ("method", "hint"),
    [
        ("unsqueeze", "use ops.expand_dims(x, axis), or ops.stop_gradient(x) for the plain tensor"),
        ("clip", "use ops.clip(x, ...), or ops.stop_gradient(x) for the plain tensor"),
        ("expand", "use ops.broadcast_to(x, shape), or ops.stop_gradient(x) for the plain tensor"),
        ("numpy", "use ops.to_numpy(x), or ops.stop_gradient(x) for the plain tensor"),
        ("add_", "use ops.add(x, ...), which returns a new tensor, or ops.stop_gradient(x) for the plain tensor"),
        ("mul_", "use ops.multiply(x1, x2), which returns a new tensor, or ops.stop_gradient(x) for the plain tensor"),
        ("zero_", "use ops.zeros_like(x), which returns a new tensor, or ops.stop_gradient(x) for the plain tensor"),
        ("grad", "use ops.grad(fn), or ops.stop_gradient(x) for the plain tensor"),
        ("requires_grad_", "use ops.grad(fn), or ops.stop_gradient(x) for the plain tensor"),
        ("detach", "use ops.stop_gradient(x)"),
        ("data", "use ops.stop_gradient(x)"),
        ("qqqq", "use the functions of ops, or ops.stop_gradient(x) for the plain tensor"),
    ],
)
def test_an_unknown_method_of_a_traced_tensor_names_the_op(method: str, hint: str) -> None:
    assert method_hint(method) == hint
    ops.set_backend("numpy")
    with pytest.raises(AttributeError, match=f"{re.escape(hint)}$") as caught:
        ops.grad(lambda x: ops.sum(getattr(x, method)(0)))([1.0])
    assert caught.value.name == method


WRONG = """
from emberharmony import ops
from emberharmony.errors import ArgumentTypeError

def message(call):
    try:
        call()
    except ArgumentTypeError as error:
        return str(error)

x = [1.0, 2.0]
for attempt in range(2):
    assert message(lambda: ops.sum(x, dim=0)) == (
        "sum() got an unexpected keyword argument 'dim'; use axis= (it takes x, axis, keepdims, dtype)"
    )
assert "; use x_max= (" in message(lambda: ops.clip(x, max_value=1))
assert "; use xs= (" in message(lambda: ops.concatenate(tensors=[x, x], dim=0))
assert "; did you mean 'axis'? (" in message(lambda: ops.mean(x, axsi=0))
assert "; leave it out: the result is a new tensor (it takes x)" in message(lambda: ops.sin(x, out=x))
assert "; use shape= (" in message(lambda: ops.random.normal(size=3))
try:
    ops.matmul(x)
except TypeError as error:
    assert str(error) == "matmul() missing 1 required positional argument: 'x2'"
assert float(ops.sum(x, axis=0)) == float(ops.sum(x, keepdims=False)) == 3
assert "kwargs" not in ops.sum.__code__.co_varnames, "from its first call on, an op catches no keywords"
"""


@pytest.mark.fresh_process
@pytest.mark.skipif(DISPATCH != SWAP, reason="the portable dispatch leaves the check of keywords to Python")
@pytest.mark.parametrize("name", NUMPY_AND_MLX)
def test_an_unknown_keyword_of_an_op_that_was_not_called_yet_has_a_hint(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRONG], env=os.environ | {"EMBERHARMONY_BACKEND": name}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_keyword_of_any_op_is_named(backend: str) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^softplus\(\) got an unexpected keyword argument 'beta'"):
            ops.softplus([1.0], beta=2.0)  # type: ignore[call-arg]
        ops.softplus([1.0])


@pytest.mark.fresh_process
def test_the_signature_of_an_op_is_the_declared_one_before_and_after_the_first_call() -> None:
    program = (
        "import inspect\nfrom emberharmony import ops\n"
        "before = inspect.signature(ops.sum)\nops.sum([1.0])\n"
        "assert list(before.parameters) == ['x', 'axis', 'keepdims', 'dtype']\n"
        "assert inspect.signature(ops.sum) == before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"EMBERHARMONY_BACKEND": "numpy"})


@pytest.mark.parametrize(
    ("space", "name", "hint"),
    [
        ("nn", "Dense", "; use nn.Linear(in_features, out_features)"),
        ("nn", "Conv2D", "; did you mean 'Conv2d'?"),
        ("nn", "cross_entropy", "; did you mean ops.cross_entropy or ops.nn.cross_entropy or nn.losses.cross_entropy?"),
        ("nn", "Adam", "; did you mean optim.Adam?"),
        ("nn", "relu", "; did you mean ops.relu or ops.nn.relu?"),
        ("optim", "cosine", "; did you mean optim.schedules.cosine?"),
        ("optim", "Adamm", "; did you mean 'Adam'?"),
        ("io", "save_weights", "; use io.save(model, 'model.safetensors')"),
        ("", "set_backend", "; did you mean ops.set_backend?"),
        ("nn.losses", "mse_loss", "; use nn.losses.mse(predictions, targets)"),
        ("ops", "Linear", "; did you mean nn.Linear?"),
        ("ops", "hinge_loss", "; use nn.losses.hinge(outputs, target)"),
        ("ops", "relu_", "; use ops.relu(x), which returns a new tensor"),
        ("nn", "LazyLinear", "; use nn.Linear(None, out_features) and nn.build(model, example)"),
        ("nn", "unsqueeze", "; use ops.expand_dims(x, axis)"),
        ("nn", "clip_grad_norm_", "; use optim.clip_by_global_norm(model, 1.0) before optimizer.step()"),
        (
            "nn.metrics",
            "d2_pinball_score",
            "; scikit-learn has it, for arrays: sklearn.metrics.d2_pinball_score(labels, ops.to_numpy(outputs))",
        ),
    ],
)
def test_names_of_other_libraries_have_a_hint_everywhere(space: str, name: str, hint: str) -> None:
    module = importlib.import_module(f"emberharmony.{space}".rstrip("."))
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value) == f"module '{module.__name__}' has no attribute {name!r}{hint}"


def test_every_name_in_a_way_out_exists() -> None:
    texts = [text for names in (*elsewhere.NAMES.values(), *members.ATTRIBUTES.values()) for text in names.values()]
    emberharmony = importlib.import_module("emberharmony")
    for path in {path for text in texts for path in re.findall(r"\b(?:ops|nn|optim|io)(?:\.[A-Za-z]\w*)+", text)}:
        found = emberharmony
        for part in path.split("."):
            found = getattr(found, part)
    assert set(elsewhere.NAMES) <= set(spellings.PUBLIC) | {"nn.functional"}
