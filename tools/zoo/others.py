"""Models of diffusers, and modules of PyTorch itself."""

import torch
from registry import Example, register_model
from torch import nn


@register_model("diffusers/unet2d")
def unet() -> Example:
    """Returns the network of a diffusion model."""
    from diffusers import UNet2DModel

    net = UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32),
        norm_num_groups=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    )  # fmt: skip
    return net, (torch.randn(2, 3, 16, 16), torch.tensor([3, 7])), {"return_dict": False}


@register_model("diffusers/autoencoder_kl")
def autoencoder() -> Example:
    """Returns the autoencoder of a latent diffusion model."""
    from diffusers import AutoencoderKL

    net = AutoencoderKL(
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    return net, (torch.randn(1, 3, 16, 16),), {"return_dict": False}


@register_model("diffusers/unet2d_condition")
def conditional_unet() -> Example:
    """Returns the network of Stable Diffusion."""
    from diffusers import UNet2DConditionModel

    net = UNet2DConditionModel(
        sample_size=8, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, cross_attention_dim=16,
        attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    return net, (torch.randn(1, 4, 8, 8), torch.tensor(5), torch.randn(1, 6, 16)), {"return_dict": False}


@register_model("torch/transformer")
def transformer() -> Example:
    """Returns the transformer of PyTorch."""
    net = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True)
    return net, (torch.randn(2, 5, 16), torch.randn(2, 4, 16)), {}


class Sequences(nn.Module):
    """Recurrent layers of each kind, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)
        self.gru, self.rnn, self.out = nn.GRU(12, 8, batch_first=True), nn.RNN(8, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns classes of each element."""
        return self.out(self.rnn(self.gru(self.lstm(x)[0])[0])[0])


@register_model("torch/recurrent")
def recurrent_layers() -> Example:
    """Returns recurrent layers."""
    return Sequences(), (torch.randn(2, 6, 8),), {}


class GraphAttention(nn.Module):
    """A graph network whose messages are gathered and scattered."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.score, self.out = nn.Linear(8, 16), nn.Linear(32, 1), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Returns features of the nodes."""
        h, (start, end) = self.project(x), edges
        scores = nn.functional.leaky_relu(self.score(torch.cat([h[start], h[end]], -1)), 0.2).exp()
        score_sums = torch.zeros(len(x), 1).index_add(0, end, scores)
        messages = h[start] * scores / score_sums[end]
        pooled_messages = torch.zeros_like(h).scatter_reduce(0, end[:, None].expand_as(messages), messages, "sum")
        return self.out(pooled_messages + h)


@register_model("torch/graph_attention")
def graph_attention() -> Example:
    """Returns a graph network."""
    return GraphAttention(), (torch.randn(5, 8), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])), {}
