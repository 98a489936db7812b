"""Gates for moves of code: commands that show that a move changes neither what ops give nor what their calls cost.

A refactoring that touches many ops at once, such as a table that moves into the declarations, is checked by records of
all ops made before and after it. The tests check what a few calls must give; a record notices any change.

- `python utils/gates probe BACKEND OUT` calls each op whose required parameters are up to three tensors with operands
  of each dtype, mixed dtypes, Python numbers, large integers, lists and objects that are no tensors. It also runs the
  sample row of each op: its cases, its first case in each dtype and with shapes alone, and its gradient. It records the
  dtype, shape and values of each result, or the class and the message of the error.
- `python utils/gates variants BACKEND OUT` records the source that dispatch generates for each op and the native
  function that it calls, so that no call of native tensors gets slower unseen.
- `python utils/gates compare BEFORE AFTER` prints the differences by kind, and fails if there are any but messages.
  Where an op gets another body, `--eps 16` tells numbers that differ in their last digits from others.

Records belong to one machine and one set of libraries: make both on the same. Two records of one commit are equal, in
any process. NumPy takes 8 s, PyTorch and MLX 20 s, array_api_strict 30 s, Dask 2 minutes, JAX 10 minutes.

`record` reads and writes the files, `comparison` sorts the differences, `command` is the command line.
"""
