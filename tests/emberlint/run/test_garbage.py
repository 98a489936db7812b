"""A checked file leaves nothing for the garbage collector, so that checks can run without it."""

import gc
import sys
import threading

from emberlint.config.settings import Settings
from emberlint.run.check import check_text
from emberlint.run.garbage import pause_collection
from emberlint.run.registry import chosen_codes

SOURCE = """
from functools import partial

import keras
import torch
from emberharmony import ops

scale = partial(ops.multiply, 2)

class Base:
    shared = ops.ones(3)

    def twice(self, x):
        return self.twice(x) * 2 if x.ndim else self.shared

class Layer(keras.layers.Layer, Base):
    def call(self, x):
        self.kept = [x, {"next": self}]
        return [self.twice(one) + scale(one) for one in self.kept[:1]]

def f(x: torch.Tensor, mask=None):
    def inner():
        return f(x, mask) + Layer()(x)
    for row in x:
        row += inner()
    return (lambda y: y + x)(x)
"""


def test_a_checked_file_leaves_no_circles():
    with pause_collection():
        while gc.collect():  # what finalizers leave is garbage of the next collection
            pass
        result = check_text("library/a.py", SOURCE, Settings(), chosen_codes((), ()))
        assert len(result.findings) > 5
        del result
        assert gc.collect() == 0


def test_the_collector_is_restored():
    assert gc.isenabled()
    with pause_collection():
        assert not gc.isenabled()
        with pause_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_runs_again_after_blocks_that_overlap_in_threads():
    def enter_often():
        for _ in range(500):
            with pause_collection():
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=enter_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert gc.isenabled()
