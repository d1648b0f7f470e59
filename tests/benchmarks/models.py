"""Compact models in plain torch, of the sizes that people train; nothing is downloaded."""

import torch
import torch.nn.functional as F
from torch import nn

# ------------------------------------------------------------------ a Llama-shaped decoder


class RMSNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, width: int, heads: int, groups: int):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q_proj = nn.Linear(width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, groups * self.size, bias=False)
        self.v_proj = nn.Linear(width, groups * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)

    def forward(self, x, cosine, sine):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        q, k = _rotated(q, cosine, sine), _rotated(k, cosine, sine)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


def _rotated(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


class Block(nn.Module):
    def __init__(self, width: int, hidden: int, heads: int, groups: int):
        super().__init__()
        self.input_norm, self.attention = RMSNorm(width), Attention(width, heads, groups)
        self.post_norm = RMSNorm(width)
        self.gate_proj, self.up_proj = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cosine, sine):
        x = x + self.attention(self.input_norm(x), cosine, sine)
        h = self.post_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(nn.Module):
    """80 layers of width 8,192: 70.6 billion parameters."""

    def __init__(self, layers: int = 80, width: int = 8192, hidden: int = 28672, heads: int = 64, groups: int = 8,
                 words: int = 128256):
        super().__init__()
        self.embed_tokens = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width, hidden, heads, groups) for _ in range(layers))
        self.norm, self.lm_head = RMSNorm(width), nn.Linear(width, words, bias=False)
        frequencies = 500_000.0 ** -(torch.arange(0, width // heads, 2).float() / (width // heads))
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, tokens):
        angles = torch.outer(torch.arange(tokens.shape[1]).float(), self.frequencies)
        angles = torch.cat((angles, angles), -1)
        x, cosine, sine = self.embed_tokens(tokens), angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return self.lm_head(self.norm(x))


def next_token(outputs, batch):
    """The loss terms of a language model."""
    return {"lm": F.cross_entropy(outputs[:, :-1].flatten(0, 1), batch["tokens"][:, 1:].flatten())}


# ------------------------------------------------------------------ ResNet-50


class Bottleneck(nn.Module):
    def __init__(self, inner: int, planes: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inner, planes, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes)
        self.down = None if stride == 1 and inner == 4 * planes else nn.Sequential(
            nn.Conv2d(inner, 4 * planes, 1, stride, bias=False), nn.BatchNorm2d(4 * planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + (x if self.down is None else self.down(x)))


class ResNet50(nn.Module):
    def __init__(self, classes: int = 1000):
        super().__init__()
        self.conv1, self.bn1, self.pool = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.MaxPool2d(3, 2, 1)
        layers, inner = [], 64
        for planes, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(blocks):
                layers.append(Bottleneck(inner, planes, stride if i == 0 else 1))
                inner = 4 * planes
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(2048, classes)

    def forward(self, image):
        x = self.layers(self.pool(F.relu(self.bn1(self.conv1(image)))))
        return self.fc(x.mean((2, 3)))


def classify(outputs, batch):
    return {"ce": F.cross_entropy(outputs, batch["label"])}


# ------------------------------------------------------------------ GPT-2 small


class GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln_2, self.c_fc, self.c_out = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(width, 2))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(out.transpose(1, 2).reshape(batch, length, width))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """124 million parameters; the output layer is the embedding."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, positions: int = 1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.h = nn.Sequential(*(GPTBlock(width, heads) for _ in range(layers)))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        return self.lm_head(self.ln_f(self.h(x)))


# ------------------------------------------------------------------ small ones


class SmallCNN(nn.Module):
    def __init__(self, channels: int = 16, classes: int = 10):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Conv2d(channels, 2 * channels, 3, 2, 1), nn.BatchNorm2d(2 * channels), nn.ReLU())
        self.head = nn.Linear(2 * channels, classes)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))


class Chain(nn.Module):
    """A deep chain of small layers: 3 graph nodes a layer."""

    def __init__(self, layers: int = 10_000):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(2, 2) for _ in range(layers)))

    def forward(self, x):
        return self.layers(x)
