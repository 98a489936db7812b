"""Gates for moves of code: commands that show that a move changes neither what ops give nor what their calls cost.

A refactoring that touches many ops at once, such as a table that moves into the declarations, is checked by records of
all ops made before and after it. The tests check what a few calls must give; a record notices any change.

- `python tools/gates probe BACKEND OUT` calls each op whose required parameters are up to three tensors with operands
  of each dtype, mixed dtypes, Python numbers, large integers, lists and objects that are no tensors. It also runs the
  sample row of each op: its cases, its first case in each dtype and with shapes alone, and its gradient. It records the
  dtype, shape and values of each result, or the class and the message of the error.
- `python tools/gates variants BACKEND OUT` records the source that dispatch generates for each op and the native
  function that it calls, so that no call of native tensors gets slower unseen.
- `python tools/gates steps BACKEND OUT` records what each optimizer and wrapper makes of seeded lists of parameters
  (small, large, many alike, of several dtypes): the parameters and the state after five steps, while somebody keeps the
  old tensors, with gradients left out, after loading, and in the pure form.
- `python tools/gates programs BACKEND OUT` records what compiled random functions give, when they are recorded and when
  they repeat, beside what the functions themselves give.
- `python tools/gates compare BEFORE AFTER` prints the differences by kind, and fails if there are any but messages.
  Where an op gets another body, `--eps 16` tells numbers that differ in their last digits from others.

Records belong to one machine and one set of libraries: make both on the same. Two records of one commit are equal, in
any process. `probe` takes 8 s on NumPy, 20 s on PyTorch and MLX, 30 s on array_api_strict, 2 minutes on Dask and 10 on
JAX; `steps` 15 s on NumPy, a minute on PyTorch and MLX; `programs` 3 s on NumPy, and seconds per function on PyTorch.

`record` reads and writes the files, `comparison` sorts the differences, `command` is the command line.
"""
