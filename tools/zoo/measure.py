"""Measures models of the zoo, each in a process of its own, and writes what it finds as JSON."""

import copy
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import language
import numpy as np
import others
import torch
import vision
from registry import MODELS, Example
from torch.utils import _pytree

import emberharmony
from emberharmony import nn, ops

FAMILIES = (language, others, vision)


def floating_leaves(tree: Any) -> list[Any]:
    """Returns the floating tensors of a result of PyTorch."""
    return [x for x in _pytree.tree_leaves(tree) if isinstance(x, torch.Tensor) and x.is_floating_point()]


def loss_weights(outputs: list[Any]) -> list[np.ndarray]:
    """Returns the numbers by which outputs are multiplied in the loss."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=tuple(x.shape)) / max(np.prod(x.shape), 1) for x in outputs]


def run_torch(net: Any, args: Any, kwargs: Any, dtype: torch.dtype) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Returns the outputs of a module of PyTorch and its gradients, computed in a dtype."""
    net = copy.deepcopy(net).to(dtype)
    args, kwargs = _pytree.tree_map(
        lambda x: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x, (args, kwargs)
    )
    torch.set_default_dtype(dtype)
    try:
        outputs = floating_leaves(net(*args, **kwargs))
        loss = sum(
            (x * torch.tensor(w, dtype=x.dtype)).sum() for x, w in zip(outputs, loss_weights(outputs), strict=True)
        )
        loss.backward()
    finally:
        torch.set_default_dtype(torch.float32)
    gradients = {n: np.zeros(p.shape) if p.grad is None else p.grad.double().numpy() for n, p in net.named_parameters()}
    return [x.detach().double().numpy() for x in outputs], gradients


def run_captured(net: Any, args: Any, kwargs: Any) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Returns the outputs of a captured module and its gradients."""

    def loss() -> Any:
        outputs = [x for x in ops.tree_leaves(net(*args, **kwargs)) if hasattr(x, "shape") and is_floating(x)]
        weighted_sums = [
            ops.sum(ops.multiply(x, ops.array(w, dtype=ops.dtype(x))))
            for x, w in zip(outputs, loss_weights(outputs), strict=True)
        ]
        return sum(weighted_sums), outputs

    (_, results), gradients = nn.value_and_grad(net, loss, has_aux=True)()
    return [ops.to_numpy(x).astype("float64") for x in results], {
        n: ops.to_numpy(g).astype("float64") for n, g in gradients.items()
    }


def is_floating(x: Any) -> bool:
    """Returns whether a tensor is of floats."""
    return bool(ops.isdtype(ops.dtype(x), "real floating"))


def largest_error(outputs: list[np.ndarray], expected_outputs: list[np.ndarray]) -> float:
    """Returns the largest error as a share of the largest element of the same output."""
    if len(outputs) != len(expected_outputs):
        return float("inf")
    return max(
        (
            float(np.max(np.abs(a - b), initial=0)) / max(float(np.max(np.abs(b), initial=0)), 1e-30)
            for a, b in zip(outputs, expected_outputs, strict=True)
        ),
        default=0.0,
    )


def largest_gradient_error(gradients: dict[str, np.ndarray], expected_gradients: dict[str, np.ndarray]) -> float:
    """Returns the largest error as a share of the largest element of the same gradient, or of a hundredth of all."""
    largest_magnitude = max((float(np.max(np.abs(g), initial=0)) for g in expected_gradients.values()), default=0.0)
    errors = [
        float(np.max(np.abs(gradients[n] - g), initial=0))
        / max(float(np.max(np.abs(g), initial=0)), largest_magnitude / 100, 1e-30)
        for n, g in expected_gradients.items()
        if n in gradients
    ]
    return max(errors, default=0.0)


def least_seconds(call: Callable[[], Any], rounds: int = 5, limit: float = 2.0) -> float:
    """Returns the shortest time of a few calls."""
    least, end = float("inf"), time.perf_counter() + limit
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return least


def make_example(name: str) -> Example:
    """Returns a model by its name."""
    if not name.startswith("draw:"):
        return MODELS[name]()
    import drawing  # after registry, which torchvision's import needs

    return drawing.make_drawn_model(name)


def measure_mode(name: str, train: bool, report: dict[str, Any], backends: tuple[str, ...]) -> None:
    """Writes what is found of a model in one mode into a report."""
    torch.manual_seed(0)
    net, args, kwargs = make_example(name)
    for part in net.modules():  # random numbers differ, so nothing is dropped
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    net.train(train)
    start = time.perf_counter()
    captured = emberharmony.from_torch(net, args, kwargs)
    report["capture_s"] = time.perf_counter() - start
    graph = captured.graphs["train" if train else "eval"]
    report["calls"] = len(graph.program.calls)
    report["operators"] = sorted({str(call.function) for call in graph.program.calls})
    try:
        outputs, gradients = run_torch(net, args, kwargs, torch.float64)
    except Exception as failure:  # noqa: BLE001  (whatever a model does not do in float64)
        report["reference"] = f"float32, as float64 fails: {failure}"[:200]
        outputs, gradients = run_torch(net, args, kwargs, torch.float32)
    float32_outputs, float32_gradients = run_torch(net, args, kwargs, torch.float32)
    report["eager"] = {
        "error": largest_error(float32_outputs, outputs),
        "gradient": largest_gradient_error(float32_gradients, gradients),
    }
    report["backends"] = {}
    for backend in backends:
        entry = report["backends"][backend] = {}
        try:
            with ops.use_backend(backend):
                tensor_args, tensor_kwargs = _pytree.tree_map(
                    lambda x: ops.array(x.numpy()) if isinstance(x, torch.Tensor) else x, (args, kwargs)
                )
                results, backend_gradients = run_captured(copy.deepcopy(captured), tensor_args, tensor_kwargs)
                entry["error"], entry["gradient"] = (
                    largest_error(results, outputs),
                    largest_gradient_error(backend_gradients, gradients),
                )
                if not train and backend in ("numpy", "torch"):
                    entry["forward_s"] = least_seconds(partial(captured, *tensor_args, **tensor_kwargs))
        except Exception as failure:  # noqa: BLE001  (the other results are to be kept)
            entry["failure"] = f"{type(failure).__name__}: {failure} {' '.join(getattr(failure, '__notes__', []))}"[
                :600
            ]
            entry["trace"] = traceback.format_exc()[-1500:]
    if not train:
        with torch.no_grad():
            report["eager"]["forward_s"] = least_seconds(lambda: net(*args, **kwargs))


def measure_modes(name: str, path: Path, backends: tuple[str, ...]) -> None:
    """Measures a model in both modes, or on more backends in those that a report has, and writes the report."""
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"name": name}
    for mode in ("eval", "train") if "train" not in report else ("eval",):
        earlier_results = report.get(mode, {}).get("backends", {})
        entry = report[mode] = {}
        try:
            measure_mode(name, mode == "train", entry, backends if mode == "eval" else backends[:1])
            entry["backends"] = earlier_results | entry["backends"]
        except Exception as failure:  # noqa: BLE001  (the other results are to be kept)
            entry["failure"] = f"{type(failure).__name__}: {failure}"[:900]
            entry["trace"] = traceback.format_exc()[-2000:]
        path.write_text(json.dumps(report, indent=1))


def run_in_child(timeout: float, call: Callable[[], None]) -> str:
    """Runs a call in a process that is forked from this one, and returns how it failed, or an empty text."""
    child_id = os.fork()
    if not child_id:
        call()
        os._exit(0)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        done, status = os.waitpid(child_id, os.WNOHANG)
        if done:
            return f"exit {os.waitstatus_to_exitcode(status)}" if status else ""
        time.sleep(0.1)
    os.kill(child_id, signal.SIGKILL)
    os.waitpid(child_id, 0)
    return f"more than {timeout} s"


def main() -> None:
    """Measures the models that the lines of the standard input name, each in a process of its own.

    A line is the name of a model, the file of its report, the backends, and the seconds that it may take, as JSON; each
    is answered by how the process failed. The processes are forked, because the imports take longer than most models.
    """
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    emberharmony.from_torch(torch.nn.Linear(1, 1), torch.zeros(1, 1))  # imports what a capture needs
    for line in sys.stdin:
        name, path, backends, timeout = json.loads(line)
        failure = run_in_child(timeout, partial(measure_modes, name, Path(path), tuple(backends)))
        print("DONE", json.dumps(failure), flush=True)


if __name__ == "__main__":
    main()
