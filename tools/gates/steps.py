"""The gate `steps`: what each optimizer and wrapper makes of lists of parameters, in each form of a step."""

import copy
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from emberharmony import Parameter, ops, optim
from emberharmony.core.selection import current
from gates.probe import Outcome
from gates.record import stable_text

STEPS = 5
MOST, SAMPLE, TAIL = 64, 32, 8
"""A tensor of more elements is recorded by a sample of them, its last ones, and a digest of all."""

Shapes = Sequence[tuple[str, tuple[int, ...]]]

_SMALL = [(4, 3), (), (17,), (0, 2), (33,), (2, 2), (17,), (5, 1, 2)]
LISTS: dict[str, Shapes] = {
    "few": [("float32", (3,)), ("float32", (2, 2))],
    "small": [("float32", shape) for shape in _SMALL],
    "alike": [("float32", (8, 8))] * 20,
    "large": [("float32", shape) for shape in ((300, 250), (70001,), (40,), (3,), (512, 200), (9,), (5, 5), (65536,))],
    "double": [("float64", shape) for shape in (*_SMALL, (200, 201), (300, 300), (7,))],
    "mixed": [
        (("float32", "float64", "float16", "bfloat16")[i % 4], shape)
        for i, shape in enumerate((*_SMALL, *_SMALL, *_SMALL, *_SMALL, (190, 190), (33000,), (182, 182)))
    ],
}
"""The lists of parameters, as dtypes and shapes; a dtype that the backend lacks is left out."""

Factory = Callable[[Any], Any]


def _sgd_factory(**options: Any) -> Factory:
    return lambda params: optim.SGD(params, lr=0.1, **options)


def _adam_factory(**options: Any) -> Factory:
    return lambda params: optim.Adam(params, lr=0.05, **options)


OPTIMIZERS: dict[str, Factory] = {
    "SGD": _sgd_factory(),
    "SGD decay": _sgd_factory(weight_decay=0.1, maximize=True),
    "SGD momentum": _sgd_factory(momentum=0.9),
    "SGD nesterov": _sgd_factory(momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD dampened": _sgd_factory(momentum=0.9, dampening=0.3, maximize=True),
    "SGD scheduled": lambda params: optim.SGD(params, lr=optim.schedules.cosine(0.3, T_max=4)),
    "Adam": _adam_factory(),
    "Adam decay": _adam_factory(weight_decay=0.1, maximize=True),
    "Adam amsgrad": _adam_factory(amsgrad=True, betas=(0.0, 0.5)),
    "AdamW": lambda params: optim.AdamW(params, lr=0.05),
    "AdamW amsgrad": lambda params: optim.AdamW(params, lr=optim.schedules.cosine(0.3, T_max=4), amsgrad=True),
    "Adamax": lambda params: optim.Adamax(params, weight_decay=0.1),
    "NAdam": lambda params: optim.NAdam(params, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam": lambda params: optim.RAdam(params, lr=0.05, betas=(0.9, 0.9), weight_decay=0.1),
    "RMSprop": lambda params: optim.RMSprop(params),
    "RMSprop centered": lambda params: optim.RMSprop(params, centered=True, momentum=0.9, weight_decay=0.1),
    "Adagrad": lambda params: optim.Adagrad(params, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5),
    "Adadelta": lambda params: optim.Adadelta(params, weight_decay=0.1),
    "ASGD": lambda params: optim.ASGD(params, lr=0.1, t0=2, weight_decay=0.1),
    "Rprop": lambda params: optim.Rprop(params),
    "Lion": lambda params: optim.Lion(params, lr=0.01, weight_decay=0.1),
    "LAMB": lambda params: optim.LAMB(params, lr=0.05),
    "Adafactor": lambda params: optim.Adafactor(params, lr=0.1, weight_decay=0.1),
    "Muon": lambda params: optim.Muon([cell for cell in params if len(cell.value.shape) == 2], lr=0.1),
    "Accumulate": lambda params: optim.Accumulate(optim.AdamW(params, lr=0.05), 2),
    "Lookahead": lambda params: optim.Lookahead(optim.SGD(params, lr=0.1, momentum=0.9), k=2),
    "SkipNonfinite": lambda params: optim.SkipNonfinite(optim.RMSprop(params)),
    "Sharded": lambda params: optim.Sharded(optim.AdamW(params, lr=0.05)),
    "nested": lambda params: optim.SkipNonfinite(optim.Accumulate(optim.Lookahead(optim.Adam(params, lr=0.1)), 2)),
    "rate as a tensor": lambda params: optim.AdamW(params, lr=cast("Any", ops.convert_to_tensor(0.05))),
}


class _Run(NamedTuple):
    """An optimizer with its parameters and the gradients of each step."""

    cells: list[Parameter]
    optimizer: Any
    rows: list[list[Any]]


def outcomes_of(name: str) -> dict[str, Outcome]:
    """Returns what an optimizer makes of each list of parameters, by the list and the way of the run."""
    outcomes: dict[str, Outcome] = {}
    for list_name, shapes in LISTS.items():
        for way, run in WAYS.items():
            if way in ("as steps", "kept") or list_name in ("few", "small", "double"):
                outcomes[f"{list_name}, {way}"] = _run_outcome(name, shapes, run)
    return outcomes


def other_outcomes() -> dict[str, Outcome]:
    """Returns what averages of parameters, L-BFGS, clipping and the loss scaler make of small parameters."""
    return {name: _run_outcome("SGD", LISTS["small"], run) for name, run in _OTHERS.items()}


def _run_outcome(name: str, shapes: Shapes, run: Callable[[_Run], Any]) -> Outcome:
    try:
        return outcome_of(run(_start_run(name, shapes)))
    except Exception as error:  # noqa: BLE001  (the gate records every error)
        return ["error", type(error).__name__, stable_text(error)[:300]]


def _start_run(name: str, shapes: Shapes) -> _Run:
    rng = np.random.default_rng(len(shapes))
    dtypes_and_shapes = [(dtype, shape) for dtype, shape in shapes if dtype in current().dtypes.available]
    cells = [Parameter(_random_tensor(rng, *each)) for each in dtypes_and_shapes]
    gradient_rows = [[_random_tensor(rng, *each) for each in dtypes_and_shapes] for _ in range(STEPS)]
    return _Run(cells, OPTIMIZERS[name](cells), gradient_rows)


def _random_tensor(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    host_array = np.asarray(rng.standard_normal(shape), "float64" if dtype == "float64" else "float32")
    return ops.cast(ops.convert_to_tensor(host_array), cast("Any", dtype))


def _make_step(run: _Run, row: Sequence[Any]) -> None:
    for cell, gradient in zip(run.cells, row, strict=True):
        cell.grad = gradient
    run.optimizer.step()


def _run_result(run: _Run) -> Any:
    return [cell.value for cell in run.cells], run.optimizer.state_dict()


def _make_steps(run: _Run) -> Any:
    for row in run.rows:
        _make_step(run, row)
    return _run_result(run)


def _step_with_kept_values(run: _Run) -> Any:
    """Makes the steps while somebody keeps the parameters, so that no step may write over them."""
    kept_values = []
    for row in run.rows:
        kept_values.append([cell.value for cell in run.cells])
        _make_step(run, row)
    return _run_result(run), kept_values[-1]


def _step_with_disturbances(run: _Run) -> Any:
    """Makes the steps with some gradients left out, an assignment, a new rate and a read of the state between them."""
    for i, row in enumerate(run.rows):
        _make_step(run, [x if i != 2 or place % 3 else None for place, x in enumerate(row)])
        if i == 1:
            run.cells[0].value = ops.multiply(run.cells[0].value, 0.5)
            ops.eval([leaf for leaf in ops.tree_leaves(run.optimizer.state_dict()) if current().is_tensor(leaf)])
        if i == 3:
            run.optimizer.param_groups[0]["lr"] = 0.02
    return _run_result(run)


def _step_after_loading(run: _Run) -> Any:
    """Makes steps, saves and loads them into a copy, and goes on."""
    for row in run.rows[:2]:
        _make_step(run, row)
    saved_state = run.optimizer.state_dict()
    cells, optimizer = copy.deepcopy((run.cells, run.optimizer))
    optimizer.load_state_dict(saved_state)
    return _make_steps(_Run(cells, optimizer, run.rows[2:]))


def _step_purely(run: _Run) -> Any:
    """Makes the steps in the pure form."""
    params = [cell.value for cell in run.cells]
    if isinstance(run.optimizer, optim.Muon):
        return None
    state = run.optimizer.init(params)
    for row in run.rows[:3]:
        params, state = run.optimizer.update(row, state, params)
    return params, state


def _step_with_mappings(run: _Run) -> Any:
    """Makes the steps with gradients in a mapping, and with one that is not finite."""
    for i, row in enumerate(run.rows):
        gradient_by_cell = dict(zip(run.cells, row, strict=True))
        if i == 1:
            gradient_by_cell[run.cells[0]] = ops.multiply(row[0], float("inf"))
        run.optimizer.step({cell: gradient_by_cell[cell] for cell in run.optimizer.parameters()})
    return _run_result(run)


WAYS: dict[str, Callable[[_Run], Any]] = {
    "as steps": _make_steps,
    "kept": _step_with_kept_values,
    "disturbed": _step_with_disturbances,
    "resumed": _step_after_loading,
    "pure": _step_purely,
    "named": _step_with_mappings,
}


def _average_runner(kind: Callable[[Any], Any]) -> Callable[[_Run], Any]:
    def run_with_average(training_run: _Run) -> Any:
        average = kind(training_run.cells)
        for row in training_run.rows:
            _make_step(training_run, row)
            average.update()
        average.swap()
        return _run_result(training_run), [cell.value for cell in average.averages]

    return run_with_average


def _step_with_line_search(run: _Run) -> Any:
    cells = [cell for cell in run.cells if len(cell.value.shape) == 1]
    optimizer = optim.LBFGS(cells, lr=0.5, line_search_fn="strong_wolfe")

    def loss() -> Any:
        return ops.sum(ops.concatenate([ops.square(ops.square(ops.subtract(cell, 1.0))) for cell in cells]))

    for _ in range(3):
        optimizer.step(lambda: ops.backward(loss, cells))
    return [cell.value for cell in cells]


def _step_with_clipping(run: _Run) -> Any:
    clip_results = []
    clip_functions: tuple[Any, ...] = (optim.clip_by_global_norm, optim.clip_by_norm, optim.clip_by_value)
    for row, clip in zip(run.rows, clip_functions, strict=False):
        for cell, gradient in zip(run.cells, row, strict=True):
            cell.grad = gradient
        clip_results.append(clip(run.cells, 0.5))
        run.optimizer.step()
    return clip_results, _run_result(run)


def _step_compiled(run: _Run) -> Any:
    """Compiles a training step, on NumPy only: others take minutes."""
    if current().name != "numpy":
        return None

    @ops.compile
    def step(x: Any) -> Any:
        loss = ops.backward(lambda: ops.sum(ops.square(ops.multiply(run.cells[0], x))), [run.cells[0]])
        run.optimizer.step()
        return loss

    return [step(row[0]) for row in run.rows], _run_result(run)


_OTHERS: dict[str, Callable[[_Run], Any]] = {
    "EMA": _average_runner(lambda cells: optim.EMA(cells, 0.9)),
    "SWA": _average_runner(optim.SWA),
    "LBFGS": _step_with_line_search,
    "clipping": _step_with_clipping,
    "compiled": _step_compiled,
}


def outcome_of(value: Any) -> Outcome:
    """Returns a tree in the form of a record; see `gates.probe`."""
    if isinstance(value, Parameter):
        value = value.value
    if isinstance(value, (tuple, list)):
        return ["several", type(value).__name__, [outcome_of(item) for item in value]]
    if isinstance(value, dict):
        return ["several", "dict", [outcome_of(item) for item in [(key, value[key]) for key in sorted(value, key=str)]]]
    if not current().is_tensor(value):
        return ["object", type(value).__name__, stable_text(repr(value))]
    dtype = str(ops.dtype(value).name)
    host_array = np.asarray(ops.to_numpy(ops.cast(value, "float32") if dtype == "bfloat16" else value))
    flat_array = host_array.ravel()
    if flat_array.size <= MOST:
        return ["tensor", dtype, list(host_array.shape), _join_values(flat_array)]
    sampled_elements = np.concatenate([flat_array[:: flat_array.size // SAMPLE], flat_array[-TAIL:]])
    return [
        "tensor",
        dtype,
        list(host_array.shape),
        _join_values(sampled_elements),
        hashlib.sha256(flat_array.tobytes()).hexdigest(),
    ]


def _join_values(host: Any) -> str:
    return " ".join(host.astype(str).tolist())
