"""Measures a compiled GPT, its training step and its decoding, over `torch.compile` and `mx.compile`.

The GPT of `examples/training/gpt.py` under `ops.compile`, and the same model of `torch.nn` under `torch.compile` or of
`mlx.nn` under `mx.compile` (`gpts.py`), with equal weights, in turn in one process. A step of training is the value and
gradient of the loss and a step of AdamW. Decoding predicts one letter after another from the last 32. The losses and
the letters must be equal. On PyTorch, two more rows tell where the time goes: our model with letters that PyTorch
makes tensors of, and the same model by hand, a function of PyTorch alone over plain tensors. Behind each row is how
often each side was compiled, and how long its first call took. What compiles again while it is timed is an error.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
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

from emberharmony import nn, ops, optim
from emberharmony.demo.programs import load_example

LETTERS, CONTEXT, RATE = 64, 32, 3e-3
SIZES: dict[str, tuple[dict[str, int], int]] = {
    "small": ({"width": 48, "heads": 4, "layers": 2}, 16),
    "medium": ({"width": 192, "heads": 6, "layers": 4}, 8),
}
"""The sizes of the model, of which the small ones are those of the example, and the number of texts in a batch."""
LENGTH = 20
"""How many letters are written in a call of decoding."""
TRACES: list[Any] = []
"""The functions that MLX has traced, once for each time."""


def count_traces(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that notes when Python runs it, which is when MLX traces it; PyTorch counts by itself."""
    if ops.get_backend() == "torch":
        return fn

    def note_trace(*args: Any) -> Any:
        TRACES.append(fn)
        return fn(*args)

    return note_trace


def compilation_count(backend: str) -> int:
    """Returns how often the library has compiled a function."""
    if backend == "torch":
        return int(library("torch")._dynamo.utils.counters["stats"]["unique_graphs"])
    return len(TRACES)


def text_batch(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns texts, and the same one letter later."""
    letter_numbers = np.random.default_rng(0).integers(0, LETTERS, (size, CONTEXT + 1)).astype(np.int32)
    return letter_numbers[:, :-1], letter_numbers[:, 1:]


def our_model(sizes: dict[str, int]) -> Any:
    """Returns our model on the active backend."""
    return load_example("training/gpt").GPT(LETTERS, **sizes, dropout=0.0).eval()


def native_model(backend: str, sizes: dict[str, int], weights: Any) -> Any:
    """Returns the model of a library with the weights of ours."""
    import gpts

    if backend == "torch":
        net = gpts.TorchGPT(LETTERS, **sizes, context=CONTEXT)
        net.load_state_dict({name: library("torch").tensor(x) for name, x in weights.items()})
        return net
    net = gpts.MLXGPT(LETTERS, **sizes, context=CONTEXT)
    weight_by_name = {name.replace("network.", "network.layers."): x for name, x in weights.items()}
    net.load_weights([(name, library("mlx").array(x)) for name, x in weight_by_name.items()])
    return net


def flatten_pair(x: Any, logits: Any) -> tuple[Any, Any]:
    """Returns logits and letters with one axis for all places of all texts."""
    return logits.reshape(-1, LETTERS), x.reshape(-1)


def our_step(model: Any, size: int) -> Call:
    """Returns a training step of ours, a compiled function of trees, which returns the loss."""
    x, y = (ops.convert_to_tensor(array) for array in text_batch(size))
    loss_of, adam = load_example("training/gpt").loss, optim.AdamW(lr=RATE)
    structure, weights = nn.split(model)[:2]

    @ops.compile
    @count_traces
    def step(weights: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradients = ops.value_and_grad(lambda each: loss_of(nn.merge(structure, each, {}), x, y))(weights)
        return loss, *adam.update(gradients, state, weights)

    model_state = [weights, adam.init(weights)]

    def call() -> Any:
        loss, *model_state[:] = step(*model_state, x, y)
        ops.eval(loss, model_state)
        return loss

    return call


def torch_step(net: Any, size: int) -> Call:
    """Returns a training step of `torch.nn`: the compiled loss, its gradient, and the fused AdamW."""
    torch = library("torch")
    x, y = (torch.tensor(array, dtype=torch.int64) for array in text_batch(size))
    optimizer = torch.optim.AdamW(net.parameters(), RATE, fused=True)
    loss_of = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(*flatten_pair(y, net(x))), fullgraph=True)

    def call() -> Any:
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return call


def mlx_step(net: Any, size: int) -> Call:
    """Returns a training step of `mlx.nn`, compiled as a whole."""
    import mlx.nn as mlx_nn
    from mlx import optimizers

    mx = library("mlx")
    x, y = (mx.array(array) for array in text_batch(size))
    optimizer = optimizers.AdamW(RATE, bias_correction=True)
    optimizer.init(net.trainable_parameters())
    loss_of = mlx_nn.value_and_grad(
        net, lambda x, y: mlx_nn.losses.cross_entropy(*flatten_pair(y, net(x)), reduction="mean")
    )
    state = [net.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    @count_traces
    def step(x: Any, y: Any) -> Any:
        loss, gradients = loss_of(x, y)
        optimizer.update(net, gradients)
        return loss

    def call() -> Any:
        loss = step(x, y)
        mx.eval(state, loss)
        return loss

    return call


def decoding_call(predict: Callable[[list[list[int]]], int]) -> Call:
    """Returns a function that writes letters; `predict` returns the likeliest letter after a text."""
    beginning = text_batch(1)[0].tolist()[0]

    def call() -> list[int]:
        letter_numbers = list(beginning)
        for _ in range(LENGTH):
            letter_numbers.append(predict([letter_numbers[-CONTEXT:]]))
        return letter_numbers

    return call


def our_decoding(model: Any) -> Call:
    """Returns decoding by our model."""
    predict = ops.compile(count_traces(lambda numbers: ops.argmax(model(numbers)[0, -1])))
    return decoding_call(lambda text: int(predict(ops.array(text, "int32"))))


def torch_decoding(net: Any) -> Call:
    """Returns decoding by the model of `torch.nn`, in one `torch.no_grad` block, as our tensors have no gradient."""
    torch = library("torch")
    predict = torch.compile(lambda numbers: net(numbers)[0, -1].argmax(), fullgraph=True)
    return torch.no_grad()(decoding_call(lambda text: int(predict(torch.tensor(text, dtype=torch.int32)))))  # type: ignore[no-any-return]


def torch_letters(model: Any) -> Call:
    """Returns decoding by our model where PyTorch itself makes the tensors of letters."""
    torch = library("torch")
    predict = ops.compile(lambda numbers: ops.argmax(model(numbers)[0, -1]))
    return decoding_call(lambda text: int(predict(torch.tensor(text, dtype=torch.int32))))


def decoding_by_hand(model: Any) -> Call:
    """Returns decoding by a function of PyTorch alone over the tensors of our model, which no object holds."""
    torch = library("torch")
    functional, weights = torch.nn.functional, model.state_dict()
    width, heads, layers = weights["norm.weight"].shape[0], model.blocks[0].attention.heads, len(model.blocks)

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, (width,), weights[f"{name}.weight"], weights[f"{name}.bias"])

    def likeliest(numbers: Any) -> Any:
        places = torch.arange(numbers.shape[1])
        x = functional.embedding(numbers, weights["letters.weight"])
        x = x + functional.embedding(places, weights["places.weight"])
        for block in (f"blocks.{i}" for i in range(layers)):
            projections = linear(norm(x, f"{block}.norm1"), f"{block}.attention.inner")
            query, key, value = projections.view(1, CONTEXT, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
            attention_output = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + linear(attention_output.transpose(1, 2).reshape(1, CONTEXT, width), f"{block}.attention.outer")
            hidden = functional.gelu(linear(norm(x, f"{block}.norm2"), f"{block}.network.0"))
            x = x + linear(hidden, f"{block}.network.2")
        return linear(norm(x, "norm"), "head")[0, -1].argmax()

    predict = torch.compile(likeliest, fullgraph=True)
    return decoding_call(lambda text: int(predict(torch.tensor(text, dtype=torch.int32))))


def mlx_decoding(net: Any) -> Call:
    """Returns decoding by the model of `mlx.nn`."""
    mx = library("mlx")
    predict = mx.compile(count_traces(lambda numbers: mx.argmax(net(numbers)[0, -1])))
    return decoding_call(lambda text: int(predict(mx.array(text, mx.int32))))


DECODING: dict[str, Callable[[Any], Call]] = {
    "decoding": our_decoding,
    "decoding, letters of torch": torch_letters,
    "decoding by hand": decoding_by_hand,
}
"""What is measured beside decoding by the model of a library; the last two are for PyTorch alone."""


def call_pair(backend: str, what: str, size: str) -> tuple[Call, Call]:
    """Returns the call of a library and ours."""
    sizes, texts = SIZES[size]
    model = our_model(sizes)
    net = native_model(backend, sizes, model.state_dict(host=True))
    if what == "step":
        step = torch_step if backend == "torch" else mlx_step
        return step(net, texts), our_step(model, texts)
    decode = torch_decoding if backend == "torch" else mlx_decoding
    return decode(net), DECODING[what](model)


def measure(backend: str, what: str, size: str, rounds: int) -> dict[str, float]:
    """Returns the ratios of a pair of calls, how often each side was compiled, and the seconds of its first call."""
    calls = call_pair(backend, what, size)
    row, sides = {}, []
    for side, call in zip(("native", "ours"), calls, strict=True):
        count_before, start = compilation_count(backend), time.perf_counter()
        results = [call()]
        row[f"first {side}"] = time.perf_counter() - start
        results += [call() for _ in range(2)]
        row[f"compiled {side}"] = compilation_count(backend) - count_before
        sides.append([ops.to_numpy(result) if what == "step" else result for result in results])
    count_before = compilation_count(backend)
    assert np.allclose(*sides, rtol=1e-4), f"{what} differs: {sides}"
    row |= time_pair(*calls, rounds)
    assert compilation_count(backend) == count_before, "functions were compiled again"
    return row


def main() -> None:
    """Measures and prints a row for each size and library."""
    restart_with_one_thread()
    options = make_parser(__doc__, rounds=20).parse_args()
    backends = [name for name in installed_backends(options.backend) if name != "numpy"]
    figures: dict[str, Any] = {}
    for backend in backends:
        library(backend)
        ops.set_backend(backend)
        print(table_head(f"compiled GPT, {backend}"))
        figures[backend] = {}
        for what in ("step", *(DECODING if backend == "torch" else ["decoding"])):
            for size in SIZES:
                title = f"{what}, {size}"
                if not re.search(options.pattern, title):
                    continue
                figures[backend][title] = row = measure(backend, what, size, options.rounds)
                print(table_line(title, row))
                print(
                    f"  compiled {row['compiled native']} and {row['compiled ours']} times, the first call took "
                    f"{row['first native']:.1f} and {row['first ours']:.1f} s",
                    flush=True,
                )
    write_results(options.json, figures, backends)


if __name__ == "__main__":
    main()
