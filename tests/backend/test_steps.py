"""What a backend tells an optimizer of its tensors, so that it need not look at each of them in each step."""

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, OPTIONAL, is_installed
from emberharmony.core import op_globals


@pytest.mark.parametrize("name", [name for name in BUILTIN | OPTIONAL if is_installed(name)])
def test_tensors_match_others_of_their_shapes_and_dtypes(name: str) -> None:
    with ops.use_backend(name):
        x, y, z = ops.ones((2, 3), "float32"), ops.ones(4, "float32"), ops.ones(4, "float16")
        backend = op_globals.active().backend
        traits = backend.traits_of([[x, y], [z]])
        assert traits.match(ops.zeros((2, 3), "float32"), ops.zeros(4, "float32"), ops.zeros(4, "float16"))
        for others in ([x, y, y], [x, x, z], [x, ops.ones(5, "float32"), z], [y, y, z], [ops.transpose(x), y, z]):
            assert not traits.match(*others)
        assert not traits.fit_programs
        assert backend.traits_of([[x, y]]).fit_programs
