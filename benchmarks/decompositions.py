"""Measures how long decompositions of tensorly take over ops, compared with tensorly's own backends.

The decompositions of tensorly (https://tensorly.org) of a tensor of 12 x 12 x 12 run on tensorly's own backend of NumPy
or PyTorch, and on `examples/adapters/tensorly_backend.py`, which calls ops. The tensors are so small that the time is
mostly that of calls. Both sides must find the same tensor. `benchmarks/pairs.py` explains the columns; "native" is
tensorly's own backend. tensorly has no backend of MLX.

`--calls` prints which ops each decomposition calls, and how often, in place of times. `--by-hand` measures, in place of
the adapter, tensorly's own backend with an `svd` and a `sign` that have the results of ours, in native calls without
dispatch: about the least that our semantics cost.
"""

import importlib.util
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from pairs import Call, library, make_parser, measure_each, restart_with_one_thread, table_head, table_line, time_pair

from emberharmony import ops
from emberharmony.demo.programs import load_example

SIDE, RANK, STEPS = 12, 3, 10
"""The length of each axis, the rank of each decomposition, and the number of iterations of those that iterate."""
OWN = {"numpy": "numpy", "torch": "pytorch"}
"""Tensorly's name for its own backend of a library."""


def decompositions() -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
    """Returns functions that decompose a tensor, each with the one that makes the tensor again, by title."""
    import tensorly
    from tensorly import decomposition

    ranks = [RANK] * 3
    iteration_options = {"n_iter_max": STEPS, "tol": 0}
    return {
        "parafac": (lambda x: decomposition.parafac(x, RANK, **iteration_options), tensorly.cp_to_tensor),
        "non_negative_parafac": (
            lambda x: decomposition.non_negative_parafac(x, RANK, **iteration_options),
            tensorly.cp_to_tensor,
        ),
        "tucker": (lambda x: decomposition.tucker(x, ranks, **iteration_options), tensorly.tucker_to_tensor),
        "tensor_train": (lambda x: decomposition.tensor_train(x, [1, RANK, RANK, 1]), tensorly.tt_to_tensor),
    }


def noisy_tensor() -> np.ndarray[Any, Any]:
    """Returns a positive tensor of a low rank, and some noise."""
    random = np.random.default_rng(0)
    factors = [random.random((SIDE, RANK)) for _ in range(3)]
    return np.asarray(np.einsum("ir,jr,kr->ijk", *factors) + 0.01 * random.random((SIDE,) * 3))


def check_sums(total: float, sums: list[float]) -> None:
    """Checks that a matrix is finite, by a sum of its elements, and that few calls find the signs of its vectors."""
    assert math.isfinite(total)
    assert min(map(abs, sums)) > 0.001


def numpy_svd(x: Any, full_matrices: bool = True) -> Any:
    """Returns what `ops.svd` does on NumPy, for most matrices."""
    flat = x.ravel("K")
    square_sum = np.vdot(flat, flat)
    u, s, vh = np.linalg.svd(x, full_matrices)
    sums = np.maximum.reduce(u) + np.minimum.reduce(u)
    check_sums(square_sum, sums.tolist())
    signs = np.sign(sums)
    u *= signs
    vh *= signs[:, None]
    return u, s, vh


def backend_by_hand(backend: str, own: Any) -> Any:
    """Returns tensorly's own backend with the results of our `svd`, and on PyTorch of our `sign`."""
    decompose = library(backend).linalg.svd

    def torch_svd(x: Any, full_matrices: bool = True) -> Any:
        element_sum = x.sum().item()
        u, s, vh = decompose(x, full_matrices=full_matrices)
        smallest, largest = u.aminmax(dim=0)
        signs = smallest.add_(largest)
        check_sums(element_sum, signs.tolist())
        signs.sgn_()
        u.mul_(signs)
        vh.mT.mul_(signs)
        return u, s, vh

    functions: dict[str, Any] = {"svd": staticmethod(numpy_svd if backend == "numpy" else torch_svd)}
    if backend == "torch":
        functions["sign"] = staticmethod(lambda x: x.sign().masked_fill_(x.isnan(), math.nan))
    return type("ByHand", (type(own),), functions, backend_name="by hand")()


def call_pairs(backend: str, hand: bool = False) -> dict[str, tuple[Call, Call]]:
    """Returns each decomposition on tensorly's own backend and on ops, or on the backend of `by_hand`, by title.

    Raises:
        AssertionError: if the two find different tensors.
    """
    import tensorly

    def make_call(chosen: Any, decompose: Callable[[Any], Any], x: Any) -> Call:
        def call() -> Any:
            tensorly.set_backend(chosen)
            return decompose(x)

        return call

    tensorly.set_backend(OWN[backend])
    own_backend = tensorly.backend.BackendManager.current_backend()
    adapter = (
        backend_by_hand(backend, own_backend) if hand else load_example("adapters/tensorly_backend").EmberBackend()
    )
    by_title = {}
    for title, (decompose, make_tensor) in decompositions().items():
        calls, results = [], []
        for chosen_backend in (own_backend, adapter):
            tensorly.set_backend(chosen_backend)
            calls.append(make_call(chosen_backend, decompose, tensorly.tensor(noisy_tensor())))
            results.append(tensorly.to_numpy(make_tensor(calls[-1]())))
        np.testing.assert_allclose(results[1], results[0], rtol=1e-6, atol=1e-8)
        by_title[title] = calls[0], calls[1]
    return by_title


def count_calls(call: Call) -> Counter[str]:
    """Returns how often a call of ours calls each function of tensorly's backend."""
    adapter, calls = type(load_example("adapters/tensorly_backend").EmberBackend()), Counter[str]()

    def counting_function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return function(*args, **options)

        return count_and_call

    functions_by_name = {name: x for name, x in vars(adapter).items() if isinstance(x, staticmethod)}
    for name, x in functions_by_name.items():
        setattr(adapter, name, staticmethod(counting_function(name, x.__func__)))
    call()
    for name, x in functions_by_name.items():
        setattr(adapter, name, x)
    return calls


def measure(backend: str, options: Any) -> dict[str, Any]:
    """Returns the figures of one backend and prints them, or prints how often each function is called."""
    library(backend)
    ops.set_backend(backend)
    figures = {}
    print(f"\n{backend}" if options.calls else table_head(backend))
    for title, (native, ours) in call_pairs(backend, options.by_hand).items():
        if not re.search(options.pattern, f"{backend} {title}"):
            continue
        if options.calls:
            print(f"{title}: " + ", ".join(f"{name} {n}" for name, n in count_calls(ours).most_common()))
        else:
            figures[title] = time_pair(native, ours, options.rounds)
            print(table_line(title, figures[title]), flush=True)
    return figures


def main() -> None:
    """Measures NumPy and PyTorch, if tensorly is installed."""
    restart_with_one_thread()
    arguments = make_parser(__doc__, 15)
    arguments.add_argument("--calls", action="store_true", help="print how often each function is called, and no times")
    arguments.add_argument("--by-hand", action="store_true", help="measure our semantics in native calls, not in ops")
    options = arguments.parse_args()
    if importlib.util.find_spec("tensorly") is None:
        sys.exit("tensorly is not installed; `pip install tensorly` installs what this benchmark measures")
    options.backend = [name for name in options.backend or OWN if name in OWN]
    measure_each(options, measure, "tensorly")


if __name__ == "__main__":
    main()
