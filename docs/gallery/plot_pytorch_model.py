"""
A module of PyTorch, trained elsewhere
======================================

``from_torch`` captures a module of PyTorch, which then trains on each installed library, and ``to_torch`` gives the
weights back. The dashed line is the training of PyTorch alone.
"""

import copy

import matplotlib.pyplot as plt
import torch

import emberharmony
from emberharmony import nn, ops, optim
from emberharmony.data import digits

data = digits()
images, labels = data.train_images[:256].astype("float32"), data.train_labels[:256]

torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 10))
alone = copy.deepcopy(module)
net = emberharmony.from_torch(module, torch.zeros(256, 64))

optimizer, losses = optim.AdamW(net, lr=3e-3, weight_decay=0.01), []
for backend in ops.available_backends():
    with ops.use_backend(backend):
        x, y = ops.array(images), ops.array(labels)
        for _ in range(15):
            losses.append(float(ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)))  # noqa: B023
            optimizer.step()
net.to_torch(module)

beside = torch.optim.AdamW(alone.parameters(), lr=3e-3, weight_decay=0.01)
of_torch = []
for _ in losses:
    beside.zero_grad()
    loss = torch.nn.functional.cross_entropy(alone(torch.from_numpy(images)), torch.from_numpy(labels).long())
    loss.backward()
    beside.step()
    of_torch.append(float(loss.detach()))

difference = max(
    float((a - b).detach().abs().max()) for a, b in zip(module.parameters(), alone.parameters(), strict=True)
)
plt.plot(losses, color="black", label=" → ".join(ops.available_backends()))
plt.plot(of_torch, "--", color="red", linewidth=1, label="PyTorch alone")
plt.title(f"the weights differ by {difference:.0e} at the end")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.show()
