"""Inputs of calls that ops must refuse, shared by several sample rows."""

import numpy as np

NO_ROWS, ONES_3_4, ONES_4 = np.zeros((0, 3)), np.ones((3, 4)), np.ones(4)
ONES_3_3, SADDLE = np.ones((3, 3)), np.array([[1.0, 2.0], [2.0, 1.0]])
LINE = np.ones((1, 5, 2))
