"""Measures the memory of gradients, compared with the forward pass and with native gradients.

The functions are those of `benchmarks/gradients.py`. For NumPy and HIPS autograd the result is the peak of value and
gradient, as `tracemalloc` counts it, divided by that of the forward pass in NumPy. For MLX it is the peak divided by
that of native MLX. PyTorch does not count memory on the CPU, so its result is the size of the tensors that the graph
saves, divided by that of native PyTorch.
"""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

from gradients import SIZES, contenders
from pairs import installed_backends, make_parser, write_results

from emberharmony import ops


def peak_in_python(call: Callable[[], Any]) -> int:
    """Returns the bytes that NumPy and Python allocate at most at one time during a call."""
    tracemalloc.start()
    bytes_before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    call_result = call()
    peak = tracemalloc.get_traced_memory()[1] - bytes_before
    tracemalloc.stop()
    del call_result
    return peak


def peak_in_mlx(call: Callable[[], Any]) -> int:
    """Returns the bytes that MLX allocates at most at one time during a call."""
    import mlx.core as mx

    mx.clear_cache()
    bytes_before = mx.get_active_memory()
    mx.reset_peak_memory()
    call_result = call()
    peak = mx.get_peak_memory() - bytes_before
    del call_result
    return int(peak)


def saved_in_torch(call: Callable[[], Any]) -> int:
    """Returns the bytes of the tensors that PyTorch's graph saves during a call."""
    import torch

    bytes_by_storage: dict[int, Any] = {}

    def pack(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        bytes_by_storage[storage.data_ptr()] = storage  # kept alive, so that no address is used twice
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        call()
    return sum(storage.nbytes() for storage in bytes_by_storage.values())


MEASURES = {"torch": saved_in_torch, "mlx": peak_in_mlx, "numpy": peak_in_python}


def measure_bytes(kind: str, size: tuple[int, ...]) -> dict[str, int]:
    """Returns the bytes of each contender, the least of three calls."""
    bytes_by_name = {}
    for name, (backend, call) in contenders(kind, size).items():
        ops.set_backend(backend)
        call()
        gc.collect()
        bytes_by_name[name] = min(MEASURES[backend](call) for _ in range(3))
    return bytes_by_name


def main() -> None:
    """Measures and prints one row for each size."""
    options = make_parser(__doc__, 3).parse_args()
    table = {}
    for name, (kind, size) in SIZES.items():
        table[name] = row = measure_bytes(kind, size)
        pairs = {"ours on numpy": "forward in NumPy", "HIPS autograd": "forward in NumPy"}
        pairs |= {"ours on torch": "torch", "ours on mlx": "mlx"}
        ratios = [f"{who} {row[who] / row[base]:.2f} x {base}" for who, base in pairs.items() if who in row]
        print(f"{name:13} forward {row['forward in NumPy'] / 1024:7.0f} KiB; {', '.join(ratios)}", flush=True)
    write_results(options.json, {"bytes": table}, installed_backends(None))


if __name__ == "__main__":
    main()
