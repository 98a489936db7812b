"""Measures how many tokens a Llama generates in a second, and in how much memory, over other libraries.

A Llama with random weights generates tokens after a prompt: `examples/models/llama.py` with `nn.generate`, and the same
weights in `torch.nn` or `mlx.nn` (`llamas.py`), in turn in one process. The tokens must be equal. The ratios are of CPU
times, so 1.11 is 0.9 times the tokens per second. Below each row is the memory: what a process of each takes at most
beyond the weights, while it generates, and the ratio with the weights.
"""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

from llamas import MLXLlama, TorchLlama
from pairs import (
    Call,
    installed_backends,
    library,
    make_parser,
    restart_with_one_thread,
    table_head,
    table_line,
    time_pair,
    write_results,
)

from emberharmony import nn, ops
from emberharmony.demo.programs import load_example

SIZES: dict[str, dict[str, Any]] = {
    "2 M parameters": {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "vocab_size": 4096},
    "27 M parameters": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 6, "vocab_size": 8192},
}
COMMON = {"num_attention_heads": 8, "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}
PROMPT, COUNT, LONG = list(range(1, 33)), 48, 600
"""The prompt; how many tokens are generated after it; and how many to measure the memory."""


def our_model(config: dict[str, Any]) -> Any:
    """Returns our model on the active backend."""
    ops.random.seed(0)
    return load_example("models/llama").Llama(config).eval()


def native_model(backend: str, config: dict[str, Any], weights: Any) -> Any:
    """Returns the model of a library with the weights of ours."""
    if backend == "torch":
        net = TorchLlama(config)
        net.load_state_dict({name: library("torch").tensor(x) for name, x in weights.items()})
        return net
    net = MLXLlama(config)
    net.load_weights([(name, library("mlx").array(x)) for name, x in weights.items()])
    return net


def call_pair(backend: str, config: dict[str, Any], count: int) -> tuple[Call, Call]:
    """Returns the call of a library and ours, which generate the same tokens."""
    ops.set_backend(backend)
    model = our_model(config)
    net = native_model(backend, config, model.state_dict(host=True))
    return lambda: net.generate(PROMPT, count), lambda: nn.generate(model, PROMPT, count)


def memory_of_process(backend: str, size: str, who: str) -> int:
    """Returns the KiB that this process takes at most while it generates, beyond what it had before."""
    calls = call_pair(backend, SIZES[size] | COMMON, LONG)
    call = calls[who == "ours"]
    if backend == "mlx":
        mx = library("mlx")
        mx.eval(mx.zeros(1))
        bytes_before = mx.get_active_memory()
        mx.reset_peak_memory()
        call()
        return int(mx.get_peak_memory() - bytes_before) // 1024
    bytes_before = read_memory_field("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak so far
    call()
    return read_memory_field("VmHWM") - bytes_before


def read_memory_field(field: str) -> int:
    """Returns a field of the memory of this process on Linux, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def measure_memory(backend: str, size: str) -> dict[str, int]:
    """Returns the memory of both models, each in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--memory", backend, size]
    return {
        who: int(subprocess.run([*command, who], capture_output=True, text=True, check=True).stdout)
        for who in ("native", "ours")
    }


def main() -> None:
    """Measures and prints a row for each size and library."""
    restart_with_one_thread()
    if sys.argv[1:2] == ["--memory"]:
        print(memory_of_process(*sys.argv[2:]))
        return
    options = make_parser(__doc__, rounds=5).parse_args()
    backends = [name for name in installed_backends(options.backend) if name != "numpy"]
    figures: dict[str, Any] = {}
    for backend in backends:
        library(backend)
        print(table_head(f"{COUNT} tokens, {backend}"))
        figures[backend] = {}
        for size, fields in SIZES.items():
            if options.pattern not in size:
                continue
            calls = call_pair(backend, fields | COMMON, COUNT)
            assert calls[0]() == calls[1](), "the models generate different tokens"
            figures[backend][size] = row = time_pair(*calls, options.rounds)
            print(table_line(size, row), f"{COUNT / row['native'] / row['ours'] * 1e6:8.1f} tokens/s", flush=True)
            used_memory = measure_memory(backend, size)
            weights = sum(4 * math.prod(cell.value.shape) for cell in our_model(fields | COMMON).parameters()) // 1024
            memory_ratio = (used_memory["ours"] + weights) / (used_memory["native"] + weights)
            print(
                f"  beyond {weights} KiB of weights: native {used_memory['native']}, "
                f"ours {used_memory['ours']}; {memory_ratio:.2f}",
                flush=True,
            )
    write_results(options.json, figures, backends)


if __name__ == "__main__":
    main()
