"""
A training that changes its library
===================================

A network learns to recognise digits, and moves to the next installed library after each 60 steps. Parameters, the
state of the optimizer and the random numbers move along. The dashed line is the same training on NumPy alone.
"""

import matplotlib.pyplot as plt

from emberharmony import nn, ops, optim
from emberharmony.data import digits

data = digits()


def train(backends):
    """Returns the losses of a training that spends 60 steps on each of the backends."""
    losses = []
    rngs = nn.Rngs(0)
    model = nn.Sequential(nn.Linear(64, 32, rng=rngs), nn.ReLU(), nn.Linear(32, 10, rng=rngs))
    optimizer = optim.AdamW(model, lr=3e-3)
    generator = ops.random.Generator(1)
    for backend in backends:
        with ops.use_backend(backend):
            for _ in range(60):
                chosen = ops.to_numpy(ops.random.randint((64,), 0, len(data.train_images), generator=generator))
                images, labels = data.train_images[chosen], data.train_labels[chosen]
                loss = ops.backward(lambda: nn.losses.cross_entropy(model(images), labels), model)  # noqa: B023
                optimizer.step()
                losses.append(float(loss))
    return losses


backends = ops.available_backends()
for k, backend in enumerate(backends):
    plt.axvspan(60 * k, 60 * k + 60, alpha=0.12, color=f"C{k}", label=backend)
plt.plot(train(backends), color="black", label="switching")
plt.plot(train(["numpy"] * len(backends)), "--", color="red", linewidth=1, label="NumPy alone")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.show()
