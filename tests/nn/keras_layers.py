"""What layers of Keras compute from weights that we wrote; `python tests/nn/keras_layers.py` records it.

The record is `keras_layers.json`: for each case the names and shapes of the weights, and some elements of the output.
It was made with Keras 3.15.1 on PyTorch (`KERAS_BACKEND=torch`).
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tests.nn.layout_cases import CASES, Case, last

RECORD = Path(__file__).with_name("keras_layers.json")
WITH_KERAS = [case for case in CASES if case.keras is not None]


def computed(case: Case) -> tuple[dict[str, list[int]], Any]:
    """Returns the names and shapes of the weights of a layer of Keras, and its output with the weights of ours.

    A name is the path of the attributes that lead to the weight; those that are private have an underscore in front.
    """
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    assert case.keras is not None
    layer, given = case.keras(keras.layers), [keras.ops.convert_to_tensor(x) for x in case.inputs()]
    if case.name == "MultiheadAttention":
        given = [given[0], given[2], given[1]]  # query, value, key
    if case.alone:
        layer.build(case.shapes[0])
        given.append([keras.ops.zeros((2, 4))] * (2 if case.name == "LSTMCell" else 1))
    layer(*given)
    tensors = case.made(**last(case)).state_dict(host=True, layout="keras")
    weights = {name: weight(layer, name) for name in tensors}
    own = {id(x) for x in layer.weights if "seed" not in x.path}
    assert {id(x) for x in weights.values()} == own, [x.path for x in layer.weights]
    shapes = {name: list(x.shape) for name, x in weights.items()}
    for name, x in weights.items():
        x.assign(tensors[name])
    found = layer(*given)
    return shapes, keras.ops.convert_to_numpy(found[0] if isinstance(found, (tuple, list)) else found)


def weight(layer: Any, name: str) -> Any:
    """Returns the weight of a layer of Keras that has a name in the layout."""
    for key in name.split("."):
        private = key == "kernel" and hasattr(layer, "_kernel")  # with LoRA, `kernel` is the sum
        known = hasattr(layer, key) and not private
        layer = layer[int(key)] if key.isdigit() else getattr(layer, key if known else f"_{key}")
    return layer


def elements(output: Any) -> Any:
    """Returns up to 12 elements of an output, spread over it."""
    flat = np.asarray(output).reshape(-1)
    return flat[:: -(-flat.size // 12)]


def record() -> None:
    """Writes the record."""
    found = {}
    for case in WITH_KERAS:
        shapes, output = computed(case)
        found[str(case)] = {
            "weights": shapes,
            "shape": list(output.shape),
            "elements": [float(f"{x:.7g}") for x in elements(output)],
        }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(held)}" for name, held in found.items())
    RECORD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    record()
