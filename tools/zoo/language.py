"""Language models and other transformers of Hugging Face, small and with random weights."""

from typing import Any

import torch
import transformers
from registry import Example, register_model

SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 99}
POSITIONS = {"max_position_embeddings": 64}
TOKENS = torch.arange(12).reshape(2, 6) * 7 % 97 + 1


def hugging_face_example(kind: str, config: Any, **inputs: Any) -> Example:
    """Returns a model of transformers by its class, with inputs by name."""
    config._attn_implementation = "sdpa" if getattr(getattr(transformers, kind), "_supports_sdpa", False) else "eager"
    net = getattr(transformers, kind)(config)
    cache_option = {"use_cache": False} if getattr(config, "use_cache", None) is not None else {}
    return net, (), {**inputs, **cache_option, "return_dict": False}


def add_language_model(kind: str, name: str, **options: Any) -> None:
    """Adds a language model to the zoo."""
    config = getattr(transformers, f"{name}Config")
    register_model(f"hf/{name.lower()}")(
        lambda: hugging_face_example(kind, config(**{**SIZE, **POSITIONS, **options}), input_ids=TOKENS)
    )


add_language_model("LlamaForCausalLM", "Llama", num_key_value_heads=2)
add_language_model("MistralForCausalLM", "Mistral", num_key_value_heads=2, sliding_window=4)
add_language_model("Qwen2ForCausalLM", "Qwen2", num_key_value_heads=2)
add_language_model("Qwen3ForCausalLM", "Qwen3", num_key_value_heads=2, head_dim=8)
add_language_model("GemmaForCausalLM", "Gemma", num_key_value_heads=1, head_dim=8)
add_language_model("Gemma2ForCausalLM", "Gemma2", num_key_value_heads=2, head_dim=8, sliding_window=4)
add_language_model("PhiForCausalLM", "Phi")
add_language_model("GPTNeoXForCausalLM", "GPTNeoX")
add_language_model("OlmoForCausalLM", "Olmo")
add_language_model("StableLmForCausalLM", "StableLm", num_key_value_heads=4)
add_language_model("Starcoder2ForCausalLM", "Starcoder2", num_key_value_heads=2)
add_language_model("CohereForCausalLM", "Cohere")
add_language_model("FalconForCausalLM", "Falcon")
add_language_model(
    "Qwen3MoeForCausalLM",
    "Qwen3Moe",
    num_key_value_heads=2,
    head_dim=8,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
)
add_language_model("MixtralForCausalLM", "Mixtral", num_key_value_heads=2, num_local_experts=4)
add_language_model("OPTForCausalLM", "OPT", ffn_dim=48, word_embed_proj_dim=32, layerdrop=0.0)
add_language_model("BertForMaskedLM", "Bert")
add_language_model("RobertaForMaskedLM", "Roberta", pad_token_id=1, max_position_embeddings=66)
add_language_model("ElectraForMaskedLM", "Electra", embedding_size=32)
add_language_model(
    "DebertaV2ForMaskedLM", "DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16
)
add_language_model("AlbertForMaskedLM", "Albert", embedding_size=16)
add_language_model(
    "ModernBertForMaskedLM",
    "ModernBert",
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    cls_token_id=1,
    sep_token_id=2,
)
add_language_model("MambaForCausalLM", "Mamba", state_size=4, expand=2, time_step_rank=4)


@register_model("hf/gpt2")
def gpt2() -> Example:
    """Returns GPT-2."""
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)
    return hugging_face_example("GPT2LMHeadModel", config, input_ids=TOKENS)


@register_model("hf/bloom")
def bloom() -> Example:
    """Returns BLOOM, whose positions are biases."""
    config = transformers.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=99)
    return hugging_face_example("BloomForCausalLM", config, input_ids=TOKENS)


@register_model("hf/distilbert")
def distilbert() -> Example:
    """Returns DistilBERT."""
    config = transformers.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=48, vocab_size=99)
    return hugging_face_example("DistilBertForSequenceClassification", config, input_ids=TOKENS)


@register_model("hf/t5")
def t5() -> Example:
    """Returns T5, with its encoder and decoder."""
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99)
    return hugging_face_example("T5ForConditionalGeneration", config, input_ids=TOKENS, decoder_input_ids=TOKENS[:, :4])


@register_model("hf/bart")
def bart() -> Example:
    """Returns BART, with its encoder and decoder."""
    side_options = {
        f"{side}_{key}": n
        for side in ("encoder", "decoder")
        for key, n in {"layers": 2, "attention_heads": 4, "ffn_dim": 48}.items()
    }
    config = transformers.BartConfig(d_model=32, vocab_size=99, max_position_embeddings=64, **side_options)
    return hugging_face_example(
        "BartForConditionalGeneration", config, input_ids=TOKENS, decoder_input_ids=TOKENS[:, :4]
    )


@register_model("hf/whisper")
def whisper() -> Example:
    """Returns Whisper, which hears speech."""
    side_options = {
        f"{side}_{key}": n
        for side in ("encoder", "decoder")
        for key, n in {"layers": 2, "attention_heads": 4, "ffn_dim": 48}.items()
    }
    config = transformers.WhisperConfig(
        d_model=32, vocab_size=99, num_mel_bins=16, max_source_positions=20, max_target_positions=16,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, **side_options,
    )  # fmt: skip
    features = torch.randn(2, 16, 40)
    return hugging_face_example(
        "WhisperForConditionalGeneration", config, input_features=features, decoder_input_ids=TOKENS[:, :4]
    )


@register_model("hf/wav2vec2")
def wav2vec2() -> Example:
    """Returns wav2vec 2.0, which hears speech."""
    config = transformers.Wav2Vec2Config(
        **SIZE, conv_dim=(16, 16), conv_kernel=(5, 3), conv_stride=(4, 2), num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, layerdrop=0.0, mask_time_prob=0.0,
    )  # fmt: skip
    return hugging_face_example("Wav2Vec2ForCTC", config, input_values=torch.randn(2, 200))


@register_model("hf/vit")
def vit() -> Example:
    """Returns a vision transformer."""
    config = transformers.ViTConfig(**{k: v for k, v in SIZE.items() if k != "vocab_size"}, image_size=32, patch_size=8)
    return hugging_face_example("ViTForImageClassification", config, pixel_values=torch.randn(2, 3, 32, 32))


@register_model("hf/clip")
def clip() -> Example:
    """Returns CLIP, which compares texts and images."""
    text_config = {**SIZE, **POSITIONS, "bos_token_id": 1, "eos_token_id": 98}
    vision_config = {k: v for k, v in SIZE.items() if k != "vocab_size"} | {"image_size": 32, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text_config, vision_config=vision_config, projection_dim=16)
    return hugging_face_example("CLIPModel", config, input_ids=TOKENS, pixel_values=torch.randn(2, 3, 32, 32))


@register_model("hf/swin")
def swin() -> Example:
    """Returns a Swin transformer."""
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
    )
    return hugging_face_example("SwinForImageClassification", config, pixel_values=torch.randn(2, 3, 32, 32))


@register_model("hf/segformer")
def segformer() -> Example:
    """Returns SegFormer, which segments images."""
    config = transformers.SegformerConfig(
        hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16
    )
    return hugging_face_example("SegformerForSemanticSegmentation", config, pixel_values=torch.randn(2, 3, 64, 64))
