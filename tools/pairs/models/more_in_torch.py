"""More models of PyTorch, as public code has them: names and structure of transformers, timm and speech recognizers."""

import math

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, WORDS = 3, 32, 4, 50


class SpeechCommands(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, WIDTH, 3, padding=1)
        self.bn = nn.BatchNorm1d(WIDTH)
        self.gru1, self.gru2 = nn.GRU(WIDTH, WIDTH, batch_first=True), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.ln = nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 6)

    def forward(self, features):
        x = F.relu(self.bn(self.conv(features.transpose(1, 2)))).transpose(1, 2)
        x, _ = self.gru1(x)
        x, _ = self.gru2(x)
        x = self.ln(x).mean(1)
        return self.fc2(F.elu(self.fc1(x)))


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(nx, nf) / math.sqrt(nx)), nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class GPT2Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(16, 16, dtype=torch.bool)), persistent=False)
        self.num_heads, self.head_dim = HEADS, WIDTH // HEADS
        self.c_attn, self.c_proj = Conv1D(3 * WIDTH, WIDTH), Conv1D(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            y.view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
            for y in self.c_attn(x).split(WIDTH, dim=2)
        )
        weights = torch.matmul(q, k.transpose(-1, -2)) / self.head_dim**0.5
        weights = torch.where(self.bias[:length, :length], weights, torch.finfo(weights.dtype).min)
        y = torch.matmul(F.softmax(weights, dim=-1), v)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, -1))


class NewGELUActivation(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class GPT2MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(2 * WIDTH, WIDTH), Conv1D(WIDTH, 2 * WIDTH)
        self.act = NewGELUActivation()

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class GPT2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH, eps=1e-5), GPT2Attention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH, eps=1e-5), GPT2MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(16, WIDTH)
        self.h = nn.ModuleList(GPT2Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH, eps=1e-5)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(self.act(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 2, stride=2), LayerNorm2d(8, eps=1e-6))
        self.stage1 = nn.Sequential(CNBlock(8), CNBlock(8))
        self.downsample = nn.Sequential(LayerNorm2d(8, eps=1e-6), nn.Conv2d(8, 16, 2, stride=2))
        self.stage2 = nn.Sequential(CNBlock(16), CNBlock(16))
        self.norm, self.head = nn.LayerNorm(16, eps=1e-6), nn.Linear(16, 10)

    def forward(self, images):
        x = self.stage2(self.downsample(self.stage1(self.stem(images))))
        return self.head(self.norm(x.mean((-2, -1))))


class BertEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(WORDS, WIDTH), nn.Embedding(16, WIDTH)
        self.token_type_embeddings, self.LayerNorm = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, tokens):
        x = self.word_embeddings(tokens) + self.token_type_embeddings(torch.zeros_like(tokens))
        return self.LayerNorm(x + self.position_embeddings(torch.arange(tokens.shape[1])))


class BertSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        q, k, v = (f(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS), dim=-1) @ v
        return y.transpose(1, 2).reshape(x.shape)


class BertOutput(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(size, WIDTH), nn.LayerNorm(WIDTH, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, residual):
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class BertAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.self, self.output = BertSelfAttention(), BertOutput(WIDTH)

    def forward(self, x):
        return self.output(self.self(x), x)


class BertIntermediate(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x):
        return F.gelu(self.dense(x))


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.intermediate, self.output = BertAttention(), BertIntermediate(), BertOutput(2 * WIDTH)

    def forward(self, x):
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = BertEmbeddings()
        self.layer = nn.ModuleList(BertLayer() for _ in range(LAYERS))
        self.pooler, self.classifier = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, tokens):
        x = self.embeddings(tokens)
        for layer in self.layer:
            x = layer(x)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


class Mlp(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(size, hidden), nn.GELU(), nn.Linear(hidden, size)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.mlp_tokens = nn.LayerNorm(WIDTH, eps=1e-6), Mlp(16, 24)
        self.norm2, self.mlp_channels = nn.LayerNorm(WIDTH, eps=1e-6), Mlp(WIDTH, 2 * WIDTH)

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class MlpMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.blocks = nn.Sequential(*[MixerBlock() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, 10)

    def forward(self, images):
        x = self.stem(images).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


MODELS = {"gru": SpeechCommands, "gpt2": GPT2, "convnext": ConvNeXt, "bert": Bert, "mixer": MlpMixer}
