"""Layers with the classes of PyTorch, MLX and Keras that compute the same, for the tests of layouts."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from emberharmony import nn, ops


class Case(NamedTuple):
    """A layer with its counterparts.

    Attributes:
        name: the class of ours, and of `torch.nn` if it has one.
        args, kwargs: the arguments of both constructors.
        shapes: the shapes of the inputs, with the channels last; a number n stands for indices below n.
        mlx: returns the layer of a module `mlx.nn`.
        keras: returns the layer of a module `keras.layers`.
        ours: keyword arguments of our constructor alone.
        torch: whether `torch.nn` has the class.
        alone: whether the layer gets one step of a sequence, where others take the sequence.
        build: returns our layer, if its arguments are modules.
    """

    name: str
    args: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    mlx: Callable[[Any], Any] | None = None
    keras: Callable[[Any], Any] | None = None
    kwargs: Mapping[str, Any] = MappingProxyType({})
    ours: Mapping[str, Any] = MappingProxyType({})
    torch: bool = True
    alone: bool = False
    build: Callable[[], Any] | None = None

    def __str__(self) -> str:
        options = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in {**self.kwargs, **self.ours}.items())]
        return f"{self.name}({','.join(options)})".replace(" ", "")

    def fresh(self, **more: Any) -> Any:
        """Returns our layer, in use after training, with parameters of its own."""
        if self.build is not None:
            return self.build().eval()
        return getattr(nn, self.name)(*self.args, **self.kwargs, **self.ours, **more).eval()

    def made(self, **more: Any) -> Any:
        """Returns our layer, in use after training, with parameters and buffers that no layer begins with."""
        layer = self.fresh(**more)
        values = {}
        for place, (name, value) in enumerate(layer.state_dict(host=True).items()):
            waves = np.cos(1.7 * np.arange(value.size) + place).reshape(value.shape)
            drawn = np.abs(waves) + 0.25 if "var" in name else waves
            values[name] = value if value.dtype == "int64" else drawn.astype(value.dtype)
        layer.load_state_dict(values)
        return layer

    def inputs(self) -> list[Any]:
        """Returns the inputs as arrays."""
        waves = [np.sin(2.3 * np.arange(math.prod(shape)) + i).reshape(shape) for i, shape in enumerate(self.shapes)]
        if self.name.startswith("Embedding"):
            return [np.floor((x + 1) * self.args[0] / 2).astype("int64") for x in waves]
        return [x.astype("float32") for x in waves]


def last(case: Case) -> dict[str, Any]:
    """Returns the option that puts the channels last, for a layer that has it."""
    spatial = any(word in case.name for word in ("Conv", "BatchNorm", "InstanceNorm", "GroupNorm", "PReLU"))
    return {"data_format": "channels_last"} if spatial else {}


def output(layer: Any, inputs: list[Any]) -> Any:
    """Returns the first output of a layer of ours as an array."""
    found = layer(*(ops.convert_to_tensor(x) for x in inputs))
    return ops.to_numpy(found[0] if isinstance(found, tuple) else found)


def require_close(found: Any, right: Any, what: str) -> None:
    """Checks that an output is within 1e-5 of the greatest element of the right one."""
    found, right = np.asarray(found), np.asarray(right)
    assert found.shape == right.shape, what
    assert np.abs(found - right).max() <= 1e-5 * np.abs(right).max(), what


FIRST = MappingProxyType({"batch_first": True})


def _with_biases(net: Any, kind: Any) -> Any:
    """Returns a transformer of MLX whose attention has biases, as PyTorch's has."""
    for name, layer in list(net.named_modules()):
        if type(layer).__name__ == "MultiHeadAttention":
            *path, own = name.split(".")
            holder = net
            for each in path:
                holder = holder[int(each)] if each.isdigit() else holder[each]
            holder[own] = kind(8, 2, bias=True)
    return net


def _with_lora(dense: Any) -> Any:
    dense.build((2, 3))
    dense.enable_lora(2, lora_alpha=4.0)
    return dense


def _stack(*layers: Any) -> Any:
    import keras  # a model, not a layer

    return keras.Sequential(layers)


_LENGTHS = {1: (7,), 2: (7, 6), 3: (5, 4, 6)}
_SIZE = {1: 3, 2: (3, 2), 3: (2, 1, 3)}

CASES = [
    Case("Linear", (3, 4), ((2, 3),), lambda m: m.Linear(3, 4), lambda k: k.Dense(4)),
    Case(
        "Linear",
        (3, 4),
        ((2, 3),),
        lambda m: m.Linear(3, 4, bias=False),
        lambda k: k.Dense(4, use_bias=False),
        {"bias": False},
    ),
    Case("Bilinear", (3, 4, 2), ((5, 3), (5, 4)), lambda m: m.Bilinear(3, 4, 2)),
    Case("Embedding", (6, 4), ((2, 3),), lambda m: m.Embedding(6, 4), lambda k: k.Embedding(6, 4)),
    Case("EmbeddingBag", (6, 4), ((2, 3),)),
    Case("LearnedPositional", (6, 4), ((2, 3, 4),), torch=False),
    Case(
        "LoRALinear",
        (3, 4),
        ((2, 3),),
        None,
        lambda k: _with_lora(k.Dense(4)),
        {"rank": 2, "alpha": 4.0},
        torch=False,
    ),
    *(
        Case(
            f"Conv{n}d",
            (4, 6, _SIZE[n]),
            ((2, *_LENGTHS[n], 4),),
            (lambda m, n=n: getattr(m, f"Conv{n}d")(4, 6, _SIZE[n], groups=2)) if n < 3 else None,
            lambda k, n=n: getattr(k, f"Conv{n}D")(6, _SIZE[n], groups=2),
            {"groups": 2},
        )
        for n in (1, 2, 3)
    ),
    Case("Conv3d", (4, 6, _SIZE[3]), ((2, 5, 4, 6, 4),), lambda m: m.Conv3d(4, 6, _SIZE[3])),
    *(
        Case(
            f"ConvTranspose{n}d",
            (4, 6, _SIZE[n]),
            ((2, *_LENGTHS[n], 4),),
            lambda m, n=n: getattr(m, f"ConvTranspose{n}d")(4, 6, _SIZE[n]),
            lambda k, n=n: getattr(k, f"Conv{n}DTranspose")(6, _SIZE[n]),
        )
        for n in (1, 2, 3)
    ),
    Case("ConvTranspose2d", (4, 6, (3, 2)), ((2, 7, 6, 4),), kwargs={"groups": 2}),
    *(
        Case(
            f"DepthwiseConv{n}d",
            (4, _SIZE[n]),
            ((2, *_LENGTHS[n], 4),),
            (lambda m, n=n: getattr(m, f"Conv{n}d")(4, 8, _SIZE[n], groups=4)) if n < 3 else None,
            (lambda k, n=n: getattr(k, f"DepthwiseConv{n}D")(_SIZE[n], depth_multiplier=2)) if n < 3 else None,
            {"depth_multiplier": 2},
            torch=False,
        )
        for n in (1, 2, 3)
    ),
    *(
        Case(
            f"SeparableConv{n}d",
            (4, 5, _SIZE[n]),
            ((2, *_LENGTHS[n], 4),),
            None,
            (lambda k, n=n: getattr(k, f"SeparableConv{n}D")(5, _SIZE[n], depth_multiplier=2)) if n < 3 else None,
            {"depth_multiplier": 2},
            torch=False,
        )
        for n in (1, 2, 3)
    ),
    *(
        Case(
            f"BatchNorm{n}d",
            (4,),
            ((2, *_LENGTHS[n], 4),),
            (lambda m: m.BatchNorm(4)) if n < 3 else None,
            lambda k: k.BatchNormalization(epsilon=1e-5),
        )
        for n in (1, 2, 3)
    ),
    *(
        Case(
            f"InstanceNorm{n}d",
            (4,),
            ((2, *_LENGTHS[n], 4),),
            lambda m: m.InstanceNorm(4, affine=True),
            lambda k: k.GroupNormalization(-1, epsilon=1e-5),
            {"affine": True},
        )
        for n in (1, 2, 3)
    ),
    Case("InstanceNorm2d", (4,), ((2, 7, 6, 4),), kwargs={"affine": True, "track_running_stats": True}),
    Case(
        "LayerNorm",
        (4,),
        ((2, 3, 4),),
        lambda m: m.LayerNorm(4),
        lambda k: k.LayerNormalization(epsilon=1e-5),
    ),
    Case(
        "GroupNorm",
        (2, 4),
        ((2, 7, 6, 4),),
        lambda m: m.GroupNorm(2, 4, pytorch_compatible=True),
        lambda k: k.GroupNormalization(2, epsilon=1e-5),
    ),
    Case(
        "RMSNorm",
        (4,),
        ((2, 3, 4),),
        lambda m: m.RMSNorm(4),
        lambda k: k.RMSNormalization(epsilon=1e-5),
        {"eps": 1e-5},
    ),
    Case("PReLU", (4,), ((2, 4),), lambda m: m.PReLU(4), lambda k: k.PReLU()),
    *(
        Case(
            name,
            (3, 4),
            ((2, 5, 3),),
            lambda m, name=name, bias=bias: getattr(m, name)(3, 4, bias=bias),
            lambda k, name=name, bias=bias: getattr(k, f"Simple{name}" if name == "RNN" else name)(
                4, return_sequences=True, use_bias=bias
            ),
            {"batch_first": True, "bias": bias},
        )
        for name in ("RNN", "LSTM", "GRU")
        for bias in (True, False)
    ),
    Case(
        "LSTM",
        (3, 4),
        ((2, 5, 3),),
        None,
        lambda k: _stack(*(k.Bidirectional(k.LSTM(4, return_sequences=True)) for _ in range(2))),
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
    ),
    Case(
        "GRU",
        (3, 4),
        ((2, 5, 3),),
        None,
        lambda k: k.Bidirectional(k.GRU(4, return_sequences=True)),
        {"bidirectional": True, "batch_first": True},
    ),
    Case("LSTM", (3, 4), ((2, 5, 3),), kwargs={"proj_size": 2, "num_layers": 2, "batch_first": True}),
    *(
        Case(
            f"{name}Cell",
            (3, 4),
            ((2, 3),),
            lambda m, name=name: getattr(m, name)(3, 4),
            lambda k, name=name: getattr(k, f"Simple{name}Cell" if name == "RNN" else f"{name}Cell")(4),
            alone=True,
        )
        for name in ("RNN", "LSTM", "GRU")
    ),
    Case(
        "ConvLSTM2d",
        (3, 4, 3),
        ((2, 5, 7, 6, 3),),
        None,
        lambda k: k.ConvLSTM2D(4, 3, padding="same", return_sequences=True),
        {"padding": "same", "batch_first": True},
        torch=False,
    ),
    *(
        Case(
            "MultiheadAttention",
            (8, 2),
            ((2, 5, 8), (2, 3, 8), (2, 3, 8)),
            lambda m, bias=bias: m.MultiHeadAttention(8, 2, bias=bias),
            lambda k, bias=bias: k.MultiHeadAttention(2, 4, use_bias=bias),
            {"batch_first": True, "bias": bias},
        )
        for bias in (True, False)
    ),
    Case(
        "MultiheadAttention",
        (8, 2),
        ((2, 5, 8), (2, 3, 6), (2, 3, 4)),
        lambda m: m.MultiHeadAttention(8, 2, key_input_dims=6, value_input_dims=4, bias=True),
        lambda k: k.MultiHeadAttention(2, 4),
        {"kdim": 6, "vdim": 4, "batch_first": True},
    ),
    Case(
        "MultiheadAttention",
        (8, 4),
        ((2, 5, 8), (2, 3, 8), (2, 3, 8)),
        kwargs={"batch_first": True, "add_bias_kv": True},
    ),
    Case(
        "MultiheadAttention",
        (8, 4),
        ((2, 5, 8), (2, 3, 8), (2, 3, 8)),
        None,
        lambda k: k.GroupQueryAttention(2, 4, 2),
        FIRST,
        {"num_kv_heads": 2},
        torch=False,
    ),
    Case(
        "TransformerEncoderLayer",
        (8, 2, 16),
        ((2, 5, 8),),
        lambda m: _with_biases(m.TransformerEncoderLayer(8, 2, 16), m.MultiHeadAttention),
        kwargs={"batch_first": True, "norm_first": True},
    ),
    Case(
        "TransformerDecoderLayer",
        (8, 2, 16),
        ((2, 5, 8), (2, 3, 8)),
        lambda m: _with_biases(m.TransformerDecoderLayer(8, 2, 16, norm_first=False), m.MultiHeadAttention),
        kwargs=FIRST,
    ),
    Case(
        "Transformer",
        (8, 2, 2, 1, 16),
        ((2, 5, 8), (2, 3, 8)),
        lambda m: _with_biases(m.Transformer(8, 2, 2, 1, 16, norm_first=False), m.MultiHeadAttention),
        kwargs=FIRST,
    ),
    Case(
        "Bidirectional",
        (),
        ((2, 5, 3),),
        None,
        lambda k: k.Bidirectional(k.LSTM(4, return_sequences=True)),
        torch=False,
        build=lambda: nn.Bidirectional(*(nn.LSTM(3, 4, batch_first=True) for _ in range(2))),
    ),
    Case(
        "Sequential",
        (),
        ((2, 7, 6, 3),),
        lambda m: m.Sequential(m.Conv2d(3, 4, 3), m.BatchNorm(4), m.ReLU(), m.Sequential(m.Linear(4, 2))),
        lambda k: _stack(k.Conv2D(4, 3), k.BatchNormalization(epsilon=1e-5), k.ReLU(), _stack(k.Dense(2))),
        torch=False,
        build=lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, data_format="channels_last"),
            nn.BatchNorm2d(4, data_format="channels_last"),
            nn.ReLU(),
            nn.Sequential(nn.Linear(4, 2)),
        ),
    ),
]
