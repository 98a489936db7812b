"""The base class of backends over a namespace of the standard."""

import contextlib
from typing import Any, ClassVar

import numpy as np

from emberharmony.backend.arrayapi.library import Library
from emberharmony.backend.base import Backend
from emberharmony.backend.promote import Promotion
from emberharmony.backend.shared.device import native_device, placement_of
from emberharmony.backend.shared.random_bodies import stream_of
from emberharmony.backend.shared.random_state import State, generator_state, restored_generator
from emberharmony.backend.shared.random_streams import read_streams, restore_streams, streams_state
from emberharmony.backend.shared.tensor import DLPACK_ERRORS
from emberharmony.core.errors import ArgumentError, AxisError, DTypeError, LinAlgError, ShapeError


class StandardBackend(Backend):
    """A backend over a namespace of the standard; `array_api_type` derives one class for each namespace."""

    library: ClassVar[Library]
    promotion: ClassVar[Promotion]
    boolean_keys = False
    wraps = True
    errors = (
        (Exception, "singular|positive.definite", LinAlgError),
        (Exception, "(must|should) match|expanded size", ShapeError),
        (TypeError, "dtypes? (are|is)? ?allowed|dtype", DTypeError),
        (ValueError, "duplicate value in 'axis'|repeated", AxisError),
        (IndexError, "too many indices", AxisError),
        (
            ValueError,
            "no identity|(not|cannot) (be )?reshape|one unknown dimension|broadcast|shape|dimension",
            ShapeError,
        ),
        (ValueError, "copy", ArgumentError),
        *DLPACK_ERRORS,
    )

    @property
    def version(self) -> str:
        """The version of the library."""
        return str(getattr(self.library.xp, "__version__", "unknown"))

    def from_numpy(self, array: np.ndarray) -> Any:
        """Returns a host array as a tensor of the same dtype.

        Raises:
            DTypeError: if the library does not have the dtype.
        """
        return self.library.from_host(array)

    def wrap(self, result: Any) -> Any:
        """Returns NumPy scalars, which some libraries give for tensors without axes, as tensors; in tuples too."""
        if isinstance(result, np.generic):
            return self.library.xp.asarray(result)
        if isinstance(result, (tuple, list)) and any(isinstance(item, np.generic) for item in result):
            wrapped_items = [self.wrap(item) for item in result]
            return type(result)(*wrapped_items) if hasattr(result, "_fields") else type(result)(wrapped_items)
        return result

    def device_scope(self, device: Any) -> contextlib.AbstractContextManager[None]:
        """Returns the context manager behind `with ops.device(...)`.

        Raises:
            DeviceError: if the device does not exist.
        """
        return placement_of(self).override_default(native_device(device))

    def random_get_state(self) -> State:
        """Returns the state of the default random streams, which the body does not know."""
        return streams_state(self.name, lambda: generator_state(stream_of(self).get()))

    def random_set_state(self, state: State) -> None:
        """Sets the default random streams, which the body does not know, to a saved state."""
        native_reader, seed = read_streams(self.name, state)
        restore_streams(seed, stream_of(self), restored_generator(native_reader, "PCG64"))
