"""The trainer that `CRF` uses: one line per iteration."""

from __future__ import annotations

from typing import Any

from chordal.compat import pycrfsuite


class LinePerIterationTrainer(pycrfsuite.Trainer):
    """Prints one line per iteration, and the scores by label at the end."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """An iteration is done."""
        parts = [f"Iter {info['num']:<3} ", f"time={info['time']:<5.2f} "]
        parts.append(f"loss={info['loss']:<8.2f} ")
        if "active_features" in info:
            parts.append(f"active={info['active_features']:<5} ")
        if "avg_precision" in info:
            parts.append(
                f"precision={info['avg_precision']:.3f}  recall={info['avg_recall']:.3f}  "
                f"F1={info['avg_f1']:.3f}  Acc(item/seq)={info['item_accuracy_float']:.3f} "
                f"{info['instance_accuracy_float']:.3f}  "
            )
        if "feature_norm" in info:
            parts.append(f"feature_norm={info['feature_norm']:<8.2f}")
        print("".join(parts).strip())

    def on_optimization_end(self, log: str) -> None:
        """Training has ended."""
        last = self.logparser.last_iteration if self.logparser else None
        if last and last["scores"]:
            print(_table(last["scores"]))
        super().on_optimization_end(log)


def _table(scores: dict[str, Any]) -> str:
    """Precision, recall, F1 and support by label."""
    width = max(5, *(len(label) for label in scores))
    head = f"{'Label':<{width}}    Precision    Recall     F1    Support"
    rule = "=" * len(head)
    rows = [rule, head, "-" * len(head)]
    for label, score in sorted(scores.items()):
        shown = [0.0 if s is None else s for s in (score.precision, score.recall, score.f1)]
        numbers = "{:9.3f}    {:6.3f}  {:5.3f}".format(*shown)
        rows.append(f"{label:<{width}}    {numbers}  {score.ref:9d}")
    return "\n".join([*rows, "-" * len(head)])
