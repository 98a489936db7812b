"""`Captured.check`: compares outputs and gradients on each backend with PyTorch's, and finds the first wrong call."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from emberharmony import nn, ops
from emberharmony.core.errors import ArgumentError, EmberError, brief
from emberharmony.core.types import BackendLike
from emberharmony.interop.torch.graph import FLOAT, LAYER, Graph
from emberharmony.interop.torch.running import Runner
from emberharmony.interop.torch.structure import leaves

if TYPE_CHECKING:
    from emberharmony.interop.torch.captured import Captured


class Row(NamedTuple):
    """The errors of a captured module on one backend, a row of the report.

    Attributes:
        backend: its name.
        output: the largest error of an output, as a share of the largest element of that output.
        gradient: the same for the gradients of the parameters; those that are less than a hundredth of the largest one
            count as shares of that.
        first: the first call that differs from PyTorch's, with its line; "" if there is none.
        failure: the error; "" if there was none.
    """

    backend: str
    output: float = float("nan")
    gradient: float = float("nan")
    first: str = ""
    failure: str = ""


class Report:
    """The result of `Captured.check`; its text is a table.

    Attributes:
        rows: what was seen on each backend.
        tolerance, gradient_tolerance: the largest errors that are allowed.
        reference: the dtype in which PyTorch computed.
    """

    def __init__(self, rows: Sequence[Row], tolerance: float, gradient_tolerance: float, reference: str) -> None:
        self.rows, self.reference = list(rows), reference
        self.tolerance, self.gradient_tolerance = tolerance, gradient_tolerance

    @property
    def ok(self) -> bool:
        """Whether the results of all backends agree with those of PyTorch."""
        return not any(self.differs(row) for row in self.rows)

    def differs(self, row: Row) -> bool:
        """Returns whether the errors of a backend exceed the tolerances, or it failed."""
        return bool(row.failure) or not (row.output <= self.tolerance and row.gradient <= self.gradient_tolerance)

    def __repr__(self) -> str:
        lines = [f"compared with PyTorch in {self.reference}", "backend    output  gradient"]
        for row in self.rows:
            reason = row.failure or (row.first and f"first: {row.first}")
            verdict = reason or ("differs" if self.differs(row) else "agrees")
            lines.append(f"{row.backend:8} {row.output:8.1e}  {row.gradient:8.1e}  {verdict}")
        return "\n".join(lines)


def check_on_backends(
    net: "Captured", backends: Sequence[str] | None, tolerance: float, gradient_tolerance: float
) -> Report:
    """Compares a captured module on each backend with PyTorch's, and returns the report; see `Captured.check`.

    Raises:
        ArgumentError: if the module was read from a file.
    """
    source = net.source
    if source is None:
        raise ArgumentError("check() needs the module of PyTorch: call it on what from_torch() returns")
    # The module is imported only here, because it imports PyTorch, which is slow to load.
    from emberharmony.interop.torch.capture.reference import reference_results

    runner = net.runner()
    state = net.state_dict(host=True)
    expected_results = reference_results(source, state, net.training)
    backend_rows = []
    for backend in backends or list(ops.available_backends()):
        with ops.use_backend(cast(BackendLike, backend)):
            try:
                row = _errors_on_backend(net, backend, expected_results)
                report = Report([row], tolerance, gradient_tolerance, expected_results.dtype)
                if report.differs(row):
                    row = row._replace(
                        first=_first_difference_text(net, runner, tolerance * 10, gradient_tolerance * 10)
                    )
            except EmberError as error:
                notes_text = " ".join(getattr(error, "__notes__", ()))
                row = Row(backend, failure=f"{type(error).__name__}: {error} {notes_text}".strip())
        backend_rows.append(row)
    return Report(backend_rows, tolerance, gradient_tolerance, expected_results.dtype)


def _errors_on_backend(net: "Captured", backend: str, expected_results: Any) -> Row:
    """Returns the relative errors of a module's outputs and gradients on the active backend against PyTorch's."""
    saved_cell_values = [(cell, cell.value) for cell in net.buffers()]
    args, kwargs = net.example()
    graph = net.runner().graph

    def compute_loss() -> Any:
        result_leaves = leaves(graph.result, net(*args, **kwargs), "result")  # results in PyTorch's order
        outputs = [x for _, x, _ in result_leaves if _is_floating(x)]
        return _weighted_sum(outputs), outputs

    try:
        if net.parameters(trainable=True):
            (_, outputs), gradient_by_name = nn.value_and_grad(net, compute_loss, has_aux=True)()
        else:
            outputs, gradient_by_name = compute_loss()[1], {}
    finally:
        for cell, value in saved_cell_values:
            cell.value = value
    gradient_errors = [
        _largest_relative_error(g, expected_results.gradients[name], expected_results.largest_gradient / 100)
        for name, g in gradient_by_name.items()
        if name in expected_results.gradients
    ]
    if len(outputs) != len(expected_results.outputs):
        raise ArgumentError(
            f"the program has {len(outputs)} floating results, and the module {len(expected_results.outputs)}"
        )
    output_error = max(
        (_largest_relative_error(x, y) for x, y in zip(outputs, expected_results.outputs, strict=True)), default=0.0
    )
    return Row(backend, output_error, max(gradient_errors, default=0.0))


def _weighted_sum(outputs: Sequence[Any]) -> Any:
    # The module is imported only here, because it imports PyTorch, which is slow to load.
    from emberharmony.interop.torch.capture.reference import loss_weights

    weights = loss_weights([tuple(x.shape) for x in outputs])
    terms = [ops.sum(ops.multiply(x, ops.array(w, ops.dtype(x)))) for x, w in zip(outputs, weights, strict=True)]
    return ops.cast(sum(terms, start=ops.zeros(())), "float32")


def _is_floating(x: Any) -> bool:
    return ops.is_tensor(x) and ops.isdtype(ops.dtype(x), "real floating")


def _largest_relative_error(tensor: Any, expected_array: Any, least: float = 0.0) -> float:
    """Returns the largest difference of a tensor from an array, relative to the array's largest element."""
    # The module is imported only here, because it imports PyTorch, which is slow to load.
    from emberharmony.interop.torch.capture.reference import relative_error

    host_array = ops.to_numpy(ops.cast(tensor, "float32") if ops.dtype(tensor) == "bfloat16" else tensor)
    return relative_error(host_array, expected_array, least)


def _first_difference_text(net: "Captured", runner: Runner, tolerance: float, gradient_tolerance: float) -> str:
    """Returns a text on the first call of a graph whose results or gradients differ from PyTorch's; "" if none."""
    # The module is imported only here, because it imports PyTorch, which is slow to load.
    from emberharmony.interop.torch.capture.reference import run_steps

    args, kwargs = net.example()
    graph = runner.graph
    inputs = net.inputs(runner, args, kwargs)
    host_inputs = [ops.to_numpy(x) if ops.is_tensor(x) else x for x in inputs]
    for position, slot in enumerate(graph.slots):
        host_inputs[position] = slot.target if slot.kind == "layer" else host_inputs[position]
    assert net.source is not None
    for step in run_steps(net.source, graph, host_inputs):
        difference_text = _call_difference_text(runner, graph, step, inputs, tolerance, gradient_tolerance)
        if difference_text:
            return f"{graph.describe_call(step.place)}: {difference_text}"
    return ""


def _call_difference_text(
    runner: Runner, graph: Graph, step: Any, inputs: Sequence[Any], tolerance: float, gradient_tolerance: float
) -> str:
    """Returns a text on how the results or gradients of a call differ from PyTorch's; "" if they agree."""
    call = graph.program.calls[step.place]
    function = runner.functions[step.place]
    leaves, structure = ops.tree_flatten((step.args, step.keywords))
    dtype = inputs[0]
    converted_leaves = [
        ops.array(x, dtype if x.dtype.kind == "f" else None) if hasattr(x, "dtype") else x for x in leaves
    ]
    float_positions = [i for i, x in enumerate(converted_leaves) if _is_floating(x)]

    def compute_results(float_leaves: Sequence[Any]) -> list[Any]:
        new_leaves = list(converted_leaves)
        for i, x in zip(float_positions, float_leaves, strict=True):
            new_leaves[i] = x
        args, keywords = ops.tree_unflatten(structure, new_leaves)
        layer_argument = (inputs[call.args[0]],) if call.function == LAYER else ()
        returned_value = function(*layer_argument, *args, **keywords)
        return list(returned_value) if call.several else [returned_value]

    try:
        our_results = compute_results([converted_leaves[i] for i in float_positions])
        for register, our_result, expected_result in zip(call.results, our_results, step.results, strict=False):
            if graph.dtypes[register] is not None and hasattr(expected_result, "shape"):
                error = _largest_relative_error(our_result, expected_result)
                if error > tolerance:
                    return f"result differs by {error:.1e}"
        if step.gradients:
            float_result_positions = [
                i for i, r in enumerate(call.results) if graph.dtypes[r] in (FLOAT, "float32", "float64")
            ]
            gradients = ops.grad(
                lambda float_leaves: _weighted_sum([compute_results(float_leaves)[i] for i in float_result_positions])
            )([converted_leaves[i] for i in float_positions])
            gradient_errors = [_largest_relative_error(gradients[i], g) for i, g in enumerate(step.gradients)]
            error = max(gradient_errors, default=0.0)
            if error > gradient_tolerance:
                return f"gradient differs by {error:.1e}"
    except EmberError as error:
        return f"{type(error).__name__}: {brief(str(error))}"
    return ""
