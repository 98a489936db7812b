"""Models that nobody has looked at: drawn by a seed from all names of timm and transformers, and made small by rules.

`draw:timm/NAME` and `draw:hf/NAME` are names of models of the zoo. The next of the draw takes the place of a model that
PyTorch does not run when it is made small, that has more than 60 million parameters, or that the zoo has already.
"""

import inspect
import random
from typing import Any

import timm
import torch
import transformers
from registry import MODELS, Example
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

SMALL = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "emb_dim": 32, "embedding_size": 32,
    "hidden_dim": 32, "embed_dims": 32, "intermediate_size": 48, "ffn_dim": 48, "d_ff": 48, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "n_inner": 48, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_encoder_layers": 2, "num_decoder_layers": 2, "depth": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4,
    "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "d_kv": 8, "kv_channels": 8, "vocab_size": 99, "max_position_embeddings": 64, "n_positions": 64,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "image_size": 32,
    "patch_size": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "projection_dim": 16,
    "out_hidden_size": 32,
    "layerdrop": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "mask_time_prob": 0.0, "use_cache": False,
}  # fmt: skip
"""What the sizes of configurations become."""

SHAPES: tuple[dict[str, Any], ...] = (
    {"depth": 2}, {"depths": (1, 1, 1, 1)}, {"layers": (1, 1, 1, 1)}, {"depths": (1, 1, 1)},
    {"block_config": (1, 1, 1, 1)}, {},
)  # fmt: skip
"""What timm's models are made smaller by; the first that a model takes."""


LARGEST = 60_000_000
"""The most parameters of a model."""


class NotMadeError(Exception):
    """A model of the draw cannot be made small, or PyTorch does not run it."""


def shuffled_names(seed: int) -> tuple[list[str], list[str]]:
    """Returns the names of models of timm and of transformers in a random order."""
    random_numbers = random.Random(seed)
    of_timm, of_transformers = sorted(timm.list_models()), sorted(set(CONFIG_MAPPING) & set(MODEL_MAPPING_NAMES))
    random_numbers.shuffle(of_timm)
    random_numbers.shuffle(of_transformers)
    return [f"draw:timm/{name}" for name in of_timm], [f"draw:hf/{name}" for name in of_transformers]


def make_drawn_model(name: str) -> Example:
    """Returns a model that was drawn, after PyTorch has run it.

    Raises:
        NotMadeError: if it cannot be made small, or PyTorch does not run it.
    """
    family, _, model_name = name.removeprefix("draw:").partition("/")
    if f"{family}/{model_name}" in MODELS:
        raise NotMadeError("the zoo has it already")
    try:
        net, args, kwargs = small_timm(model_name) if family == "timm" else small_transformer(model_name)
        net.eval()
        with torch.no_grad():
            net(*args, **kwargs)
    except Exception as failure:
        raise NotMadeError(f"{type(failure).__name__}: {failure}"[:200]) from failure
    if sum(p.numel() for p in net.parameters()) > LARGEST:
        raise NotMadeError("it is too large")
    return net, args, kwargs


def small_timm(name: str) -> Example:
    """Returns a model of timm with few layers, and an image as small as it takes."""
    for options in SHAPES:
        for size in ({"img_size": 64}, {}):
            try:
                net = timm.create_model(name, num_classes=10, **options, **size).eval()
                if sum(p.numel() for p in net.parameters()) > LARGEST:
                    raise NotMadeError("it is too large")
                channels, *full_size = net.default_cfg["input_size"]
                shape = (64, 64) if size else (min(full_size[0], 96),) * 2
                try:
                    with torch.no_grad():
                        net(torch.randn(2, channels, *shape))
                except Exception:  # noqa: BLE001  (it takes its own size only)
                    shape = tuple(full_size)
                    with torch.no_grad():
                        net(torch.randn(2, channels, *shape))
                return net, (torch.randn(2, channels, *shape),), {}
            except NotMadeError:
                raise
            except Exception:  # noqa: BLE001  (the next options are tried)
                continue
    raise ValueError(f"timm cannot make a small {name}")


def shrink_config(config: Any) -> None:
    """Makes a configuration, and those in it, small."""
    for key, value in list(vars(config).items()):
        if isinstance(value, transformers.PretrainedConfig):
            shrink_config(value)
        elif key in SMALL and isinstance(value, (int, float)) and not isinstance(value, str):
            setattr(config, key, SMALL[key])


def small_transformer(name: str) -> Example:
    """Returns a model of transformers of a small configuration, with its main inputs."""
    config = CONFIG_MAPPING[name]()
    shrink_config(config)
    model_class = MODEL_MAPPING_NAMES[name]
    model_class = getattr(transformers, model_class if isinstance(model_class, str) else model_class[0])
    config._attn_implementation = "sdpa" if getattr(model_class, "_supports_sdpa", False) else "eager"
    net = model_class(config)
    parameters = inspect.signature(net.forward).parameters
    tokens = torch.arange(12).reshape(2, 6) * 7 % 90 + 3
    size = getattr(config, "image_size", 32)
    size = size if isinstance(size, int) else size[0]
    inputs = {
        "input_ids": tokens,
        "decoder_input_ids": tokens[:, :4],
        "pixel_values": torch.randn(2, getattr(config, "num_channels", 3), size, size),
        "input_values": torch.randn(2, 2000),
        "input_features": torch.randn(2, getattr(config, "num_mel_bins", 80), 64),
    }
    main_input = net.main_input_name
    chosen_inputs = {
        key: inputs[key]
        for key in inputs
        if key in parameters and (key in (main_input, "decoder_input_ids", "input_ids"))
    }
    if len(chosen_inputs) > 1 and main_input in ("pixel_values", "input_values"):
        chosen_inputs.pop("decoder_input_ids", None)
    flags = {"use_cache": False} if "use_cache" in parameters else {}
    return net, (), {**chosen_inputs, **flags, "return_dict": False}
