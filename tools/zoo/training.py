"""Trains a Llama of transformers 20 steps, 5 on each backend, beside PyTorch alone, and gives its weights back."""

import copy
import warnings
from typing import Any

import language
import numpy as np
import torch
from registry import MODELS

import emberharmony
from emberharmony import nn, ops, optim

assert language  # which fills the registry
STEPS, BACKENDS = 20, ("numpy", "mlx", "torch", "jax")
LR, DECAY = 1e-3, 0.01


def losses_of_torch(net: torch.nn.Module, tokens: torch.Tensor, labels: torch.Tensor) -> list[float]:
    """Returns the losses of PyTorch alone."""
    optimizer, losses = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=DECAY), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = net(input_ids=tokens, use_cache=False, return_dict=False)[0]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def losses_of_backends(net: Any, tokens: torch.Tensor, labels: torch.Tensor) -> list[float]:
    """Returns the losses of the captured module, whose backend changes in mid-training."""
    losses: list[float] = []
    optimizer = optim.AdamW(net, lr=LR, weight_decay=DECAY)
    for backend in BACKENDS:
        ops.set_backend(backend)
        token_tensor, label_tensor = ops.array(tokens.numpy()), ops.array(labels.numpy().ravel())

        def loss(token_tensor: Any = token_tensor, label_tensor: Any = label_tensor) -> Any:
            logits = net(input_ids=token_tensor, use_cache=False, return_dict=False)[0]
            return nn.losses.cross_entropy(ops.reshape(logits, (-1, logits.shape[-1])), label_tensor)

        for _ in range(STEPS // len(BACKENDS)):
            losses.append(float(ops.backward(loss, net)))
            optimizer.step()
    return losses


def main() -> None:
    """Prints the losses, their largest difference, and that of the weights that were given back."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    module, _, kwargs = MODELS["hf/llama"]()
    tokens = kwargs["input_ids"]
    labels = tokens.roll(-1, 1)
    torch_module = copy.deepcopy(module)
    net = emberharmony.from_torch(module, (), kwargs, train=True)
    theirs, ours = losses_of_torch(torch_module.train(), tokens, labels), losses_of_backends(net, tokens, labels)
    print("PyTorch      ", *(f"{x:.6f}" for x in theirs))
    print("EmberHarmony ", *(f"{x:.6f}" for x in ours))
    print(f"largest relative difference of losses {np.max(np.abs(np.divide(ours, theirs) - 1)):.1e}")
    net.to_torch(module)
    differences = [
        float((a - b).abs().max()) for a, b in zip(module.parameters(), torch_module.parameters(), strict=True)
    ]
    print(f"largest difference of weights {max(differences):.1e}")


if __name__ == "__main__":
    main()
