"""Faults in the code of the models: an expression of a class, and a wrong one for it."""

from typing import NamedTuple


class CodeFault(NamedTuple):
    """A fault in the code of a class."""

    kind: str
    owner: str
    original: str
    replacement: str


def make_faults(*rows: tuple[str, str, str, str]) -> list[CodeFault]:
    """Returns faults from rows of their fields."""
    return [CodeFault(*row) for row in rows]


CODE = {
    ("llama", "torch"): make_faults(
        ("mask off by one", "LlamaAttention", "triu(diagonal=1)", "triu(diagonal=2)"),
        ("kv repeat", "LlamaAttention", "k.repeat_interleave(repeats, dim=1)", "k.repeat(1, repeats, 1, 1)"),
        ("dropped scale", "LlamaAttention", " * self.scaling", ""),
        (
            "wrong head split",
            "LlamaAttention",
            "self.q_proj(x).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)",
            "self.q_proj(x).view(batch, length, self.head_dim, self.num_heads).permute(0, 3, 1, 2)",
        ),
        ("activation", "LlamaMLP", "F.silu", "F.gelu"),
        ("dtype cut", "LlamaMLP", "* self.up_proj(x)", "* self.up_proj(x).half().float()"),
        ("dtype cut", "RMSNorm", "variance = hidden_states", "variance = hidden_states.bfloat16().float()"),
        (
            "swapped norms",
            "LlamaDecoderLayer",
            "self.mlp(self.post_attention_layernorm(x))",
            "self.mlp(self.input_layernorm(x))",
        ),
        ("dropped residual", "LlamaDecoderLayer", "return x + self.mlp", "return self.mlp"),
    ),
    ("llama", "mlx"): make_faults(
        ("dropped scale", "Attention", "scale=self.scale", "scale=1.0"),
        (
            "kv repeat",
            "Attention",
            "values.reshape(batch, length, self.n_kv_heads, -1).transpose(0, 2, 1, 3)",
            "mx.tile(values.reshape(batch, length, self.n_kv_heads, -1).transpose(0, 2, 1, 3), (1, 2, 1, 1))",
        ),
        ("wrong head split", "Attention", "output.transpose(0, 2, 1, 3)", "output"),
        (
            "mask off by one",
            "LlamaModel",
            "tokens.shape[1])",
            "tokens.shape[1]) * (1 - mx.eye(tokens.shape[1], k=1))",
        ),
        ("activation", "MLP", "nn.silu", "nn.gelu"),
        ("dtype cut", "MLP", "self.up_proj(x))", "self.up_proj(x).astype(mx.float16).astype(mx.float32))"),
        ("swapped norms", "TransformerBlock", "self.post_attention_layernorm(h)", "self.input_layernorm(h)"),
        ("dropped residual", "TransformerBlock", "return h + self.mlp", "return x + self.mlp"),
    ),
    ("llama", "ours"): make_faults(
        (
            "mask off by one",
            "Attention",
            'ops.tril(ops.ones((length, length), dtype="bool"))',
            'ops.tril(ops.ones((length, length), dtype="bool"), 1)',
        ),
        ("kv repeat", "Attention", "ops.repeat(v, HEADS // GROUPS, axis=1)", "ops.tile(v, (1, HEADS // GROUPS, 1, 1))"),
        ("dropped scale", "Attention", "(WIDTH // HEADS) ** -0.5", "1.0"),
        ("wrong head split", "Attention", "ops.swapaxes(ops.matmul(scores, v), 1, 2)", "ops.matmul(scores, v)"),
        ("activation", "FeedForward", "ops.silu", "ops.gelu"),
        (
            "dtype cut",
            "FeedForward",
            "self.w3(x)",
            'ops.cast(ops.cast(self.w3(x), "float16"), ops.dtype(x)) if ops.dtype(x).name == "float32" else self.w3(x)',
        ),
        ("swapped norms", "Layer", "self.ffn_norm(x)", "self.attention_norm(x)"),
    ),
    ("llama", "flax"): make_faults(
        (
            "mask off by one",
            "LlamaAttention",
            "jnp.tril(jnp.ones((length, length), bool))",
            "jnp.tril(jnp.ones((length, length), bool), 1)",
        ),
        (
            "kv repeat",
            "LlamaAttention",
            "jnp.repeat(v, HEADS // GROUPS, axis=2)",
            "jnp.tile(v, (1, 1, HEADS // GROUPS, 1))",
        ),
        ("dropped scale", "LlamaAttention", " / jnp.sqrt(q.shape[-1])", ""),
        ("wrong head split", "LlamaAttention", "y.reshape(batch", "jnp.swapaxes(y, 1, 2).reshape(batch"),
        ("rope base", "LlamaAttention", "GROUPS, -1))\n        v", "GROUPS, -1), 500.0)\n        v"),
        ("activation", "LlamaLayer", "jax.nn.silu", "jax.nn.gelu"),
        ("swapped norms", "LlamaLayer", "self.pre_mlp_norm(x)", "self.pre_attention_norm(x)"),
        ("dropped residual", "LlamaLayer", "return x + self.down", "return self.down"),
        ("dtype cut", "LlamaLayer", "* self.up(y)", "* self.up(y).astype(jnp.bfloat16).astype(jnp.float32)"),
    ),
    ("vit", "torch"): make_faults(
        ("gelu form", "MLPBlock", "F.gelu(self.fc1(x))", 'F.gelu(self.fc1(x), approximate="tanh")'),
        ("swapped norms", "EncoderBlock", "self.mlp(self.ln_2(x))", "self.mlp(self.ln_1(x))"),
        ("dtype cut", "EncoderBlock", "x = x + y", "x = x + y.half().float()"),
        ("position offset", "ViT", "+ self.pos_embedding", "+ self.pos_embedding.roll(1, 1)"),
        ("pooling", "ViT", "[:, 0]", ".mean(1)"),
    ),
    ("vit", "keras"): make_faults(
        ("swapped norms", "TransformerEncoder", "self.norm_mlp(x)", "self.norm_attention(x)"),
        ("dropped residual", "TransformerEncoder", "return x + y", "return inputs + y"),
        (
            "dtype cut",
            "TransformerEncoder",
            "x = self.norm_attention(inputs)",
            'x = ops.cast(ops.cast(self.norm_attention(inputs), "float16"), "float32")',
        ),
        ("position offset", "PatchEncoder", "+ self.positions", "+ ops.roll(self.positions, 1, axis=1)"),
        ("pooling", "ViT", "self.norm(x)[:, 0]", "ops.mean(self.norm(x), axis=1)"),
    ),
    ("vit", "mlx"): make_faults(
        ("gelu form", "EncoderLayer", "nn.gelu(", "nn.gelu_approx("),
        ("swapped norms", "EncoderLayer", "self.layer_norm2(x)", "self.layer_norm1(x)"),
        (
            "dtype cut",
            "EncoderLayer",
            "y = self.layer_norm1(x)",
            "y = self.layer_norm1(x).astype(mx.float16).astype(mx.float32)",
        ),
        ("pooling", "ViT", "self.post_layernorm(x)[:, 0]", "mx.mean(self.post_layernorm(x), axis=1)"),
    ),
    ("vit", "flax"): make_faults(
        ("gelu form", "EncoderLayer", "approximate=False", "approximate=True"),
        ("swapped norms", "EncoderLayer", "self.norm2(x)", "self.norm1(x)"),
        (
            "dtype cut",
            "EncoderLayer",
            "self.attn(self.norm1(x))",
            "self.attn(self.norm1(x)).astype(jnp.bfloat16).astype(jnp.float32)",
        ),
        ("pooling", "ViT", "[:, 0]", ".mean(axis=1)"),
    ),
    ("whisper", "torch"): make_faults(
        ("gelu form", "WhisperDecoderLayer", "F.gelu(", 'F.gelu(approximate="tanh", input='),
        ("dropped scale", "WhisperAttention", " * self.scaling", ""),
        ("wrong head split", "WhisperAttention", ".transpose(1, 2).reshape(x.shape)", ".reshape(x.shape)"),
        ("mask off by one", "WhisperDecoder", "triu(1)", "triu(2)"),
        ("position offset", "WhisperDecoder", "torch.arange(length)", "torch.arange(length) + 1"),
        ("swapped norms", "WhisperDecoderLayer", "self.encoder_attn_layer_norm(x)", "self.final_layer_norm(x)"),
        ("dtype cut", "WhisperAttention", "return self.out_proj(y)", "return self.out_proj(y.bfloat16().float())"),
    ),
    ("whisper", "mlx"): make_faults(
        ("gelu form", "EncoderBlock", "nn.gelu(", "nn.gelu_fast_approx("),
        ("dropped scale", "MultiHeadAttention", "** -0.25", "** -0.5"),
        ("wrong head split", "MultiHeadAttention", "(w @ v).transpose(0, 2, 1, 3)", "(w @ v)"),
        ("position offset", "TextDecoder", "weight[:length]", "weight[1 : length + 1]"),
        ("swapped norms", "DecoderBlock", "self.cross_attn_ln(x)", "self.attn_ln(x)"),
        (
            "dtype cut",
            "MultiHeadAttention",
            "w = mx.softmax(qk, axis=-1)",
            "w = mx.softmax(qk, axis=-1).astype(mx.float16).astype(mx.float32)",
        ),
    ),
    ("lstm", "torch"): make_faults(
        ("activation", "Tagger", "torch.tanh", "torch.relu"),
        ("dtype cut", "Tagger", "self.norm(x)", "self.norm(x).half().float()"),
    ),
    ("lstm", "mlx"): make_faults(
        ("activation", "Tagger", "mx.tanh", "nn.relu"),
        ("dtype cut", "Tagger", "self.ln(x)", "self.ln(x).astype(mx.bfloat16).astype(mx.float32)"),
    ),
    ("resnet", "torch"): make_faults(
        ("activation", "BasicBlock", "F.relu(self.bn1(self.conv1(x)))", "F.leaky_relu(self.bn1(self.conv1(x)))"),
        ("dropped residual", "BasicBlock", "y + (x if self.downsample is None else self.downsample(x))", "y"),
        ("dtype cut", "BasicBlock", "y = self.bn2(self.conv2(y))", "y = self.bn2(self.conv2(y)).half().float()"),
        ("pooling", "ResNet", "x.mean((2, 3))", "x.amax((2, 3))"),
    ),
    ("resnet", "flax"): make_faults(
        ("activation", "Block", "nnx.relu(residual + y)", "nnx.gelu(residual + y)"),
        ("dropped residual", "Block", "residual + y", "y"),
        (
            "dtype cut",
            "Block",
            "nnx.relu(self.norm0(self.conv0(x)))",
            "nnx.relu(self.norm0(self.conv0(x))).astype(jnp.bfloat16).astype(jnp.float32)",
        ),
        ("pooling", "ResNet", "nnx.max_pool", "nnx.avg_pool"),
    ),
    ("resnet", "keras"): make_faults(
        ("activation", "ResidualBlock", "ops.relu(x + inputs)", "ops.relu6(x + inputs) * 1.01"),
        (
            "dtype cut",
            "ResidualBlock",
            "x = self.bn_b(self.conv_b(x))",
            'x = ops.cast(ops.cast(self.bn_b(self.conv_b(x)), "float16"), "float32")',
        ),
        (
            "padding mode",
            "ResidualBlock",
            "self.conv_a(self.pad(inputs))",
            'self.conv_a(ops.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="reflect"))',
        ),
    ),
    ("unet", "torch"): make_faults(
        ("activation", "DoubleConv", "return F.silu", "return F.gelu"),
        ("dtype cut", "DoubleConv", "self.norm1(self.conv1(x))", "self.norm1(self.conv1(x).half().float())"),
        ("skip order", "UNet", "torch.cat([x1, self.up2(x)], dim=1)", "torch.cat([self.up2(x), x1], dim=1)"),
        ("pooling", "UNet", "F.max_pool2d(x2, 2)", "F.avg_pool2d(x2, 2)"),
    ),
    ("unet", "ours"): make_faults(
        ("activation", "ConvBlock", "return ops.silu", "return ops.gelu"),
        (
            "dtype cut",
            "ConvBlock",
            "self.norm_first(self.first(x))",
            "self.norm_first(self.first(x) if ops.dtype(x).name == 'float64' else "
            "ops.cast(ops.cast(self.first(x), 'bfloat16'), 'float32'))",
        ),
        ("skip order", "UNet", "ops.concatenate([b, x], axis=1)", "ops.concatenate([x, b], axis=1)"),
    ),
    ("unet", "keras"): make_faults(
        ("activation", "ConvBlock", "return ops.silu", "return ops.gelu"),
        (
            "dtype cut",
            "ConvBlock",
            "self.norm_1(self.conv_1(inputs))",
            'self.norm_1(ops.cast(ops.cast(self.conv_1(inputs), "bfloat16"), "float32"))',
        ),
        ("skip order", "UNet", "[skip_1, self.up_2(x)]", "[self.up_2(x), skip_1]"),
    ),
    ("gru", "torch"): make_faults(
        ("activation", "SpeechCommands", "F.elu", "F.selu"),
        ("pooling", "SpeechCommands", ".mean(1)", "[:, -1]"),
        ("dtype cut", "SpeechCommands", "self.ln(x)", "self.ln(x).half().float()"),
    ),
    ("gru", "mlx"): make_faults(
        ("activation", "SpeechCommands", "nn.elu", "nn.relu"),
        ("pooling", "SpeechCommands", "mx.mean(self.norm(x), axis=1)", "mx.max(self.norm(x), axis=1)"),
        ("dtype cut", "SpeechCommands", "x = layer(x)", "x = layer(x).astype(mx.float16).astype(mx.float32)"),
    ),
    ("vit", "equinox"): make_faults(
        ("gelu form", "AttentionBlock", "approximate=False", "approximate=True"),
        ("swapped norms", "AttentionBlock", "jax.vmap(self.layer_norm2)(x)", "jax.vmap(self.layer_norm1)(x)"),
        ("dropped residual", "AttentionBlock", "return x + jax", "return jax"),
        ("dtype cut", "AttentionBlock", "x = x + self", "x = x.astype(jnp.float16).astype(x.dtype) + self"),
        ("position offset", "ViT", "+ self.positional_embedding", "+ jnp.roll(self.positional_embedding, 1, 0)"),
        ("pooling", "ViT", "x[0]", "x.mean(0)"),
    ),
    ("gpt2", "torch"): make_faults(
        ("mask off by one", "GPT2Attention", "self.bias[:length, :length]", "self.bias[:length, :length].roll(1, 1)"),
        ("dropped scale", "GPT2Attention", " / self.head_dim**0.5", ""),
        ("wrong head split", "GPT2Attention", "y.transpose(1, 2).reshape", "y.reshape"),
        ("gelu form", "NewGELUActivation", "0.044715", "0.044"),
        ("swapped norms", "GPT2Block", "self.ln_2(x)", "self.ln_1(x)"),
        ("dropped residual", "GPT2Block", "return x + self.mlp", "return self.mlp"),
        ("dtype cut", "GPT2MLP", "self.c_fc(x)", "self.c_fc(x).half().float()"),
        ("position offset", "GPT2", "torch.arange(tokens.shape[1], device", "1 + torch.arange(tokens.shape[1], device"),
    ),
    ("gpt2", "mlx"): make_faults(
        ("dropped scale", "Attention", "scale=self.scale", "scale=1.0"),
        ("wrong head split", "Attention", "output.transpose(0, 2, 1, 3)", "output"),
        ("order of queries and keys", "Attention", "queries, keys, values = mx", "keys, queries, values = mx"),
        ("gelu form", "MLP", "nn.gelu_approx", "nn.gelu"),
        ("swapped norms", "TransformerBlock", "self.ln_2(h)", "self.ln_1(h)"),
        ("dropped residual", "TransformerBlock", "return h + self.mlp", "return x + self.mlp"),
        ("mask off by one", "GPT2Model", 'mask = "causal"', "mask = None"),
        ("position offset", "GPT2Model", "mx.arange(length)", "mx.arange(1, length + 1)"),
        ("dtype cut", "MLP", "self.c_fc(x)", "self.c_fc(x).astype(mx.bfloat16).astype(mx.float32)"),
    ),
    ("convnext", "torch"): make_faults(
        ("gelu form", "CNBlock", "self.act(self.pwconv1(y))", 'F.gelu(self.pwconv1(y), approximate="tanh")'),
        ("dropped scale", "CNBlock", "self.gamma * self", "self"),
        ("dropped residual", "CNBlock", "x + y.permute", "y.permute"),
        ("dtype cut", "CNBlock", "self.norm(self.dwconv(x)", "self.norm(self.dwconv(x).bfloat16().float()"),
        ("pooling", "ConvNeXt", "x.mean((-2, -1))", "x.amax((-2, -1))"),
    ),
    ("convnext", "keras"): make_faults(
        ("gelu form", "ConvNeXtBlock", "self.gelu(x)", "ops.gelu(x)"),
        ("dropped scale", "ConvNeXtBlock", " * self.gamma", ""),
        ("dropped residual", "ConvNeXtBlock", "inputs + self", "self"),
        (
            "dtype cut",
            "ConvNeXtBlock",
            "self.gelu(x)",
            'ops.cast(ops.cast(self.gelu(x), "float16"), "float32")',
        ),
        ("padding mode", "ConvNeXtBlock", "self.depthwise(inputs)", "self.depthwise(ops.roll(inputs, 1, axis=1))"),
    ),
    ("bert", "torch"): make_faults(
        ("gelu form", "BertIntermediate", "F.gelu(self.dense(x))", 'F.gelu(self.dense(x), approximate="tanh")'),
        ("dropped scale", "BertSelfAttention", " / math.sqrt(WIDTH // HEADS)", ""),
        ("wrong head split", "BertSelfAttention", "y.transpose(1, 2).reshape", "y.reshape"),
        ("dropped residual", "BertOutput", " + residual", ""),
        ("dtype cut", "BertOutput", "self.dense(x)", "self.dense(x).half().float()"),
        ("position offset", "BertEmbeddings", "torch.arange(tokens.shape[1])", "2 + torch.arange(tokens.shape[1])"),
        ("activation", "Bert", "torch.tanh", "torch.sigmoid"),
    ),
    ("bert", "ours"): make_faults(
        ("gelu form", "EncoderLayer", "approximate=False", "approximate=True"),
        ("dropped scale", "EncoderLayer", "(WIDTH // HEADS) ** 0.5", "1.0"),
        ("wrong head split", "EncoderLayer", "ops.reshape(ops.swapaxes(y, 1, 2)", "ops.reshape(y"),
        ("dropped residual", "EncoderLayer", "ops.add(x, self.down(y))", "self.down(y)"),
        ("swapped norms", "EncoderLayer", "self.output_norm(ops", "self.attention_norm(ops"),
        (
            "position offset",
            "Embeddings",
            "ops.arange(ops.shape(tokens)[1])",
            "ops.arange(1, 1 + ops.shape(tokens)[1])",
        ),
        ("token types", "Embeddings", "ops.zeros_like(tokens)", "ops.ones_like(tokens)"),
        ("activation", "Bert", "ops.tanh", "ops.relu"),
    ),
    ("mixer", "flax"): make_faults(
        ("gelu form", "MlpBlock", "approximate=False", "approximate=True"),
        ("swapped norms", "MixerBlock", "self.layer_norm_1(x)", "self.layer_norm_0(x)"),
        ("dropped residual", "MixerBlock", "return x + self", "return self"),
        ("dtype cut", "MlpBlock", "self.dense_0(x)", "self.dense_0(x).astype(jnp.bfloat16).astype(x.dtype)"),
        ("pooling", "MlpMixer", "jnp.mean(self", "jnp.max(self"),
    ),
    ("mixer", "keras"): make_faults(
        ("gelu form", "MLP", "approximate=False", "approximate=True"),
        ("swapped norms", "MixerLayer", "self.norm_b(x)", "self.norm_a(x)"),
        ("dropped residual", "MixerLayer", "return x + self", "return inputs + self"),
        ("dtype cut", "MixerLayer", "self.norm_b(x)", 'ops.cast(ops.cast(self.norm_b(x), "float16"), "float32")'),
        (
            "activation",
            "MLP",
            "keras.activations.gelu(self.dense_in(inputs), approximate=False)",
            "ops.relu(self.dense_in(inputs))",
        ),
    ),
    ("mixer", "torch"): make_faults(
        ("gelu form", "Mlp", "self.act(self.fc1(x))", 'F.gelu(self.fc1(x), approximate="tanh")'),
        ("swapped norms", "MixerBlock", "self.norm2(x)", "self.norm1(x)"),
        ("dropped residual", "MixerBlock", "return x + self", "return self"),
        ("dtype cut", "Mlp", "self.fc1(x)", "self.fc1(x).bfloat16().float()"),
        ("pooling", "MlpMixer", ".mean(1)", "[:, 0]"),
    ),
    ("mixer", "mlx"): make_faults(
        ("gelu form", "MlpBlock", "nn.gelu(", "nn.gelu_approx("),
        ("swapped norms", "MixerBlock", "self.ln2(x)", "self.ln1(x)"),
        ("dropped residual", "MixerBlock", "return x + self", "return self"),
        ("dtype cut", "MixerBlock", "self.ln2(x)", "self.ln2(x).astype(mx.float16).astype(mx.float32)"),
        ("pooling", "Mixer", "mx.mean(self.final_norm(x), axis=1)", "mx.max(self.final_norm(x), axis=1)"),
        ("activation", "MlpBlock", "nn.gelu(", "nn.relu("),
    ),
    ("convnext", "ours"): make_faults(
        ("gelu form", "ConvNeXtBlock", "approximate=False", "approximate=True"),
        ("dropped scale", "ConvNeXtBlock", "ops.multiply(y, self.layer_scale)", "y"),
        (
            "dropped residual",
            "ConvNeXtBlock",
            "return ops.add(x, ops.moveaxis",
            "return ops.multiply(1.0, ops.moveaxis",
        ),
        ("swapped norms", "ConvNeXt", "self.normalized(self.merge_norm, x)", "self.normalized(self.patch_norm, x)"),
        ("pooling", "ConvNeXt", "ops.mean(x", "ops.max(x"),
    ),
    ("gpt2", "ours"): make_faults(
        ("gelu form", "Decoder", "approximate=True", "approximate=False"),
        ("mask off by one", "CausalAttention", "is_causal=True", "is_causal=False"),
        ("wrong head split", "CausalAttention", "ops.reshape(y", "ops.reshape(ops.swapaxes(y, 1, 2)"),
        ("dropped scale", "CausalAttention", "dot_product_attention(q,", "dot_product_attention(ops.multiply(q, 2.0),"),
        ("swapped norms", "Decoder", "self.after(x)", "self.before(x)"),
        ("dropped residual", "Decoder", "return ops.add(x, self.narrow", "return ops.multiply(1.0, self.narrow"),
        ("position offset", "GPT2", "ops.arange(ops.shape(tokens)[1])", "ops.arange(1, 1 + ops.shape(tokens)[1])"),
    ),
}
