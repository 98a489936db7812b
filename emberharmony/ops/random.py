"""Random numbers, by Keras's names."""

from emberharmony.backend.shared.random import Generator
from emberharmony.core.names.spaces import fill_namespace
from emberharmony.ops import _modules

fill_namespace(
    globals(),
    _modules,
    ("distributions", "random_ops"),
    also={"Generator": Generator, "SeedGenerator": Generator},
)
