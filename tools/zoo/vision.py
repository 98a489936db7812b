"""Models of timm and torchvision, small and with random weights."""

from typing import Any

import timm
import torch
import torchvision
from registry import Example, register_model


def add_timm_model(name: str, size: int = 64, **options: Any) -> None:
    """Adds a model of timm."""

    def make_example() -> Example:
        return timm.create_model(name, num_classes=10, **options), (torch.randn(2, 3, size, size),), {}

    register_model(f"timm/{name}")(make_example)


def add_torchvision_model(name: str, size: int = 64, **options: Any) -> None:
    """Adds a model of torchvision."""

    def make_example() -> Example:
        return getattr(torchvision.models, name)(num_classes=10, **options), (torch.randn(2, 3, size, size),), {}

    register_model(f"torchvision/{name}")(make_example)


add_timm_model("resnet18")
add_timm_model("resnet10t")
add_timm_model("efficientnet_b0")
add_timm_model("mobilenetv3_small_050")
add_timm_model("convnext_atto")
add_timm_model("vit_tiny_patch16_224", img_size=64, depth=2)
add_timm_model("deit_tiny_patch16_224", img_size=64, depth=2)
add_timm_model("mixer_s32_224", img_size=64)
add_timm_model(
    "swin_tiny_patch4_window7_224", img_size=64, window_size=4, depths=(1, 1), num_heads=(2, 4), embed_dim=32
)
add_timm_model("regnetx_002")
add_timm_model("densenet121", growth_rate=8, block_config=(2, 2, 2, 2))
add_timm_model("ghostnet_050")
add_timm_model("repvgg_a0")
add_timm_model("poolformer_s12")
add_timm_model("mobilevit_xxs")
add_timm_model("edgenext_xx_small")
add_timm_model("maxvit_pico_rw_256", 64, img_size=64)
add_timm_model("coatnet_pico_rw_224", 64, img_size=64)
add_timm_model("xcit_nano_12_p16_224", depth=2)
add_timm_model("tinynet_e")
add_torchvision_model("alexnet", 96)
add_torchvision_model("googlenet", 64, aux_logits=False, init_weights=False)
add_torchvision_model("squeezenet1_1")
add_torchvision_model("shufflenet_v2_x0_5")
add_torchvision_model("mnasnet0_5")
add_torchvision_model("vgg11_bn", init_weights=False)


@register_model("torchvision/raft_small")
def raft_small() -> Example:
    """Returns RAFT, which finds the motion between two images."""
    net = torchvision.models.optical_flow.raft_small()
    return net, (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)), {"num_flow_updates": 2}


@register_model("torchvision/deeplabv3_mobilenet")
def deeplab() -> Example:
    """Returns DeepLab, which segments images."""
    net = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5)
    return net, (torch.randn(2, 3, 64, 64),), {}


@register_model("torchvision/r3d_18")
def r3d() -> Example:
    """Returns a residual network of videos."""
    return torchvision.models.video.r3d_18(num_classes=10), (torch.randn(1, 3, 4, 32, 32),), {}
