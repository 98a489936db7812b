"""Mistakes of dtypes and labels."""

from tests.first_hour.mistake import Mistake

LOGITS = "logits = ops.ones((3, 2))\n"

MISTAKES = [
    Mistake(
        "class labels as floats",
        2,
        f"{LOGITS}nn.losses.cross_entropy(logits, np.array([0.0, 1.0, 1.0]))",
        says=r"class ids must be integers, got float64: ops\.cast\(target, 'int64'\)",
    ),
    Mistake(
        "class labels as booleans",
        2,
        f"{LOGITS}nn.losses.cross_entropy(logits, np.array([False, True, True]))",
        says=r"class ids must be integers, got bool: ops\.cast\(target, 'int64'\)",
    ),
    Mistake(
        "class labels that begin with 1",
        2,
        f"{LOGITS}nn.losses.cross_entropy(logits, np.array([1, 2, 2]))",
        says=r"ids begin with 0, so subtract 1",
    ),
    Mistake(
        "class labels of a CSV as text",
        2,
        f"{LOGITS}nn.losses.cross_entropy(logits, np.array(['cat', 'dog', 'cat']))",
        says=r"np\.unique\(x, return_inverse=True\)",
    ),
    Mistake(
        "labels of -1 and 1 for the binary loss",
        2,
        "nn.losses.binary_cross_entropy_with_logits(ops.zeros(2), ops.array([-1.0, 1.0]))",
        says=r"labels are 0 and 1, not -1 and 1",
    ),
    Mistake(
        "logits in the place of probabilities",
        2,
        "nn.losses.binary_cross_entropy(ops.array([2.0, -1.0]), ops.array([1.0, 0.0]))",
        says=r"logits go to binary_cross_entropy_with_logits",
    ),
    Mistake(
        "one_hot of floats", 2, "ops.one_hot([0.5, 1.0], 3)", says=r"class ids are integers, not float32: ops\.cast"
    ),
    Mistake(
        "token ids as floats",
        2,
        "nn.Embedding(10, 4)(ops.array([1.0, 2.0]))",
        says=r"indices are integers, not float32: ops\.cast",
    ),
    Mistake(
        "a table of pandas with a column of text",
        2,
        "import pandas as pd\nframe = pd.DataFrame({'age': [31, 45], 'city': ['Bonn', 'Rome']})\nops.array(frame)",
        needs=("pandas",),
        says=r"select_dtypes\('number'\)",
    ),
    Mistake("the dtype named as in pandas", 2, "ops.cast(ops.ones(2), 'Float')", says=r"did you mean 'float64'"),
]
