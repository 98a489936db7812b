"""Six models of PyTorch, as public code has them: names and structure of transformers and torchvision."""

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, GROUPS, WORDS = 3, 32, 4, 2, 50


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, rope_theta=10000.0):
        super().__init__()
        inv_freq = 1.0 / (rope_theta ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device).float()
        freqs = torch.outer(positions, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_heads, self.num_key_value_heads = HEADS, GROUPS
        self.head_dim = WIDTH // HEADS
        self.scaling = self.head_dim**-0.5
        self.q_proj = nn.Linear(WIDTH, HEADS * self.head_dim, bias=False)
        self.k_proj = nn.Linear(WIDTH, GROUPS * self.head_dim, bias=False)
        self.v_proj = nn.Linear(WIDTH, GROUPS * self.head_dim, bias=False)
        self.o_proj = nn.Linear(HEADS * self.head_dim, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.num_key_value_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.num_key_value_heads, self.head_dim).transpose(1, 2)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        repeats = self.num_heads // self.num_key_value_heads
        k, v = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)
        weights = torch.matmul(q, k.transpose(2, 3)) * self.scaling
        mask = torch.full((length, length), torch.finfo(weights.dtype).min).triu(diagonal=1)
        weights = F.softmax(weights + mask, dim=-1)
        return self.o_proj(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, -1))


class LlamaMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down_proj = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(), LlamaMLP()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(WIDTH), RMSNorm(WIDTH)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(LlamaDecoderLayer() for _ in range(LAYERS))
        self.norm = RMSNorm(WIDTH)
        self.rotary_emb = RotaryEmbedding(WIDTH // HEADS)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        cos, sin = self.rotary_emb(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


class MLPBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = MLPBlock()

    def forward(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + y
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.pos_embedding = nn.Parameter(torch.randn(1, 17, WIDTH) * 0.02)
        self.layers = nn.ModuleList(EncoderBlock() for _ in range(LAYERS))
        self.ln = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images):
        x = self.conv_proj(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embedding
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x)[:, 0])


class WhisperAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.head_dim = WIDTH // HEADS
        self.scaling = self.head_dim**-0.5
        self.k_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.v_proj = nn.Linear(WIDTH, WIDTH)
        self.q_proj = nn.Linear(WIDTH, WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, self.head_dim).transpose(1, 2)

    def forward(self, x, states, mask=None):
        q, k, v = (
            self.split(self.q_proj(x) * self.scaling),
            self.split(self.k_proj(states)),
            self.split(self.v_proj(states)),
        )
        scores = q @ k.transpose(2, 3)
        if mask is not None:
            scores = scores + mask
        y = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(x.shape)
        return self.out_proj(y)


class WhisperEncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = WhisperAttention()
        self.self_attn_layer_norm = nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        y = self.self_attn_layer_norm(x)
        x = x + self.self_attn(y, y)
        y = F.gelu(self.fc1(self.final_layer_norm(x)))
        return x + self.fc2(y)


class WhisperDecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = WhisperAttention()
        self.self_attn_layer_norm = nn.LayerNorm(WIDTH)
        self.encoder_attn = WhisperAttention()
        self.encoder_attn_layer_norm = nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x, states, mask):
        y = self.self_attn_layer_norm(x)
        x = x + self.self_attn(y, y, mask)
        x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), states)
        y = F.gelu(self.fc1(self.final_layer_norm(x)))
        return x + self.fc2(y)


class WhisperEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(8, WIDTH, 3, padding=1)
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(8, WIDTH)
        self.layers = nn.ModuleList(WhisperEncoderLayer() for _ in range(2))
        self.layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, features):
        x = F.gelu(self.conv1(features))
        x = F.gelu(self.conv2(x)).permute(0, 2, 1)
        x = x + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class WhisperDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.embed_positions = nn.Embedding(16, WIDTH)
        self.layers = nn.ModuleList(WhisperDecoderLayer() for _ in range(2))
        self.layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, states):
        length = tokens.shape[1]
        x = self.embed_tokens(tokens) + self.embed_positions(torch.arange(length))
        mask = torch.full((length, length), float("-inf")).triu(1)
        for layer in self.layers:
            x = layer(x, states, mask)
        return self.layer_norm(x) @ self.embed_tokens.weight.T


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = WhisperEncoder(), WhisperDecoder()

    def forward(self, features, tokens):
        return self.decoder(tokens, self.encoder(features))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.lstm1 = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.lstm2 = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.dense, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 7)

    def forward(self, tokens):
        x, _ = self.lstm1(self.embedding(tokens))
        x, _ = self.lstm2(self.norm(x))
        return self.out(torch.tanh(self.dense(x)))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1), BasicBlock(8, 8, 1))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(images))), 2)
        x = self.layer2(self.layer1(x))
        return self.fc(x.mean((2, 3)))


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs)

    def forward(self, x):
        x = F.silu(self.norm1(self.conv1(x)))
        return F.silu(self.norm2(self.conv2(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc, self.down1, self.down2 = DoubleConv(3, 8), DoubleConv(8, 16), DoubleConv(16, 24)
        self.up1, self.dec1 = nn.ConvTranspose2d(24, 16, 2, stride=2), DoubleConv(32, 16)
        self.up2, self.dec2 = nn.ConvTranspose2d(16, 8, 2, stride=2), DoubleConv(16, 8)
        self.outc = nn.Conv2d(8, 2, 1)

    def forward(self, images):
        x1 = self.inc(images)
        x2 = self.down1(F.max_pool2d(x1, 2))
        x3 = self.down2(F.max_pool2d(x2, 2))
        x = self.dec1(torch.cat([x2, self.up1(x3)], dim=1))
        return self.outc(self.dec2(torch.cat([x1, self.up2(x)], dim=1)))


MODELS = {"llama": Llama, "vit": ViT, "whisper": Whisper, "lstm": Tagger, "resnet": ResNet, "unet": UNet}
