"""Third-party backends: array-api-strict, the strictest library that follows the array API standard."""

import array_api_strict as xp

from emberharmony.backend import Backend, from_array_api


def make() -> Backend:
    """Returns the backend "strict". An entry point of the plugin names this function."""
    return from_array_api("strict", xp, tensor_type=type(xp.asarray(0)))


def make_lazy() -> Backend:
    """Returns the backend "strict_lazy", which never reads a tensor unasked, as a library that computes later needs."""
    return from_array_api("strict_lazy", xp, tensor_type=type(xp.asarray(0)), lazy=True)
