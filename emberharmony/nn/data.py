"""`Batches`, an iterable of batches of arrays whose position can be saved and restored."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from emberharmony import Buffer, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.nn import rngs
from emberharmony.nn.options import length_option


class Batches:
    """An iterable of batches of arrays of equal length, in a new random order in each epoch.

    The arrays follow the active backend. Iterating yields the batches of one epoch, and each new iterator begins a new
    one, also in the middle of an epoch; `forever` goes from epoch to epoch. `state_dict` in the middle of an epoch says
    which batches are left; after `load_state_dict` the next iteration yields these.

    Args:
        arrays: tensors, arrays or lists whose first axes have the same length.
        batch_size: how many rows a batch has.
        shuffle: whether the order is random.
        drop_last: whether a last batch with fewer rows is left out.
        rng: draws the orders, the same ones on every backend; None leaves them to `ops.random.seed`.
        shard: whether each rank of `ops.distributed` gets its part of each batch. Rows of a last batch that do not
            divide by the ranks are left out. State dicts are those without it, so a run with another number of ranks
            can continue.

    Attributes:
        epoch: the number of the epoch that was begun last, from 1 on; 0 before the first.

    Raises:
        ShapeError: if the lengths differ, or there are no rows.
        ArgumentError: if the batch size is not positive, or no batch would be full; with `shard` also if the batch size
            does not divide by the ranks, or these would draw different orders.

    Example:
        >>> batches = nn.data.batches([0, 1, 2, 3, 4], batch_size=2, shuffle=False)
        >>> [batch.tolist() for batch in batches]
        [[0, 1], [2, 3], [4]]
        >>> shuffled = nn.data.batches(ops.eye(4), [0, 1, 2, 3], batch_size=3, rng=ops.random.Generator(0))
        >>> [(tuple(x.shape), tuple(y.shape)) for x, y in shuffled]
        [((3, 4), (3,)), ((1, 4), (1,))]
    """

    def __init__(
        self,
        *arrays: Any,
        batch_size: int,
        shuffle: bool = True,
        drop_last: bool = False,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        shard: bool = False,
    ) -> None:
        self._rank, self._ranks = 0, 1
        if not arrays:
            raise ArgumentError("batches() takes at least one array")
        for array in arrays:
            if isinstance(array, (tuple, dict)) and any(hasattr(leaf, "shape") for leaf in ops.tree_leaves(array)):
                argument_text = "*arrays" if isinstance(array, tuple) else "*arrays.values()"
                raise ArgumentTypeError(
                    f"batches() takes the arrays one by one, as in batches(x, y, ...): pass {argument_text}"
                )
        self._arrays = [Buffer(array) for array in arrays]
        array_shapes = [tuple(array.value.shape) for array in self._arrays]
        if not all(array_shapes) or len({shape[0] for shape in array_shapes}) > 1 or not array_shapes[0][0]:
            raise ShapeError(
                f"batches() takes arrays whose first axes have the same length above 0, got {array_shapes}; each array "
                f"has a row for each sample: x[:n] shortens one, and ops.transpose(x) exchanges two axes"
            )
        self.rows: int = array_shapes[0][0]
        self.batch_size = length_option("batch_size", batch_size)
        self.shuffle, self.drop_last = shuffle, drop_last
        if not len(self):
            raise ArgumentError(
                f"batches(): with drop_last no batch of {batch_size} is full, as there are {self.rows} rows"
            )
        self._rng = rngs.generator(rng, "data") if shuffle else None
        if shard:
            self._set_ranks()
        self.epoch = self._position = 0
        self._drawn_from: Any = None  # the generator's state before the order was drawn
        self._order: Buffer | None = None
        self._continues = False

    def __len__(self) -> int:
        """Returns the number of batches in an epoch."""
        full_batches, remaining_rows = divmod(self.rows, self.batch_size)
        return full_batches if self.drop_last or remaining_rows < self._ranks else full_batches + 1

    def __iter__(self) -> Iterator[Any]:
        if not self._continues:
            self._position = 0
            self.epoch += 1
            self._draw_order()
        self._continues = False
        while self._position < len(self):
            first_row = self._position * self.batch_size
            self._position += 1
            yield self._batch_rows(first_row, min(first_row + self.batch_size, self.rows))

    def __repr__(self) -> str:
        arrays_text = ", ".join(f"{tuple(array.shape)} {ops.dtype(array.value).name}" for array in self._arrays)
        order_text = "shuffled" if self.shuffle else "in order"
        return f"Batches({self.rows} rows {order_text}, {len(self)} batches of {self.batch_size}; arrays {arrays_text})"

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: a table of shapes, dtypes and first values of each array."""
        # The module is imported only here, because only notebooks need it.
        from emberharmony.core.display.html import html_table

        table_rows = [
            (str(i), str(tuple(x.shape)), ops.dtype(x).name, brief(ops.to_numpy(ops.ravel(x[:1]))[:6].tolist()))
            for i, x in enumerate(array.value for array in self._arrays)
        ]
        return html_table(
            repr(self).partition(";")[0] + ")", ("array", "shape", "dtype", "first values"), table_rows, left=4
        )

    def forever(self) -> Iterator[Any]:
        """Yields the batches of one epoch after the other, without end."""
        while True:
            yield from self

    def _draw_order(self) -> None:
        if self._rng is not None:
            self._drawn_from = self._rng.state_dict()
            self._order = Buffer(ops.random.permutation(self.rows, generator=self._rng))

    def _set_ranks(self) -> None:
        """Sets the number of ranks and the own rank, which decide the part of each batch that this process gets.

        Raises:
            ArgumentError: if the batch size does not divide, or the ranks would draw different orders.
        """
        # The modules are imported only here, because only programs with several processes need them.
        from emberharmony.distributed import rank, size
        from emberharmony.distributed.objects import gather

        self._rank, self._ranks = rank(), size()
        if self.batch_size % self._ranks:
            raise ArgumentError(f"batches(): batch_size {self.batch_size} does not divide by the {self._ranks} ranks")
        rows_and_states = gather([self.rows, None if self._rng is None else self._rng.state_dict()])
        if rows_and_states.count(rows_and_states[0]) < len(rows_and_states):
            raise ArgumentError("batches(): the ranks have other rows or generators; pass rng=ops.random.Generator(0)")

    def _batch_rows(self, start: int, stop: int) -> Any:
        if self._ranks > 1:
            row_count_of_rank = (stop - start) // self._ranks
            start += self._rank * row_count_of_rank
            stop = start + row_count_of_rank
        if self._order is None:
            batch_arrays = tuple(array.value[start:stop] for array in self._arrays)
        else:
            row_indices = self._order.value[start:stop]
            batch_arrays = tuple(ops.take(array, row_indices, axis=0) for array in self._arrays)
        return batch_arrays[0] if len(batch_arrays) == 1 else batch_arrays

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the iteration and the state of its generator, as a dict that `json.dumps` accepts."""
        generator_state = None if self._rng is None else self._rng.state_dict()
        return {
            "epoch": self.epoch,
            "position": self._position,
            "rows": self.rows,
            "batch_size": self.batch_size,
            "generator": generator_state,
            "drawn_from": self._drawn_from,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets the iteration to the position in a state dict.

        Raises:
            ArgumentTypeError: if the state is not a dict.
            ArgumentError: if it belongs to batches of other sizes, or is damaged.
        """
        commit(self.loading_steps(state))

    def loading_steps(self, state: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        if not isinstance(state, Mapping):
            raise ArgumentTypeError(f"load_state_dict() takes what state_dict() returned, not {brief(state)}")
        for name in ("rows", "batch_size"):
            if state.get(name) != getattr(self, name):
                raise ArgumentError(
                    f"load_state_dict(): the state has {name}={state.get(name)!r}, these batches {getattr(self, name)}"
                )
        epoch, position = state.get("epoch"), state.get("position")
        if not (isinstance(epoch, int) and isinstance(position, int) and 0 <= position <= len(self)):
            raise ArgumentError(f"load_state_dict(): wrong epoch {epoch!r} or position {position!r}")
        if (self._rng is None) is not (state.get("generator") is None):
            raise ArgumentError("load_state_dict(): one of the two sides has shuffle=True and the other has not")
        row_order, steps = None, []
        if self._rng is not None:
            if epoch:
                generator = ops.random.Generator(0)
                generator.load_state_dict(state.get("drawn_from", {}))
                row_order = Buffer(ops.random.permutation(self.rows, generator=generator))
            # The state is loaded into the existing generator, because other objects may draw from it too.
            steps = self._rng.loading_steps(state["generator"])
        attributes_after = {
            "_order": row_order,
            "_drawn_from": state.get("drawn_from"),
            "epoch": epoch,
            "_position": position,
            "_continues": bool(epoch) and position < len(self),
        }
        return [*steps, *(assignment(self, name, value) for name, value in attributes_after.items())]

    def rewinding_steps(self) -> list[Step]:
        """Returns assignments that later set the iteration back to its present position."""
        attribute_names = ("epoch", "_position", "_order", "_drawn_from", "_continues")
        steps = [assignment(self, name, getattr(self, name)) for name in attribute_names]
        return steps if self._rng is None else [*steps, *self._rng.rewinding_steps()]


def batches(
    *arrays: Any,
    batch_size: int,
    shuffle: bool = True,
    drop_last: bool = False,
    rng: "rngs.Generator | rngs.Rngs | None" = None,
    shard: bool = False,
) -> Batches:
    """Returns an iterable of batches of arrays, a `Batches` object.

    Args:
        *arrays: tensors, arrays or lists whose first axes have the same length.
        batch_size: how many rows a batch has.
        shuffle: whether the order is random, another one in each epoch.
        drop_last: whether a last batch with fewer rows is left out.
        rng: draws the orders, the same ones on every backend; None leaves them to `ops.random.seed`.
        shard: whether each rank of `ops.distributed` gets its part of each batch.

    Example:
        >>> x, y = next(iter(nn.data.batches(ops.zeros((10, 3)), ops.arange(10), batch_size=4)))
        >>> tuple(x.shape), tuple(y.shape)
        ((4, 3), (4,))
    """
    return Batches(*arrays, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, rng=rng, shard=shard)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
