"""What a step of training sees of examples: augmented, and with rare tokens hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chordal.torch._forms import Form, ImageForm, Raw, Seen

Augment: TypeAlias = Callable[[list[Any], np.random.Generator], Sequence[Any]]


class Shown(NamedTuple):
    """Training examples, as the user gave them and as the network reads them."""

    form: Form
    X: Raw
    examples: list[Seen]
    augment: Augment | None

    def drawn(self, chosen: NDArray[np.int64], generator: np.random.Generator) -> list[Seen]:
        """What a step sees of the chosen examples."""
        form, own = self.form, [self.examples[i] for i in chosen]
        if self.augment is not None:
            name, other = "augment(X)", self.augment([self.X[i] for i in chosen], generator)
            new = form.seen(form.examples(form.crf, other, name), name)
            if [_shape(form, e) for e in new] != [_shape(form, e) for e in own]:
                raise ValueError("augment must give as many examples of the same sizes")
            own = [e._replace(values=n.values) for e, n in zip(own, new, strict=True)]
        if not form.inputs.rare:
            return own
        values = form.inputs.hidden_rare([e.values for e in own], generator)
        return [e._replace(values=v) for e, v in zip(own, values, strict=True)]


def _shape(form: Form, example: Seen) -> tuple[int, ...]:
    return tuple(example.values.shape) if isinstance(form, ImageForm) else (example.size,)
