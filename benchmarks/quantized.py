"""Measures layers whose weights have 4 bits over the dense layer and over the library's own kernel.

A layer of 2048 x 2048 without a bias multiplies 1, 8 and 32 rows of float32. The native call is the dense product of
the library, or its kernel for quantised matrices: on PyTorch the one that the layer calls for few rows, and the one for
bfloat16; on MLX `mx.quantized_matmul`. On PyTorch a Llama of 163 M parameters then generates tokens, and the native
call is the same model with dense layers. Below is the memory that a layer keeps, over the bytes of its file.
"""

import importlib
from typing import Any

from pairs import (
    Call,
    evaluating_call,
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
from emberharmony.core.cells.forms import Form
from emberharmony.demo.programs import load_example

WIDTH, GROUP = 2048, 64
LLAMA = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "vocab_size": 49152}
HEADS = {"num_attention_heads": 9, "num_key_value_heads": 3, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}
PROMPT, COUNT = [1], 12


def kernel_calls(backend: str, layer: Any, x: Any) -> dict[str, Call]:
    """Returns the library's own products by a quantised matrix, by name."""
    if backend == "mlx":
        quantized_arrays = layer.weight.value, layer.scales.value, layer.biases.value
        return {"kernel": lambda: library("mlx").quantized_matmul(x, *quantized_arrays, group_size=GROUP, bits=4)}
    if backend != "torch":
        return {}
    torch = library("torch")
    rounded, integers = x.bfloat16(), torch.randint(0, 16, (WIDTH, WIDTH), dtype=torch.int32)
    table = torch.ops.aten._convert_weight_to_int4pack_for_cpu(integers, 1)
    scales = torch.ones(WIDTH // GROUP, WIDTH, 2, dtype=torch.bfloat16)
    calls = {"kernel of bfloat16": lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(rounded, table, GROUP, scales)}
    if len(x) == 1:
        columns = importlib.import_module("emberharmony.backend.torch.neural.quantized_columns")
        layout, (places, starts) = (
            columns.columns_of(layer.weight.value, 4),
            columns._bag_indices_and_starts(WIDTH // GROUP, GROUP, WIDTH),
        )
        calls["kernel"] = lambda: columns._row_sum_kernel(4)(layout, places, starts, per_sample_weights=x[0])
    return calls


def dense_call(backend: str, weight: Any, x: Any) -> Call:
    """Returns the library's dense product."""
    return lambda: x @ (weight.T if backend != "torch" else weight.mT)


def kept_bytes(layer: Any) -> int:
    """Returns the bytes that a layer keeps between two calls."""
    held_values = [cell._held[0] for cell in (layer.weight, layer.scales, layer.biases)]
    return sum((tensor.layout if isinstance(tensor, Form) else tensor).nbytes for tensor in held_values)


def measure_layers(backend: str, options: Any) -> dict[str, Any]:
    """Measures and prints the rows of a backend."""
    figures = {}
    layer = nn.QuantizedLinear(WIDTH, WIDTH, bias=False, group_size=GROUP, rng=ops.random.Generator(0))
    weight = layer.dequantized().weight.value
    ops.eval(weight)
    file_bytes = sum(ops.to_numpy(tensor).nbytes for tensor in layer.state_dict().values())
    for rows in (1, 8, 32):
        x = ops.random.normal((rows, WIDTH), generator=ops.random.Generator(rows))
        ops.eval(x)
        ours = evaluating_call(backend, lambda x=x: layer(x))
        for name, call in (("dense", dense_call(backend, weight, x)), *kernel_calls(backend, layer, x).items()):
            label = f"{rows} row{'s' * (rows > 1)} over {name}"
            if options.pattern in label:
                figures[label] = time_pair(evaluating_call(backend, call), ours, options.rounds)
                print(table_line(label, figures[label]), flush=True)
    print(f"  a layer keeps {kept_bytes(layer) / file_bytes:.3f} times the bytes of its file")
    return figures


def measure_decoding(options: Any) -> dict[str, Any]:
    """Measures and prints how long a Llama with random weights takes for some tokens."""
    models = []
    for quantised in (False, True):
        ops.random.seed(0)
        models.append(load_example("models/llama").Llama(LLAMA | HEADS).eval())
        if quantised:
            nn.quantize(models[-1])
    label = f"decoding {COUNT} tokens over dense"
    if options.pattern not in label:
        return {}
    calls = [lambda model=model: nn.generate(model, PROMPT, COUNT) for model in models]
    row = time_pair(calls[0], calls[1], max(3, options.rounds // 5), most=60.0)
    print(table_line(label, row), flush=True)
    return {label: row}


def main() -> None:
    """Measures and prints the rows of each backend."""
    restart_with_one_thread()
    options = make_parser(__doc__, rounds=30).parse_args()
    backends, figures = installed_backends(options.backend), {}
    for backend in backends:
        library(backend)
        ops.set_backend(backend)
        print(table_head(f"4 bits, {WIDTH} x {WIDTH}, {backend}"))
        figures[backend] = measure_layers(backend, options)
        if backend == "torch":
            figures[backend] |= measure_decoding(options)
    write_results(options.json, figures, backends)


if __name__ == "__main__":
    main()
