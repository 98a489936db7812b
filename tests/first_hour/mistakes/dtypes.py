"""Mistakes of dtypes and labels."""

from tests.first_hour.mistake import Mistake

LOGITS = "logits = ops.ones((3, 2))\n"

MISTAKES = [
    Mistake("class labels as floats", 0, f"{LOGITS}nn.losses.cross_entropy(logits, np.array([0.0, 1.0, 1.0]))"),
    Mistake("class labels as booleans", 1, f"{LOGITS}nn.losses.cross_entropy(logits, np.array([False, True, True]))"),
    Mistake("class labels that begin with 1", 1, f"{LOGITS}nn.losses.cross_entropy(logits, np.array([1, 2, 2]))"),
    Mistake(
        "class labels of a CSV as text", 1, f"{LOGITS}nn.losses.cross_entropy(logits, np.array(['cat', 'dog', 'cat']))"
    ),
    Mistake(
        "labels of -1 and 1 for the binary loss",
        0,
        "nn.losses.binary_cross_entropy_with_logits(ops.zeros(2), ops.array([-1.0, 1.0]))",
    ),
    Mistake(
        "logits in the place of probabilities",
        0,
        "nn.losses.binary_cross_entropy(ops.array([2.0, -1.0]), ops.array([1.0, 0.0]))",
    ),
    Mistake("one_hot of floats", 0, "ops.one_hot([0.5, 1.0], 3)"),
    Mistake("token ids as floats", 1, "nn.Embedding(10, 4)(ops.array([1.0, 2.0]))"),
    Mistake(
        "a table of pandas with a column of text",
        2,
        "import pandas as pd\nframe = pd.DataFrame({'age': [31, 45], 'city': ['Bonn', 'Rome']})\nops.array(frame)",
        needs=("pandas",),
    ),
    Mistake("the dtype named as in pandas", 2, "ops.cast(ops.ones(2), 'Float')"),
]
