"""Models of timm and torchvision, small and with random weights."""

from typing import Any

import timm
import torch
import torchvision
from registry import Example, model


def of_timm(name: str, size: int = 64, **options: Any) -> None:
    """Adds a model of timm."""

    def make() -> Example:
        return timm.create_model(name, num_classes=10, **options), (torch.randn(2, 3, size, size),), {}

    model(f"timm/{name}")(make)


def of_torchvision(name: str, size: int = 64, **options: Any) -> None:
    """Adds a model of torchvision."""

    def make() -> Example:
        return getattr(torchvision.models, name)(num_classes=10, **options), (torch.randn(2, 3, size, size),), {}

    model(f"torchvision/{name}")(make)


of_timm("resnet18")
of_timm("resnet10t")
of_timm("efficientnet_b0")
of_timm("mobilenetv3_small_050")
of_timm("convnext_atto")
of_timm("vit_tiny_patch16_224", img_size=64, depth=2)
of_timm("deit_tiny_patch16_224", img_size=64, depth=2)
of_timm("mixer_s32_224", img_size=64)
of_timm("swin_tiny_patch4_window7_224", img_size=64, window_size=4, depths=(1, 1), num_heads=(2, 4), embed_dim=32)
of_timm("regnetx_002")
of_timm("densenet121", growth_rate=8, block_config=(2, 2, 2, 2))
of_timm("ghostnet_050")
of_timm("repvgg_a0")
of_timm("poolformer_s12")
of_timm("mobilevit_xxs")
of_timm("edgenext_xx_small")
of_timm("maxvit_pico_rw_256", 64, img_size=64)
of_timm("coatnet_pico_rw_224", 64, img_size=64)
of_timm("xcit_nano_12_p16_224", depth=2)
of_timm("tinynet_e")
of_torchvision("alexnet", 96)
of_torchvision("googlenet", 64, aux_logits=False, init_weights=False)
of_torchvision("squeezenet1_1")
of_torchvision("shufflenet_v2_x0_5")
of_torchvision("mnasnet0_5")
of_torchvision("vgg11_bn", init_weights=False)


@model("torchvision/raft_small")
def raft_small() -> Example:
    """Returns RAFT, which finds the motion between two images."""
    net = torchvision.models.optical_flow.raft_small()
    return net, (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)), {"num_flow_updates": 2}


@model("torchvision/deeplabv3_mobilenet")
def deeplab() -> Example:
    """Returns DeepLab, which segments images."""
    net = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5)
    return net, (torch.randn(2, 3, 64, 64),), {}


@model("torchvision/r3d_18")
def r3d() -> Example:
    """Returns a residual network of videos."""
    return torchvision.models.video.r3d_18(num_classes=10), (torch.randn(1, 3, 4, 32, 32),), {}
