"""The errors and warnings of the library; each error is an `EmberError` and also the fitting builtin exception.

>>> from emberharmony.errors import ShapeError
>>> issubclass(ShapeError, ValueError)
True
"""

from emberharmony.core.errors import ArgumentError as ArgumentError
from emberharmony.core.errors import ArgumentTypeError as ArgumentTypeError
from emberharmony.core.errors import AxisError as AxisError
from emberharmony.core.errors import BackendExecutionError as BackendExecutionError
from emberharmony.core.errors import BackendFallbackWarning as BackendFallbackWarning
from emberharmony.core.errors import BackendMismatchError as BackendMismatchError
from emberharmony.core.errors import BackendNotFoundError as BackendNotFoundError
from emberharmony.core.errors import BackendProtocolError as BackendProtocolError
from emberharmony.core.errors import BackendSwitchWarning as BackendSwitchWarning
from emberharmony.core.errors import BackendUnavailableError as BackendUnavailableError
from emberharmony.core.errors import CaptureError as CaptureError
from emberharmony.core.errors import CheckError as CheckError
from emberharmony.core.errors import CheckpointError as CheckpointError
from emberharmony.core.errors import CheckpointWarning as CheckpointWarning
from emberharmony.core.errors import CheckWarning as CheckWarning
from emberharmony.core.errors import DeviceError as DeviceError
from emberharmony.core.errors import DistributedError as DistributedError
from emberharmony.core.errors import DTypeError as DTypeError
from emberharmony.core.errors import EmberError as EmberError
from emberharmony.core.errors import EngineWarning as EngineWarning
from emberharmony.core.errors import IndexOutOfBoundsError as IndexOutOfBoundsError
from emberharmony.core.errors import LinAlgError as LinAlgError
from emberharmony.core.errors import MissingFileError as MissingFileError
from emberharmony.core.errors import NonFiniteError as NonFiniteError
from emberharmony.core.errors import OutOfMemoryError as OutOfMemoryError
from emberharmony.core.errors import RangeError as RangeError
from emberharmony.core.errors import SettingsError as SettingsError
from emberharmony.core.errors import SettingsWarning as SettingsWarning
from emberharmony.core.errors import ShapeError as ShapeError
from emberharmony.core.errors import StateDictError as StateDictError
from emberharmony.core.errors import TracedTensorError as TracedTensorError
from emberharmony.core.errors import TrainingWarning as TrainingWarning
from emberharmony.core.errors import UninitializedParameterError as UninitializedParameterError
from emberharmony.core.errors import UnsupportedOpError as UnsupportedOpError
from emberharmony.core.errors import WeightFileError as WeightFileError

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "BackendExecutionError",
    "BackendFallbackWarning",
    "BackendMismatchError",
    "BackendNotFoundError",
    "BackendProtocolError",
    "BackendSwitchWarning",
    "BackendUnavailableError",
    "CaptureError",
    "CheckError",
    "CheckWarning",
    "CheckpointError",
    "CheckpointWarning",
    "DTypeError",
    "DeviceError",
    "DistributedError",
    "EmberError",
    "EngineWarning",
    "IndexOutOfBoundsError",
    "LinAlgError",
    "MissingFileError",
    "NonFiniteError",
    "OutOfMemoryError",
    "RangeError",
    "SettingsError",
    "SettingsWarning",
    "ShapeError",
    "StateDictError",
    "TracedTensorError",
    "TrainingWarning",
    "UninitializedParameterError",
    "UnsupportedOpError",
    "WeightFileError",
]
