"""Faults of the arrays of `emberharmony.xp`: views, writes in place, memory that belongs to others, threads."""

from mutants.mutant import Mutant

VIEWS, ARRAY = "tests/xp/test_views.py", "tests/xp/test_array.py"
NUMPY, TORCH, MLX = (f"--ember-backend {name}" for name in ("numpy", "torch", "mlx"))

MUTANTS = [
    Mutant(
        name="views-that-are-outdated",
        module="emberharmony/xp/views.py",
        function="Memory._update",
        original="each._v = Stale(self, each)",
        replacement="pass",
        tests=(f"{VIEWS} -k sees {MLX}", f"{VIEWS} {MLX}"),
        why="a view keeps its elements when the array is written to",
    ),
    Mutant(
        name="writes-through-a-view",
        module="emberharmony/xp/views.py",
        function="Memory._update",
        original="parent._v = self._write_back(value(parent), links_of(view).how, view._v)",
        replacement="pass",
        tests=(f"{VIEWS} {MLX}",),
        why="a write into a view does not reach the array",
    ),
    Mutant(
        name="elements-as-snapshots",
        module="emberharmony/xp/views.py",
        function="Memory._detach",
        original="links_of(each).how is SNAPSHOT",
        replacement="False",
        tests=(f"{VIEWS} -k element {TORCH}",),
        why="an element of PyTorch changes when the array is written to",
    ),
    Mutant(
        name="memory-of-others",
        module="emberharmony/xp/views.py",
        function="Memory._is_plain",
        original="links.foreign",
        replacement="False",
        tests=(f"{VIEWS} -k tree {NUMPY}",),
        why="a write into an array of a tree changes the array that the tree was made of",
    ),
    Mutant(
        name="kinds-of-what-is-written",
        module="emberharmony/xp/views.py",
        function="Memory._fitting",
        original="rank > _RANKS[kinds[old.dtype]]",
        replacement="False",
        tests=(f"{ARRAY} -k in_place {NUMPY}",),
        why="a float is cut when it is written into integers",
    ),
    Mutant(
        name="operators-with-native-tensors",
        module="emberharmony/xp/kit.py",
        function="Kit.odd",
        original="isinstance(other, (int, float, complex, self.native, TensorProxy))",
        replacement="isinstance(other, (int, float, complex, TensorProxy))",
        tests=(f"{ARRAY} -k operator {NUMPY}",),
        why="an operator refuses a tensor of the library",
    ),
    Mutant(
        name="memory-that-numpy-got",
        module="emberharmony/xp/array.py",
        function="ArrayBase._given_out",
        original="self._links = alone(foreign=not self._kit.memory.shares)",
        replacement="pass",
        tests=(f"{ARRAY} -k memory {NUMPY}",),
        why="np.asarray(x) keeps its elements when x changes in place",
    ),
    Mutant(
        name="default-float-of-a-namespace",
        module="emberharmony/xp/functions.py",
        function="creating",
        original="wanted in (None, made.dtype.neutral)",
        replacement="True",
        tests=(f"tests/xp/test_namespace.py -k default {NUMPY}",),
        why="arrays of zeros keep the default float of ops",
    ),
    Mutant(
        name="constants-that-a-transform-keeps",
        module="emberharmony/xp/views.py",
        function="Memory.keep",
        original="self._own_links(root).foreign = True",
        replacement="pass",
        tests=(f"tests/xp/test_kept.py {NUMPY}",),
        why="the gradient has the value that was written into a constant later",
    ),
    Mutant(
        name="arrays-that-watchers-see",
        module="emberharmony/xp/kit.py",
        function="Kit.follow_observers",
        original="self.ops.forget()",
        replacement="return",
        tests=(f"tests/xp/test_observing.py {NUMPY}",),
        why="a log lacks the calls of arrays",
    ),
]
