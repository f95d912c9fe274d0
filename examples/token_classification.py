"""Names in sentences by a small transformer, with a softmax at each token and with a CRF.

Run it by `python examples/token_classification.py`; it needs PyTorch alone, makes its sentences
itself, and prints a table. The loop is that of Hugging Face's Trainer: a model whose `forward`
takes `input_ids`, `attention_mask` and `labels` and gives a loss and logits, a collator that pads
labels with -100, AdamW with a warm-up, and an evaluation after training. The CRF takes three lines
of the model: one to make it, one for the loss, one for the labels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from chordal.metrics import chunk_f1
from chordal.torch import CRF, allowed_transitions

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
NAMES = [f"name{k}" for k in range(20)]  # of persons and of places alike
TITLES, PLACES = ["mr", "mrs", "dr"], ["in", "near", "to"]
OTHERS = [f"word{k}" for k in range(20)]
VOCABULARY = ["[PAD]", *NAMES, *TITLES, *PLACES, *OTHERS]
NUMBER = {word: k for k, word in enumerate(VOCABULARY)}

Example = dict[str, list[int]]


class Output(NamedTuple):
    """What a model of Hugging Face gives."""

    loss: Tensor | None
    logits: Tensor


def make_sentences(n: int, seed: int) -> list[Example]:
    """Sentences with names of one to three words; the word before says of what, mostly."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        words, tags = [], []
        for _ in range(rng.integers(1, 4)):
            around = rng.choice(OTHERS, rng.integers(1, 5)).tolist()
            kind = str(rng.choice(["PER", "LOC"]))
            cue = str(rng.choice(TITLES if (kind == "PER") == (rng.random() < 0.95) else PLACES))
            name = rng.choice(NAMES, rng.integers(1, 4)).tolist()
            words += [*around, cue, *name]
            tags += ["O"] * (len(around) + 1) + [f"B-{kind}"] + [f"I-{kind}"] * (len(name) - 1)
        found.append(
            {"input_ids": [NUMBER[w] for w in words], "labels": [LABELS.index(t) for t in tags]}
        )
    return found


def collate(batch: list[Example]) -> dict[str, Tensor]:
    """Pad to the longest sentence: words with 0, labels with -100."""
    longest = max(len(example["input_ids"]) for example in batch)

    def padded(name: str, fill: int) -> Tensor:
        return torch.tensor([e[name] + [fill] * (longest - len(e[name])) for e in batch])

    ids, labels = padded("input_ids", 0), padded("labels", -100)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


class TokenClassifier(nn.Module):
    """Embeddings of words and places, a transformer encoder, and a score for each label."""

    def __init__(self, crf: bool, width: int = 32, n_layers: int = 1) -> None:
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), width, padding_idx=0)
        self.places = nn.Embedding(64, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.scores = nn.Linear(width, len(LABELS))
        self.crf: CRF | None = None
        if crf:
            allowed = allowed_transitions(LABELS)
            self.crf = CRF(len(LABELS), batch_first=True, allowed_transitions=allowed)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> Output:
        """The loss, if there are labels, and the logits."""
        places = torch.arange(input_ids.shape[1])
        hidden = self.words(input_ids) + self.places(places)
        hidden = self.encoder(hidden, src_key_padding_mask=attention_mask == 0)
        logits = self.scores(hidden)
        if labels is None:
            return Output(None, logits)
        if self.crf is not None:
            loss = -self.crf(logits, labels, attention_mask.bool(), reduction="token_mean")
        else:
            loss = nn.functional.cross_entropy(logits.transpose(1, 2), labels)
        return Output(loss, logits)

    def decode(self, logits: Tensor, attention_mask: Tensor) -> list[list[int]]:
        """The labels of each sentence."""
        if self.crf is not None:
            return self.crf.decode(logits, attention_mask.bool())
        rows = zip(logits.argmax(2).tolist(), attention_mask.sum(1).tolist(), strict=True)
        return [row[:n] for row, n in rows]


class Trainer:
    """The part of Hugging Face's Trainer that this needs, with its names."""

    def __init__(
        self,
        model: TokenClassifier,
        train_dataset: list[Example],
        eval_dataset: list[Example],
        *,
        num_train_epochs: int = 15,
        learning_rate: float = 5e-3,
        warmup_ratio: float = 0.1,
        batch_size: int = 16,
    ) -> None:
        self.model, self.eval_dataset, self.epochs = model, eval_dataset, num_train_epochs
        self.batches = DataLoader(train_dataset, batch_size, shuffle=True, collate_fn=collate)
        self.optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
        total = num_train_epochs * len(self.batches)
        warmup = max(1, round(warmup_ratio * total))
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda k: min((k + 1) / warmup, (total - k) / (total - warmup))
        )

    def train(self) -> float:
        """Learn; the mean loss of the last pass."""
        for _ in range(self.epochs):
            self.model.train()
            losses = []
            for batch in self.batches:
                loss = self.model(**batch).loss
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                losses.append(loss.item())
        return float(np.mean(losses))

    def evaluate(self) -> dict[str, float]:
        """F1 of whole names, and the share of sentences whose labels no BIO scheme allows."""
        self.model.eval()
        batch = collate(self.eval_dataset)
        with torch.no_grad():
            logits = self.model(batch["input_ids"], batch["attention_mask"]).logits
            found = self.model.decode(logits, batch["attention_mask"])
        allowed = allowed_transitions(LABELS)
        broken = [
            not allowed.start[tags[0]] or not all(map(allowed.between.__getitem__, pairwise(tags)))
            for tags in found
        ]
        named = [[LABELS[k] for k in tags] for tags in found]
        true = [[LABELS[k] for k in example["labels"]] for example in self.eval_dataset]
        return {"f1": chunk_f1(true, named), "broken": float(np.mean(broken))}


def main(n_train: int = 400, n_test: int = 300, seed: int = 0) -> dict[str, dict[str, float]]:
    """Scores with and without the CRF, of the same encoder from the same start."""
    train, test = make_sentences(n_train, seed), make_sentences(n_test, seed + 1)
    found = {}
    print(f"{'':12} {'F1':>6} {'broken sentences':>17}")
    for name, crf in (("softmax", False), ("CRF", True)):
        torch.manual_seed(seed)
        trainer = Trainer(TokenClassifier(crf), train, test)
        trainer.train()
        found[name] = trainer.evaluate()
        print(f"{name:12} {found[name]['f1']:6.3f} {found[name]['broken']:17.3f}")
    return found


if __name__ == "__main__":
    main()
