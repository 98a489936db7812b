"""Records the models of `tests/examples/models/`: `python tests/examples/record_models.py`, which needs transformers.

Each folder has what `save_pretrained` writes for a small configuration with random weights, and `recorded.npz` with
tokens, and the logits and the continuation that transformers computes from them in float64.
"""

import copy
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "models"
LENGTH, MORE = 9, 6
"""The length of the texts, and how many tokens continue them."""
LLAMA = {"vocab_size": 13, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4}
BERT = LLAMA | {"max_position_embeddings": 12, "pad_token_id": 0}
GPT2 = {"vocab_size": 13, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16}
ENDS = {"bos_token_id": None, "eos_token_id": None}
BANDS = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {**GPT2, **ENDS}),
    "gpt2-untied": (
        "gpt2",
        {**GPT2, **ENDS, "tie_word_embeddings": False, "n_inner": 12, "activation_function": "relu"},
    ),
    "llama-sharded": ("llama", {**LLAMA, **ENDS, "num_key_value_heads": 2}),
    "llama-biases-tied": (
        "llama",
        {
            **LLAMA,
            **ENDS,
            "num_key_value_heads": 1,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        },
    ),
    "llama-bands": (
        "llama",
        {**LLAMA, **ENDS, "head_dim": 4, "rope_parameters": {**BANDS, "original_max_position_embeddings": 8}},
    ),
    "llama-linear": (
        "llama",
        {**LLAMA, **ENDS, "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}},
    ),
    "bert": ("bert", BERT),
    "bert-untied-sharded": ("bert", {**BERT, "tie_word_embeddings": False, "hidden_act": "relu"}),
}
"""By name, the architecture and the configuration."""
KEPT = ("gpt2", "llama-sharded", "bert")
"""Those that are recorded; the slow tests compare all."""


def tokens() -> Any:
    """Returns two texts."""
    return np.random.default_rng(1).integers(1, 13, (2, LENGTH))


def made(name: str, folder: Path) -> Any:
    """Returns a model of transformers with random weights that float16 can represent, and saves it into a folder."""
    import torch
    import transformers

    architecture, fields = CONFIGS[name]
    config = {"gpt2": "GPT2Config", "llama": "LlamaConfig", "bert": "BertConfig"}[architecture]
    kind = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "bert": "BertForMaskedLM"}[architecture]
    torch.manual_seed(3)
    model = getattr(transformers, kind)(getattr(transformers, config)(**fields)).eval()
    with torch.no_grad():
        for part, weight in model.named_parameters():
            mean = 1.0 if weight.ndim == 1 and part.endswith("weight") else 0.0
            weight.copy_((torch.randn(weight.shape) * 0.4 + mean).half())
    # A copy, because the frequencies of the rotations would be rounded, too.
    copy.deepcopy(model).half().save_pretrained(folder, max_shard_size=1500 if name.endswith("sharded") else "1MB")
    return model.double()


def computed(model: Any, texts: Any) -> dict[str, Any]:
    """Returns the logits of texts, and for a model that continues texts the likeliest tokens with their logits."""
    import torch

    with torch.no_grad():
        found = {"logits": model(torch.tensor(texts)).logits.numpy()}
        if type(model).__name__.startswith("Bert"):
            mask = (np.arange(LENGTH) < LENGTH - 3).astype(int)[None].repeat(2, 0)
            parts = (np.arange(LENGTH) > 3).astype(int)[None].repeat(2, 0)
            pair = {"attention_mask": torch.tensor(mask), "token_type_ids": torch.tensor(parts)}
            found |= {"mask": mask, "parts": parts, "masked": model(torch.tensor(texts), **pair).logits.numpy()}
            return found
        longer = torch.tensor(texts)
        for _ in range(MORE):
            longer = torch.cat([longer, model(longer).logits[:, -1:].argmax(-1)], 1)
        return found | {
            "continued": longer[:, LENGTH:].numpy(),
            "later": model(longer).logits[:, LENGTH - 1 : -1].numpy(),
        }


def padded(model: Any, texts: Any) -> list[list[int]]:
    """Returns how transformers continues two texts of different length in one batch, with padding on the left."""
    import torch

    given, mask = torch.tensor(texts), torch.ones((2, LENGTH), dtype=torch.int64)
    given[1, :4] = mask[1, :4] = 0
    found = model.generate(given, attention_mask=mask, max_new_tokens=MORE, do_sample=False, pad_token_id=0)
    continued: list[list[int]] = found[:, LENGTH:].tolist()
    return continued


def main() -> None:
    """Records the models."""
    for name in KEPT:
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        model = made(name, folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1, sort_keys=True) + "\n", encoding="utf-8")
        np.savez(folder / "recorded.npz", tokens=tokens(), **computed(model, tokens()))
    sys.stdout.write(f"recorded: {', '.join(KEPT)}\n")


if __name__ == "__main__":
    main()
