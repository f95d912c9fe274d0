"""What a chain model is made of, and how it reads sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_sequences
from chordal.estimators._estimator import Estimator
from chordal.estimators._labels import SequenceLabels
from chordal.features import (
    ChainFeatures,
    Columns,
    Input,
    Items,
    Rows,
    Template,
    TemplateInput,
    input_for,
)
from chordal.inference import Inference
from chordal.potentials import Floats

#: Of weights that come from elsewhere: scores beyond it have no digits left for probabilities.
MAX_WEIGHT = 1e10


def _of_transitions(error: Exception, sequences: Sequence[int]) -> Exception:
    """The same error in terms of the function that users gave."""
    text = re.sub(
        r"\bX\[(\d+)\]",
        lambda m: f"transition_features(X[{sequences[int(m[1])]}])",
        str(error).replace("each sequence", "X[0]"),
    )
    return type(error)(text)


class ChainModel(Estimator):
    """The state of a chain model after `fit`; prediction and inspection are views of it."""

    template: str | Template | None
    transition_features: Callable[[Any], Any] | None
    n_jobs: int | None
    random_state: Any

    classes_: NDArray[Any]
    features_: ChainFeatures
    inference_: Inference
    weights_: Floats
    _inputs: tuple[Input, Input | None]
    _labels: SequenceLabels

    _expanded: tuple[Floats, Any] | None = None  # weights_, and their form for the kernels

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_expanded"}

    def _expanded_weights(self) -> Any:
        """The weights as the kernels take them, made once per `weights_`."""
        if self._expanded is None or self._expanded[0] is not self.weights_:
            self._expanded = (self.weights_, self.features_.expand(self.weights_))
        return self._expanded[1]

    def _fitted_labels(self) -> SequenceLabels:
        self._check_fitted()
        return self._labels

    def _template(self) -> Template | None:
        return Template(self.template) if isinstance(self.template, str) else self.template

    def _sequences(self, X: Any, name: str = "X") -> Any:
        """What users gave, as a list of sequences or as blocks of text."""
        if self.template is None:
            return X if isinstance(X, Items) else check_sequences(X, name)
        return Columns.of(X, name)

    def _new_inputs(self, X: Sequence[Any]) -> tuple[Input, Input | None]:
        template = self._template()
        if template is not None:
            pairs = TemplateInput(template, "pairs") if len(template.pairs) else None
            return TemplateInput(template, "states"), pairs
        if self.transition_features is None:
            return input_for(X[0]), None
        longest = max(range(len(X)), key=lambda i: length_of(X[i]))
        try:
            return input_for(X[0]), input_for(self.transition_features(X[longest]))
        except ValueError as error:
            raise _of_transitions(error, [longest]) from None

    def _read(
        self, X: Sequence[Any], inputs: tuple[Input, Input | None], grow: bool
    ) -> tuple[Rows, Rows | None]:
        node, edge = inputs
        node_rows = node.read(X, grow)
        if edge is None:
            return node_rows, None
        if self.transition_features is None:
            return node_rows, edge.read(X, grow)
        lengths = np.maximum(node_rows.lengths - 1, 0)
        # A sequence of one position has no transition to observe.
        where = np.flatnonzero(lengths).tolist()
        observed = [self.transition_features(X[i]) for i in where]
        counts = np.zeros(len(X), dtype=np.int64)
        try:
            edge_rows = edge.read(observed, grow)
        except (ValueError, TypeError) as error:
            raise _of_transitions(error, where) from None
        counts[lengths > 0] = edge_rows.lengths
        wrong = np.flatnonzero(counts != lengths)
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(
                f"transition_features(X[{i}]) must have one row per transition ({lengths[i]}), "
                f"got {counts[i]}"
            )
        return node_rows, Rows(counts, edge_rows.data)


def length_of(x: Any) -> int:
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)
