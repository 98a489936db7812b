"""Random numbers, by Keras's names."""

from emberharmony.backend.shared.random import Generator
from emberharmony.core.names.spaces import fill
from emberharmony.ops import _modules

fill(
    globals(),
    _modules,
    ("distributions", "random_ops"),
    also={"Generator": Generator, "SeedGenerator": Generator},
)
