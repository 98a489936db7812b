"""`emberharmony.compare`: a program on two backends, or two models, and which side is wrong."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.differences.compare import compare_backends
from emberharmony.testing.differences.report import Report
from emberharmony.testing.models.search import compare_models


def compare(
    fn: Callable[..., Any],
    *inputs: Any,
    backends: Sequence[Any] = ("torch", "mlx"),
    reference: str = "float64",
    stop: str = "first",
    tolerance: float | None = None,
    gradients: bool = False,
    device: str | None = None,
    thorough: bool = False,
    match: Mapping[str, str] | None = None,
    original: str = "first",
) -> Report:
    """Runs a program on two backends, or two models of any libraries, and names what is wrong and on which side.

    The calls of ops of the two runs are aligned by op and module. Where the results differ by more than rounding, each
    side is judged: its result is compared with that of NumPy in float64 on the inputs of that side. So an op whose
    inputs differ already is not blamed. A composite that is wrong is made again, and the calls inside of it are judged.
    `Report.ok` says whether the two sides agree: no op is wrong, and the program gives its calls the same options and
    Python numbers, makes the same calls and returns the same, as far as no difference of results explains others.

    The runs see copies of the model, optimizer and generators that the program refers to. Random ops draw the same
    numbers on both sides. The tape computes the gradients that the program takes, so their ops are compared too.

    If the second argument is callable, `fn` and it are two models of PyTorch, MLX, Keras, Flax, Equinox or `nn`, or
    functions that call one; `docs/two_models.md` says how they are compared.

    Args:
        fn: the program: a function of the inputs, a model, or a step of a training; or the first of two models.
        inputs: trees of arrays and other values; each side gets the arrays as its own tensors. Or the second model,
            and then the inputs; a single dict has the keyword arguments.
        backends: the two sides, by the names of backends, or backends; two models have none.
        reference: "float64", the only one.
        stop: "first" ends at the first wrong op or module, "all" compares all calls.
        tolerance: how many times the tolerance of its sample row an op may be off, or a module what rounding does to
            it; None for 8.
        gradients: whether to compare the gradients of the sum of the results too: with respect to the parameters that
            `fn` refers to, or if it has none, to the floating inputs.
        device: the device of the sides other than NumPy, such as "cuda"; None for the default.
        thorough: whether to judge each call whose results differ by more than rounding. Otherwise calls are not judged
            where differences of their inputs that are noise, at most 0.0001 of the largest element, explain those of
            the results: where these are at most 4 times as large.
        match: for two models, the names of modules of the second by those of the first, such as `{"encoder.0":
            "enc.layers.0"}`, where names, order and shapes do not tell which correspond. None leaves it to these.
        original: the model, "first" or "second", that is taken for right where nothing else tells which side is wrong;
            or "neither", and then no side is named.

    Returns:
        the report.

    Raises:
        ArgumentError: if the backends are not two, or an option has an unknown value or is for the other kind.
        ArgumentTypeError: if a model is of no known library.
        BackendNotFoundError: if the name of a backend is unknown.
        BackendUnavailableError: if the library of a backend is missing.

    Example:
        >>> report = emberharmony.compare(ops.softmax, np.ones((2, 3), "float32"), backends=("numpy", "numpy"))
        >>> report.ok, report.first
        (True, None)
    """
    if inputs and callable(inputs[0]):
        if device is not None:
            raise ArgumentError("compare(): device is for one program on two backends; two models are where they are")
        options: dict[str, Any] = {"stop": stop, "tolerance": tolerance, "gradients": gradients}
        return compare_models(fn, *inputs, match=match, original=original, **options)
    if match is not None or original != "first":
        raise ArgumentError("compare(): match and original are for two models: pass the second one after the first")
    return compare_backends(
        fn,
        *inputs,
        backends=backends,
        reference=reference,
        stop=stop,
        tolerance=tolerance,
        gradients=gradients,
        device=device,
        thorough=thorough,
    )
