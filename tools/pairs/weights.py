"""The same random weights for a model in any library: layers in the order of their definition, tensors as PyTorch's."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def random_model(kind: Any, seed: int) -> Any:
    """Returns a model of PyTorch with random weights, biases and statistics, ready for inference."""
    import torch

    torch.manual_seed(seed)
    model = kind().eval()
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.dtype.is_floating_point or "inv_freq" in name:
                continue
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2.0)
            elif tensor.ndim == 1:
                tensor.add_(torch.randn_like(tensor) * 0.2)
            elif "token" in name or "pos" in name:
                tensor.copy_(torch.randn_like(tensor) * 0.5)
    return model


def leaves_of_torch(model: Any) -> list[tuple[str, dict[str, Array]]]:
    """Returns the class and the tensors of each layer of a model of PyTorch, and of the model itself."""
    import torch

    layers = []
    for module in model.modules():
        if isinstance(module, torch.nn.MultiheadAttention):
            layers.append(
                ("MultiheadAttention", {n: t.detach().numpy().copy() for n, t in module.state_dict().items()})
            )
        elif type(module).__name__ != "NonDynamicallyQuantizableLinear":
            named_tensors = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
            tensors = {
                n: t.detach().numpy().copy() for n, t in named_tensors if n != "inv_freq" and t.is_floating_point()
            }
            if type(module).__name__ == "Conv1D":  # a linear layer whose inputs are on the first axis
                layers.append(("Linear", tensors | {"weight": tensors["weight"].T}))
            elif tensors:
                layers.append((type(module).__name__, tensors))
    return layers


def load_weights(library: str, model: Any, layers: list[tuple[str, dict[str, Array]]]) -> None:
    """Gives a model of a library the tensors of another one."""
    walk, setter = _LIBRARIES[library]
    target_layers = list(walk(model))
    if len(target_layers) > len(layers):  # queries, keys and values are apart
        layers = [part for layer in layers for part in _split_projection(*layer)]
    if len(target_layers) != len(layers):
        raise ValueError(f"{library} has {len(target_layers)} layers with tensors, not {len(layers)}")
    for target, (kind, tensors) in zip(target_layers, layers, strict=True):
        setter(target, kind, tensors)


def _split_projection(kind: str, tensors: dict[str, Array]) -> list[tuple[str, dict[str, Array]]]:
    """Returns the three layers that a joined projection of queries, keys and values is made of; others as they are."""
    weight = tensors.get("weight")
    if kind != "Linear" or weight is None or weight.shape[0] != 3 * weight.shape[1]:
        return [(kind, tensors)]
    return [(kind, {name: np.split(value, 3)[part] for name, value in tensors.items()}) for part in range(3)]


def _mlx_layers(module: Any) -> Any:
    import mlx.core as mx
    import mlx.nn as nn

    if any(isinstance(value, mx.array) for value in module.values()) or isinstance(module, nn.MultiHeadAttention):
        yield module
    if not isinstance(module, nn.MultiHeadAttention):
        for value in module.values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, nn.Module):
                    yield from _mlx_layers(item)


def _set_mlx(module: Any, kind: str, tensors: dict[str, Array]) -> None:
    import mlx.core as mx

    target_names = {"weight_ih_l0": "Wx", "weight_hh_l0": "Wh", "class_token": "class_embedding"}
    target_names["pos_embedding"] = "position_embedding"
    if kind == "MultiheadAttention":
        for part, role in enumerate(("query", "key", "value")):
            projection = getattr(module, f"{role}_proj")
            projection.weight = mx.array(np.split(tensors["in_proj_weight"], 3)[part])
            projection.bias = mx.array(np.split(tensors["in_proj_bias"], 3)[part])
        module.out_proj.weight = mx.array(tensors["out_proj.weight"])
        module.out_proj.bias = mx.array(tensors["out_proj.bias"])
        return
    if kind == "LSTM":
        module.bias = mx.array(tensors.pop("bias_ih_l0") + tensors.pop("bias_hh_l0"))
    if kind == "GRU":  # the bias of the hidden state's part of the candidate is multiplied by the reset gate
        hidden, inner = tensors.pop("bias_hh_l0"), len(module.bhn)
        module.bhn = mx.array(hidden[-inner:])
        module.b = mx.array(tensors.pop("bias_ih_l0") + np.concatenate([hidden[:-inner], np.zeros_like(module.bhn)]))
    for name, value in tensors.items():
        value = np.moveaxis(value, 1, -1) if kind.startswith("Conv") and value.ndim > 2 else value
        if module[target_names.get(name, name)].shape != value.shape:
            raise ValueError(f"{type(module).__name__}.{name} has another shape than {value.shape}")
        module[target_names.get(name, name)] = mx.array(np.ascontiguousarray(value))


def _keras_layers(layer: Any) -> Any:
    import keras

    is_leaf = isinstance(layer, (keras.layers.MultiHeadAttention, keras.layers.LSTM))
    if is_leaf or layer._trainable_variables:
        yield layer
    for inner in () if is_leaf else layer._layers:
        for item in inner if isinstance(inner, list) else [inner]:
            yield from _keras_layers(item)


def _attention_weights(tensors: dict[str, Array], heads: int) -> list[Array]:
    width = len(tensors["out_proj.bias"])
    projection_weights = []
    for weight, bias in zip(np.split(tensors["in_proj_weight"], 3), np.split(tensors["in_proj_bias"], 3), strict=True):
        projection_weights += [weight.T.reshape(width, heads, -1), bias.reshape(heads, -1)]
    return [*projection_weights, tensors["out_proj.weight"].T.reshape(heads, -1, width), tensors["out_proj.bias"]]


def _set_keras(layer: Any, kind: str, tensors: dict[str, Array]) -> None:
    if kind == "MultiheadAttention":
        layer.set_weights(_attention_weights(tensors, layer.num_heads))
    elif kind == "LSTM":
        bias = tensors["bias_ih_l0"] + tensors["bias_hh_l0"]
        layer.set_weights([tensors["weight_ih_l0"].T, tensors["weight_hh_l0"].T, bias])
    elif kind == "ViT":
        layer.class_token.assign(tensors["class_token"])
        layer.positions.assign(tensors["pos_embedding"])
    elif kind == "CNBlock":
        layer.gamma.assign(tensors["gamma"])
    else:
        tensor_names = [name for name in ("weight", "bias", "running_mean", "running_var") if name in tensors]
        layer.set_weights([_channels_last(kind, tensors[name]) for name in tensor_names])


def _channels_last(kind: str, value: Array) -> Array:
    """Returns a tensor with the axes of Keras and Flax."""
    if kind.startswith("Conv") and value.ndim > 2:
        return np.moveaxis(np.moveaxis(value, 0, -1), 0, -2)
    return value.T if kind == "Linear" else value


def _flax_layers(module: Any) -> Any:
    from flax import nnx

    is_leaf = isinstance(module, nnx.MultiHeadAttention)
    if is_leaf or any(
        isinstance(value, nnx.Param) and value.get_raw_value() is not None for value in vars(module).values()
    ):
        yield module
    for value in () if is_leaf else vars(module).values():
        for item in value if isinstance(value, (list, nnx.List)) else [value]:
            if isinstance(item, nnx.Module) and not isinstance(item, nnx.List):
                yield from _flax_layers(item)


def _set_flax(module: Any, kind: str, tensors: dict[str, Array]) -> None:
    if kind == "MultiheadAttention":
        attention_weights = _attention_weights(tensors, module.num_heads)
        for role, kernel, bias in zip(
            ("query", "key", "value", "out"), attention_weights[::2], attention_weights[1::2], strict=True
        ):
            getattr(module, role).kernel[...] = kernel
            getattr(module, role).bias[...] = bias
        return
    target_names = {"running_mean": "mean", "running_var": "var", "class_token": "cls_token"}
    target_names |= {"pos_embedding": "position_embeddings", "bias": "bias"}
    weight = {"Linear": "kernel", "Conv2d": "kernel", "Embedding": "embedding"}.get(kind, "scale")
    for name, value in tensors.items():
        getattr(module, weight if name == "weight" else target_names[name])[...] = _channels_last(kind, value)


def _our_layers(model: Any) -> Any:
    from emberharmony.nn import walk

    for _, module in walk.named_modules(model):
        if isinstance(module, walk.Holder) and list(walk.direct_cells(module)):
            yield module


def _set_ours(module: Any, kind: str, tensors: dict[str, Array]) -> None:
    from emberharmony import ops
    from emberharmony.nn import walk

    cells = dict(walk.direct_cells(module))
    for name, value in tensors.items():
        cells["layer_scale" if name == "gamma" else name].value = ops.array(value)


def _equinox_layers(module: Any) -> Any:
    import equinox as eqx

    is_leaf = isinstance(module, eqx.nn.MultiheadAttention)
    if is_leaf or any(eqx.is_array(value) for value in vars(module).values()):
        yield module
    for value in () if is_leaf else vars(module).values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, eqx.Module):
                yield from _equinox_layers(item)


def _set_equinox(module: Any, kind: str, tensors: dict[str, Array]) -> None:
    import jax.numpy as jnp

    def put(layer: Any, name: str, value: Array) -> None:
        object.__setattr__(layer, name, jnp.asarray(value.reshape(getattr(layer, name).shape)))

    if kind == "MultiheadAttention":
        for part, role in enumerate(("query", "key", "value")):
            put(getattr(module, f"{role}_proj"), "weight", np.split(tensors["in_proj_weight"], 3)[part])
            put(getattr(module, f"{role}_proj"), "bias", np.split(tensors["in_proj_bias"], 3)[part])
        put(module.output_proj, "weight", tensors["out_proj.weight"])
        put(module.output_proj, "bias", tensors["out_proj.bias"])
        return
    target_names = {"class_token": "cls_token", "pos_embedding": "positional_embedding"}
    for name, value in tensors.items():
        put(module, target_names.get(name, name), value)


_LIBRARIES = {
    "mlx": (_mlx_layers, _set_mlx),
    "keras": (_keras_layers, _set_keras),
    "flax": (_flax_layers, _set_flax),
    "ours": (_our_layers, _set_ours),
    "equinox": (_equinox_layers, _set_equinox),
}
"""For each library, what yields the layers with tensors of a model, and what gives one its tensors."""
