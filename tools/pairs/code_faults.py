"""Faults in the code of the models: an expression of a class, and a wrong one for it."""

from typing import NamedTuple


class CodeFault(NamedTuple):
    """A fault in the code of a class."""

    kind: str
    owner: str
    original: str
    replacement: str


def faults(*rows: tuple[str, str, str, str]) -> list[CodeFault]:
    """Returns faults from rows of their fields."""
    return [CodeFault(*row) for row in rows]


CODE = {
    ("llama", "torch"): faults(
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
    ("llama", "mlx"): faults(
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
    ("llama", "ours"): faults(
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
    ("llama", "flax"): faults(
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
    ),
    ("vit", "torch"): faults(
        ("gelu form", "MLPBlock", "F.gelu(self.fc1(x))", 'F.gelu(self.fc1(x), approximate="tanh")'),
        ("swapped norms", "EncoderBlock", "self.mlp(self.ln_2(x))", "self.mlp(self.ln_1(x))"),
        ("dtype cut", "EncoderBlock", "x = x + y", "x = x + y.half().float()"),
        ("position offset", "ViT", "+ self.pos_embedding", "+ self.pos_embedding.roll(1, 1)"),
        ("pooling", "ViT", "[:, 0]", ".mean(1)"),
    ),
    ("vit", "keras"): faults(
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
    ("vit", "mlx"): faults(
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
    ("vit", "flax"): faults(
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
    ("whisper", "torch"): faults(
        ("gelu form", "WhisperDecoderLayer", "F.gelu(", 'F.gelu(approximate="tanh", input='),
        ("dropped scale", "WhisperAttention", " * self.scaling", ""),
        ("wrong head split", "WhisperAttention", ".transpose(1, 2).reshape(x.shape)", ".reshape(x.shape)"),
        ("mask off by one", "WhisperDecoder", "triu(1)", "triu(2)"),
        ("position offset", "WhisperDecoder", "torch.arange(length)", "torch.arange(length) + 1"),
        ("swapped norms", "WhisperDecoderLayer", "self.encoder_attn_layer_norm(x)", "self.final_layer_norm(x)"),
        ("dtype cut", "WhisperAttention", "return self.out_proj(y)", "return self.out_proj(y.bfloat16().float())"),
    ),
    ("whisper", "mlx"): faults(
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
    ("lstm", "torch"): faults(
        ("activation", "Tagger", "torch.tanh", "torch.relu"),
        ("dtype cut", "Tagger", "self.norm(x)", "self.norm(x).half().float()"),
    ),
    ("lstm", "mlx"): faults(
        ("activation", "Tagger", "mx.tanh", "nn.relu"),
        ("dtype cut", "Tagger", "self.ln(x)", "self.ln(x).astype(mx.bfloat16).astype(mx.float32)"),
    ),
    ("resnet", "torch"): faults(
        ("activation", "BasicBlock", "F.relu(self.bn1(self.conv1(x)))", "F.leaky_relu(self.bn1(self.conv1(x)))"),
        ("dropped residual", "BasicBlock", "y + (x if self.downsample is None else self.downsample(x))", "y"),
        ("dtype cut", "BasicBlock", "y = self.bn2(self.conv2(y))", "y = self.bn2(self.conv2(y)).half().float()"),
        ("pooling", "ResNet", "x.mean((2, 3))", "x.amax((2, 3))"),
    ),
    ("resnet", "flax"): faults(
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
    ("resnet", "keras"): faults(
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
    ("unet", "torch"): faults(
        ("activation", "DoubleConv", "return F.silu", "return F.gelu"),
        ("dtype cut", "DoubleConv", "self.norm1(self.conv1(x))", "self.norm1(self.conv1(x).half().float())"),
        ("skip order", "UNet", "torch.cat([x1, self.up2(x)], dim=1)", "torch.cat([self.up2(x), x1], dim=1)"),
        ("pooling", "UNet", "F.max_pool2d(x2, 2)", "F.avg_pool2d(x2, 2)"),
    ),
    ("unet", "ours"): faults(
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
}
