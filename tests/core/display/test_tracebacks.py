"""Errors are shown without the frames of the library, with hints, and warnings at the user's line."""

import json
import operator
import subprocess
import sys
import traceback
import warnings
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, io, nn, ops, optim
from emberharmony.backend import discovery
from emberharmony.core.display import hints, tracebacks
from emberharmony.core.display.tracebacks import VARIABLE, lines_of_error, shorten_error, show_warning
from emberharmony.core.state import hooks
from emberharmony.data import digits


def shown(error: BaseException) -> str:
    with shorten_error(error, error.__traceback__) as kept:
        assert error.__traceback__ is kept or kept is None
        return "".join(traceback.format_exception(error))


def caught(fn: Any) -> BaseException:
    with pytest.raises(Exception) as info:
        fn()
    return info.value


def users_function(x: Any) -> Any:
    return ops.matmul(x, x)


def maximum_and_index() -> None:
    _values, _indices = ops.max(ops.ones((3, 2)), axis=1)


def sorted_and_indices() -> None:
    _values, _indices = ops.sort(ops.ones((3, 2)))


def unequal_pair() -> None:
    _first, _second = ops.ones(3)


def test_an_error_is_shown_with_the_lines_of_the_user_only(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = caught(lambda: ops.grad(lambda x: ops.sum(users_function(x)))(ops.ones((2, 3))))
    whole = error.__traceback__
    text = shown(error)
    assert "emberharmony/" not in text.replace("tests/core", "")
    assert "return ops.matmul(x, x)" in text
    assert f"frames of emberharmony are hidden; {VARIABLE}=full shows them" in text
    assert "direct cause" not in text
    assert error.__traceback__ is whole
    assert not getattr(error, "__notes__", [])
    monkeypatch.setenv(VARIABLE, "full")
    assert "emberharmony/ops" in shown(error)


def test_ipython_shows_the_lines_of_the_user_only() -> None:
    def lines_of_ipython(kind: Any, error: Any, trace: Any, offset: int = 0) -> list[str]:
        return (
            [str(offset), *traceback.format_exception(kind, error, trace)]
            if isinstance(trace, TracebackType)
            else trace
        )

    error = caught(lambda: users_function(ops.ones((2, 3))))
    text = "".join(lines_of_error(lines_of_ipython, type(error), error, error.__traceback__, offset=7))
    assert text.startswith("7")
    assert "return ops.matmul(x, x)" in text
    assert "emberharmony/" not in text.replace("tests/core", "")
    for given in ((SyntaxError, SyntaxError("x"), ["a line"]), (None, None, error.__traceback__)):
        assert lines_of_error(lines_of_ipython, *given) == lines_of_ipython(*given)


def test_an_unexpected_error_of_the_library_is_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberharmony.nn.module.walk", SimpleNamespace(named_modules=None))
    text = shown(caught(lambda: list(nn.Linear(2, 1).named_modules())))
    assert "hidden" not in text
    assert "emberharmony/nn/module.py" in text


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: nn.Linear(2, 1).cuda(), "model.to(device='cuda:0')"),
        (lambda: nn.Linear(2, 1).zero_grad(), "ops.zero_grad(model)"),
        (lambda: nn.Linear(2, 1).sumary(), "did you mean 'summary'"),
        (lambda: optim.SGD(nn.Linear(2, 1), lr=0.1).minimize(), "ops.backward"),
        (lambda: setattr(Parameter(1.0), "requires_grad", False), "parameter.trainable = False"),
        (lambda: optim.schedules.step(0.1, 3).step(), "pass it as lr="),
        (lambda: np.ones(2).unsqueeze(0), "ops.expand_dims(x, axis)"),
        (lambda: np.ones(()).backward(), "ops.backward(lambda"),
        (lambda: optim.Adam(nn.Linear(2, 1), learning_rate=0.1), "use lr="),
        (lambda: nn.Linear(2, 1, use_bias=False), "use bias="),
        (lambda: nn.Linear(2, 1, bais=False), "did you mean 'bias'"),
        (lambda: (ops.sum([1.0]), ops.sum([1.0], dim=0)), "use axis="),
        (lambda: next(nn.Linear(2, 1).parameters()), "next(iter(model.parameters()))"),
        (lambda: nn.Linear(2), "it takes in_features, out_features, bias; out_features: the length of the last axis"),
        (lambda: nn.Conv2d(1, 2), "kernel_size: the size of the kernel"),
        (lambda: nn.fit(1, 2, 3, 4, 5), "batches: batches of one epoch each time it is iterated, such as `nn.data"),
        (lambda: nn.fit(1, 2, 3, 4, early_stopping=3), "callbacks: called with each `Step`; one that returns a text"),
        (lambda: nn.data.batches(np.ones(2), 2), "batch_size: how many rows a batch has"),
        (lambda: nn.losses.mse(1.0, 1.0, reduce=True), "did you mean 'reduction'"),
        (lambda: nn.Linear(2, 1).to("cuda"), "pass options by name: to(dtype=..., device=..., backend=...)"),
        (lambda: nn.Linear(2, 1, activation="relu"), "use nn.ReLU()"),
        (lambda: Parameter(1.0, requires_grad=False), "use trainable="),
        (lambda: ops.one_hot([1]), "num_classes: the number of classes"),
        (lambda: nn.Linear(2, 1).state_dict()(1.0), "make the model first, then io.load_model(model, path)"),
        (lambda: nn.History()(1.0), "keep the model under a name of its own"),
        (lambda: 0.1 * Parameter(ops.ones(2)).grad, "grad is None until ops.backward("),
        (lambda: np.ones(2).size(0), "use x.shape[axis], or ops.size(x)"),
        (lambda: ops.ones(2)(1.0), "give the value another name"),
        (maximum_and_index, "use ops.max_and_argmax(x, axis)"),
        (sorted_and_indices, "ops.argsort(x, axis) gives the indices"),
        (lambda: operator.iadd(ops.array([1, 2]), 0.5), "use x = x + 0.5"),
    ],
)
def test_an_error_of_python_has_a_hint(call: Any, hint: str) -> None:
    ops.set_backend("numpy")
    text = shown(caught(call))
    assert hint in text.partition("hint: ")[2], text


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 3)

    def __call__(this) -> Any:  # noqa: N805  (the mistake: no `self` before the input)
        return this.first


class Named(nn.Sequential):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 3)


class Misspelt(nn.Module):
    def _init_(self) -> None:
        self.first = nn.Linear(2, 3)


def names_and_parameters() -> None:
    for _name, _parameter in nn.Linear(2, 1).parameters():
        pass


def numbered_batches() -> None:
    batches = nn.data.batches(np.ones((4, 2)), np.ones(4), batch_size=2)
    for _i, _x, _y in enumerate(batches):
        pass


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: ops.ones((2, 3)) * ops.ones(2), "print x.shape of both"),
        (lambda: ops.ones((2, 3)) @ ops.ones((2, 3)), "the last axis of x has the length of the last but one of w"),
        (lambda: float(ops.ones(3)), "reduce it by ops.mean(x)"),
        (lambda: bool(ops.ones(3) > 0), "ops.where(condition, x, y)"),
        (lambda: ops.ones((2, 3))[0, 0, 0], "x[i, j] needs two axes"),
        (lambda: ops.ones(2)[1.0], "int(i) makes one of a float"),
        (lambda: ops.ones(4)[ops.array([True, False])], "ops.where(mask, x, 0)"),
        (lambda: f"{ops.ones(2):.2f}", "takes one number: float(x)"),
        (lambda: "loss " + ops.ones(()), "{float(loss):.3f}"),
        (lambda: range(ops.ones(())), "int(x) makes one of a number"),
        (lambda: json.dumps(ops.ones(2)), "x.tolist()"),
        (lambda: len(ops.ones(())), "the tensor is one number"),
        (lambda: ops.ones(2) + None, "a value is None"),
        (lambda: ops.ones(2) & ops.ones(2), "ops.logical_and"),
        (lambda: ops.ones(2).xyzzy, "the functions of tensors are in ops"),
    ],
)
def test_a_misused_tensor_has_a_hint(backend: str, call: Any, hint: str) -> None:
    assert hint in shown(caught(call)).partition("hint: ")[2]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: nn.Linear(2, 1).parameters["weight"], "call the method or function, with parentheses"),
        (lambda: nn.Linear(2, 1).parameters()["weight"], "dict(model.named_parameters())"),
        (lambda: nn.Linear(2, 1).named_parameters().items(), "dict(model.named_parameters())"),
        (names_and_parameters, "use for name, p in model.named_parameters():"),
        (numbered_batches, "for i, (x, y) in enumerate(batches)"),
        (lambda: nn.LSTM(2, 3)(ops.ones((5, 1, 2))).shape, "output, state = layer(x)"),
        (lambda: nn.metrics.Accuracy()(1, 2), "use update(outputs, labels), then compute()"),
        (lambda: nn.Linear(2, 1).units, "Linear has in_features, out_features, weight, bias"),
        (lambda: Parameter(1.0).numpy(), "use ops.to_numpy(parameter)"),
        (lambda: setattr(Parameter(1.0), "trainabel", False), "did you mean 'trainable'"),
        (lambda: digits.train_images, "digits is a function: call it, as in digits().train_images"),
        (lambda: ops.fft(1.0), "call one, as in ops.fft.fft(x)"),
        (lambda: optim.Adam.step(), "make one first, with parentheses"),
        (lambda: Net()(1.0), "the first parameter of a method is self: def __call__(self, this)"),
        (lambda: Net(1.0), "model = Net(), then model(x)"),
        (lambda: Net().secnod, "Net has first"),
        (lambda: Misspelt().first, "make them in a method named __init__"),
        (lambda: Named()(1.0), "calls super().__init__(...) first"),
        (lambda: ops.concatenate(ops.ones(2), ops.ones(2), axis=0), "it takes xs, axis"),
        (lambda: exec("io.load()", {"discovery": discovery, "io": io}), "it takes path"),
        (lambda: ops.array(1.0, requires_grad=True), "it takes x, dtype"),
    ],
)
def test_a_misused_object_has_a_hint(call: Any, hint: str) -> None:
    ops.set_backend("numpy")
    text = shown(caught(call))
    assert hint in text.partition("Error: ")[2], text


@pytest.mark.parametrize("shape", [(3, -1), (-1,), ((3, 2),)])
def test_view_as_pytorch_has_it_works_or_has_a_hint(backend: str, shape: tuple[Any, ...]) -> None:
    x: Any = ops.ones((3, 2))
    if backend == "torch":
        assert x.view(*shape).shape in ((3, 2), (6,))
    else:
        assert "use ops.reshape(x, shape)" in shown(caught(lambda: x.view(*shape)))


def test_methods_and_numpy_functions_of_tensors_of_torch_have_hints() -> None:
    torch = pytest.importorskip("torch")
    mixed = shown(caught(lambda: np.ones(2) + torch.ones(2)))
    assert "an array of NumPy left of a tensor of PyTorch: call ops.array(x)" in mixed
    assert "hint: use ops.mean(x)" in shown(caught(lambda: torch.ones(2, dtype=torch.bool).mean()))
    traced = torch.ones(2, requires_grad=True)
    assert "hint: use the functions of ops" in shown(caught(lambda: np.exp(traced)))
    assert "hint: an assignment such as x += 0.5" in shown(caught(lambda: operator.iadd(torch.ones(2).long(), 0.5)))


def test_numbers_and_pairs_that_have_another_cause_get_no_hint() -> None:
    ops.set_backend("numpy")
    number: Any = 3
    assert shown(caught(lambda: number(0))).endswith("object is not callable\n")
    assert shown(caught(unequal_pair)).endswith("(expected 2)\n")


def test_an_error_of_another_class_gets_no_hint_for_its_text() -> None:
    def fail(text: str) -> None:
        raise LookupError(text)

    for text in ("'list' object is not an iterator", "'dict' object is not callable", "does not have a grad_fn"):
        assert shown(caught(lambda text=text: fail(text))).endswith(f"LookupError: {text}\n")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("from emberharmony import layers", "layers and models are in emberharmony.nn"),
        ("from emberharmony.layers import Dense", "layers and models are in emberharmony.nn"),
        ("from emberharmony.nn import Dense", "use nn.Linear(in_features, out_features)"),
        ("from emberharmony.ops import randn", "use ops.random.normal(shape)"),
        ("from emberharmony import optimm", "did you mean 'optim'?"),
    ],
)
def test_an_import_of_an_unknown_name_has_a_hint(line: str, hint: str) -> None:
    error = caught(lambda: exec(line, {}))
    assert hint in shown(error).partition("hint: ")[2]


@pytest.mark.fresh_process
def test_the_first_import_of_a_program_has_a_hint_too() -> None:
    program = "from emberharmony import layers"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "hint: layers and models are in emberharmony.nn" in run.stderr


MODEL = "from emberharmony import nn\nclass Net(nn.Module):\n    def run({}): ...\n    get = property(len)\n"


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("(1).x", ""),
        ("import emberharmony; ops.ones(1)", "from emberharmony import ops"),
        ("from emberharmony import nn; F.relu(1)", "functions are in ops, as ops.relu(x), and losses in nn.losses"),
        ("from emberharmony import nn; np.ones(1)", "import numpy as np"),
        ("from emberharmony import nn; raise AttributeError('of nobody')", ""),
        (f"{MODEL.format('')}Net().run(1)", "the first parameter of a method is self: def run(self, x)"),
        (f"{MODEL.format('x')}Net().run(1)", "the first parameter of a method is self: def run(self, x)"),
        (f"{MODEL.format('self, a')}Net().run(1, 2)", "Net.run takes a"),
        (f"{MODEL.format('self')}Net().run(1, 2)", "Net.run takes nothing"),
        (f"{MODEL.format('self')}raise TypeError('Net.get() takes 1 positional argument but 2 were given')", ""),
        (
            "from emberharmony import errors; raise errors.ShapeError('odd lengths (in Net, a Dropout)')",
            "nn.Dropout takes p, rng",
        ),
    ],
)
def test_a_program_has_the_hint_for_its_own_names(program: str, hint: str) -> None:
    error = caught(lambda: exec(compile(program, "program.py", "exec"), {"__name__": "program"}))
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == "program.py"]
    found = hints.hint_for(error, frames[-1])
    assert found.startswith(hint)
    assert bool(found) == bool(hint)


def test_what_is_no_traceback_is_shown_as_it_was() -> None:
    def lines(*given: Any, **options: Any) -> Any:
        return given, options

    error = ValueError("text")
    for trace in (None, "a traceback"):
        assert lines_of_error(lines, ValueError, error, trace, 3, context=5) == (
            (ValueError, error, trace, 3),
            {"context": 5},
        )


def test_a_warning_of_a_thread_of_the_library_is_shown_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    monkeypatch.setattr(tracebacks, "_is_library_file", lambda file: True)
    file = ops.log.__code__.co_filename
    show_warning(lambda *given: seen.append(given[2:4]), "a text of its own", UserWarning, file, 3)
    assert seen == [(file, 3)]


def test_programs_without_the_library_get_no_hint() -> None:
    space: dict[str, Any] = {"np": np}
    error = caught(lambda: exec("np.ones(2).unsqueeze(0)", space))
    error.__traceback__ = error.__traceback__.tb_next.tb_next.tb_next  # type: ignore[union-attr]
    assert "hint" not in shown(error)


def test_a_warning_is_shown_at_the_line_of_the_user() -> None:
    seen: list[tuple[str, int]] = []

    def note(message: Any, category: Any, filename: str, lineno: int, *given: Any) -> None:
        seen.append((filename, lineno))

    tracebacks._SEEN.clear()
    show_warning(note, "text", UserWarning, ops.log.__code__.co_filename, 3)
    show_warning(note, "text", UserWarning, "theirs.py", 5)
    assert [filename for filename, _ in seen] == [__file__, "theirs.py"]


def test_hooks_are_installed_once_and_call_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *given: called.append(given))
    monkeypatch.setattr(warnings, "showwarning", lambda *given: called.append(given))
    hooks.install_hooks()
    first = sys.excepthook
    hooks.install_hooks()
    assert sys.excepthook is first
    sys.excepthook(ValueError, ValueError("x"), None)
    assert str(called[0][1]) == "x"


@pytest.mark.fresh_process
def test_a_program_ends_with_a_short_traceback() -> None:
    program = "from emberharmony import nn, ops\nops.set_backend('numpy')\nnn.Linear(3, 4)(ops.ones((5, 2)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.count("  File ") == 1, run.stderr  # Python 3.13 shows the line too, and marks what failed
    assert run.stderr.count("\n") <= 6, run.stderr
    assert "needs in_features=2" in run.stderr
    assert "direct cause" not in run.stderr


def test_an_assertion_with_a_key_as_its_message_is_no_missing_key(backend: str) -> None:
    state = nn.Linear(1, 1).state_dict()

    def compare() -> None:
        for name in state:
            raise AssertionError(name)

    assert "hint" not in shown(caught(compare))
    assert "list(x) gives the keys" in shown(caught(lambda: nn.Linear(1, 1).state_dict()["kernel"]))
