"""Each documented way to import the package works in a process that has imported nothing else."""

import os
import subprocess
import sys
from itertools import product

import pytest

from tests.sampling import portion

pytestmark = pytest.mark.fresh_process
COMPLETE = "print(b.asin(b.convert([0.0])).tolist(), b.clip(b.convert([2.0]), 0.0, 1.0).tolist(), b.relu is not None)\n"
ENTRIES = {
    "create_backend": "from emberharmony import create_backend\nb = create_backend('numpy', fallback=None)\n",
    "with a fallback": "import emberharmony\nb = emberharmony.create_backend('numpy', fallback='numpy')\n",
    "backend.create_backend": "from emberharmony import backend\nb = backend.create_backend('numpy')\n",
    "backend.current": "from emberharmony import backend\nb = backend.current()\n",
    "backend.set_backend": "from emberharmony import backend\nbackend.set_backend('numpy')\nb = backend.current()\n",
    "backend.use_backend": "from emberharmony import backend\nwith backend.use_backend('numpy') as b: pass\n",
    "a backend's class": "from emberharmony.backend.numpy import BACKEND\nb = BACKEND()\n",
    "a backend's object": (
        "from emberharmony import backend\nfrom emberharmony.backend.numpy import BACKEND\n"
        "with backend.use_backend(BACKEND()) as b: b = backend.current()\n"
    ),
    "backend_of": (
        "import numpy\nfrom emberharmony.backend import backend_of\n"
        "b = backend_of(numpy.ones(2))\nassert b is not None\n"
    ),
    "the registry": (
        "from emberharmony import ops\nfrom emberharmony.core.registry import OPS\nassert 'softmax' in OPS\n"
        "from emberharmony import create_backend\nb = create_backend('numpy')\n"
    ),
}
OTHERS = {
    "ops": "from emberharmony import ops\nprint(ops.softmax([1.0, 1.0]).tolist())",
    "a function of ops": "from emberharmony.ops import softmax\nprint(softmax([1.0, 1.0]).tolist())",
    "a namespace": "from emberharmony.ops import nn\nprint(nn.softmax([1.0, 1.0]).tolist())",
    "a function of a namespace": "from emberharmony.ops.nn import softmax\nprint(softmax([1.0, 1.0]).tolist())",
    "a namespace's module": "import emberharmony.ops.nn\nprint(emberharmony.ops.nn.softmax([1.0, 1.0]).tolist())",
    "Parameter": (
        "from emberharmony import Parameter\np = Parameter([1.0, 1.0])\n"
        "from emberharmony import ops\nprint(ops.softmax(p.value).tolist())"
    ),
    "register_op": (
        "import emberharmony\nfrom emberharmony.core.types import TensorLike\n"
        "@emberharmony.register_op\ndef halved(x: TensorLike):\n    from emberharmony import ops\n"
        "    return ops.divide(x, 2.0)\n"
        "print(emberharmony.create_backend('numpy').halved(halved([2.0, 2.0])).tolist())"
    ),
    "assert_agree": (
        "from emberharmony.testing import assert_agree\nfrom emberharmony import ops\n"
        "assert_agree(lambda x: ops.softmax(x), [1.0, 1.0])\nprint(ops.softmax([1.0, 1.0]).tolist())"
    ),
}


def run(program: str, **environment: str) -> str:
    environment = {**os.environ, "EMBERHARMONY_BACKEND": "numpy", **environment}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("entry", "named"), portion([*product(ENTRIES, ["numpy", ""])], 5))
def test_a_backend_has_all_ops_after_any_first_import(entry: str, named: str) -> None:
    assert run(ENTRIES[entry] + COMPLETE, EMBERHARMONY_BACKEND=named) == "[0.0] [1.0] True"


@pytest.mark.parametrize("entry", portion([*OTHERS], 2))
def test_ops_work_after_any_first_import(entry: str) -> None:
    assert run(OTHERS[entry]) == "[0.5, 0.5]"


@pytest.mark.parametrize(
    "call", ["create_backend('numpy')", "set_backend('numpy')", "use_backend('numpy').__enter__()"]
)
def test_a_backend_without_a_primitive_op_is_refused(call: str) -> None:
    program = (
        "from emberharmony import backend\n"
        "from emberharmony.backend.numpy import NumpyBackend\n"
        "from emberharmony.core.errors import BackendProtocolError\n"
        "del NumpyBackend.categories['elementwise/elementary']\n"
        f"try: backend.{call}\nexcept BackendProtocolError as error: print(', sin, ' in str(error))"
    )
    assert run(program, EMBERHARMONY_BACKEND="") == "True"


def test_the_created_backend_is_the_current_one() -> None:
    program = (
        "from emberharmony import backend\nb = backend.create_backend('numpy')\nprint(b is backend.current(), b.prefix)"
    )
    assert run(program) == "True numpy"


def test_two_threads_that_import_ops_and_ask_for_the_backend_do_not_deadlock() -> None:
    program = (
        "import threading\nfrom emberharmony import backend\n"
        "start = threading.Barrier(2)\nfound = []\n"
        "def asks():\n    start.wait()\n    found.append(backend.current())\n"
        "def imports():\n    start.wait()\n    from emberharmony import ops\n    found.append(ops.sin)\n"
        "threads = [threading.Thread(target=f, daemon=True) for f in (asks, imports)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join(60)\nprint(len(found))"
    )
    assert run(program) == "2"


def test_importing_the_backends_does_not_import_ops() -> None:
    program = "import sys, emberharmony.backend\nprint('emberharmony.ops' in sys.modules)"
    assert run(program) == "False"
