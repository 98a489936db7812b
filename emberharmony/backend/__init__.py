"""The backends: what each is (`base`), how one is found (`discovery`) and chosen (`choice`)."""

from emberharmony.backend.base import Backend as Backend
from emberharmony.backend.base import unsupported as unsupported
from emberharmony.backend.choice import available_backends as available_backends
from emberharmony.backend.choice import backend_of as backend_of
from emberharmony.backend.choice import current as current
from emberharmony.backend.choice import get_backend as get_backend
from emberharmony.backend.choice import set_backend as set_backend
from emberharmony.backend.choice import use_backend as use_backend
from emberharmony.backend.discovery import create_backend as create_backend
from emberharmony.core.dispatch import fast as fast
