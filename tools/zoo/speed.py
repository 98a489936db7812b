"""Times models of the zoo beside PyTorch's eager calls, on one thread: `speed.py [--backends …] [NAME …]`.

Each pair takes turns, in processor time, so that other work of the machine counts little; the eager call is measured
twice, and the ratio of its two times is the noise floor.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import language
import others
import torch
import vision
from registry import MODELS
from torch.utils import _pytree

import emberharmony
from emberharmony import nn, ops

FAMILIES = (language, others, vision)
NAMES = (
    "hf/llama", "hf/gpt2", "hf/bert", "hf/t5", "hf/vit", "timm/resnet18", "timm/convnext_atto",
    "timm/mobilenetv3_small_050", "timm/vit_tiny_patch16_224", "timm/regnetx_002", "torch/transformer",
    "torch/recurrent",
)  # fmt: skip
ROUNDS, LONGEST = 15, 6.0


def least_times(*calls: Callable[[], Any]) -> list[float]:
    """Returns the shortest processor time of each of several calls, which take turns."""
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + LONGEST
    for _ in range(ROUNDS):
        for call, seen in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            seen.append(time.process_time() - start)
        if time.perf_counter() > end:
            break
    return [min(seen) for seen in times]


def floating_leaves(tree: Any) -> list[Any]:
    """Returns the floating tensors among results."""
    return [x for x in ops.tree_leaves(tree) if ops.is_tensor(x) and ops.isdtype(ops.dtype(x), "real floating")]


def time_ratios(name: str, backend: str, compiled: bool) -> tuple[float, float, float]:
    """Returns the times of a model over PyTorch's: forward, and with backward; and the noise floor."""
    torch.compiler.reset()  # which notes by the names of functions here what differs between models
    torch.manual_seed(0)
    module, args, kwargs = MODELS[name]()
    module.eval()
    net = emberharmony.from_torch(module, args, kwargs)

    def call_eager() -> Any:
        with torch.no_grad():
            return module(*args, **kwargs)

    def call_eager_backward() -> None:
        module.zero_grad()
        outputs = [x for x in _pytree.tree_leaves(module(*args, **kwargs)) if isinstance(x, torch.Tensor)]
        sum(x.sum() for x in outputs if x.is_floating_point()).backward()  # type: ignore[union-attr]

    with ops.use_backend(backend):  # type: ignore[arg-type]
        tensor_args, tensor_kwargs = _pytree.tree_map(
            lambda x: ops.array(x.numpy()) if isinstance(x, torch.Tensor) else x, (args, kwargs)
        )
        net_function: Any = ops.compile(net) if compiled else net

        def call_forward() -> None:
            ops.eval(floating_leaves(net_function(*tensor_args, **tensor_kwargs)))

        gradient_function = nn.value_and_grad(
            net, lambda: sum(ops.sum(x) for x in floating_leaves(net(*tensor_args, **tensor_kwargs)))
        )
        gradient_function = ops.compile(gradient_function) if compiled else gradient_function

        def call_backward() -> None:
            ops.eval(ops.tree_leaves(gradient_function()))

        for warm in (call_forward, call_forward, call_backward, call_backward, call_eager_backward):
            warm()
        ours, theirs, again = least_times(call_forward, call_eager, call_eager)
        both, with_backward = least_times(call_backward, call_eager_backward)
    return ours / theirs, both / with_backward, again / theirs


def main() -> None:
    """Prints the ratios, and their geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--backends", nargs="+", default=["torch", "numpy", "mlx"])
    parser.add_argument("--compiled", action="store_true", help="run ops.compile(net)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for backend in options.backends:
        rows = []
        for name in options.names:
            row = time_ratios(name, backend, options.compiled)
            rows.append(row)
            print(f"{backend:6} {name:28} forward {row[0]:.2f}, backward {row[1]:.2f}, again {row[2]:.2f}", flush=True)
        geometric_means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*rows, strict=True)]
        print(
            f"{backend:6} geometric mean: forward {geometric_means[0]:.2f}, "
            f"with backward {geometric_means[1]:.2f}, again {geometric_means[2]:.2f}"
        )


if __name__ == "__main__":
    main()
