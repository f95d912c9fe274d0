"""The CRF layer beside pytorch-crf and torch-struct: a training step's loss, decoding, memory.

And a training step of an encoder with the layer, beside one with softmax.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks._run import ROOT, Part, Row, Run, megabytes, seconds
from benchmarks._worker import memory

THREADS = 2
# Sequences, steps, tags; how many times pytorch-crf's speed the loss must have.
SIZES = [((64, 50, 25), 10.0), ((32, 200, 100), 8.0)]
QUICK = [((8, 10, 5), 10.0)]
DECODING, DECODING_GOAL = 8.0, 20.0
CLOSE = 1e-6  # in float64
# The encoder: sequences, steps, tags; how long a step with the layer may take, in those of softmax.
STEP, QUICK_STEP, STEP_LIMIT = (16, 128, 9), (2, 16, 9), 1.15
VOCABULARY, WIDTH, LAYERS = 1000, 256, 4


def _layer(name: str, tags: int, dtype: Any) -> Any:
    import torch

    torch.manual_seed(0)
    if name == "ours":
        from chordal.torch import CRF
    else:
        from torchcrf import CRF
    return CRF(tags, batch_first=True).to(dtype)


def _batch(shape: tuple[int, int, int], dtype: Any) -> tuple[Any, Any, Any]:
    import torch

    generator = torch.Generator().manual_seed(1)
    sequences, steps, tags = shape
    emissions = torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()
    gold = torch.randint(tags, shape[:2], generator=generator)
    return emissions, gold, torch.ones(sequences, steps, dtype=torch.bool)


def _loss(layer: Any, emissions: Any, gold: Any, mask: Any) -> Any:
    loss = -layer(emissions, gold, mask)
    loss.backward()
    return loss


def _struct_loss(layer: Any, emissions: Any, gold: Any) -> None:
    """The same of torch-struct, whose scores are tables of all steps: [B, T - 1, to, from]."""
    import torch
    from torch_struct import LinearChainCRF

    tables = layer.transitions.t() + emissions[:, 1:].unsqueeze(3)
    first = layer.start_transitions + emissions[:, 0]
    tables = torch.cat([tables[:, :1] + first[:, None, None, :], tables[:, 1:]], 1)
    chain = LinearChainCRF(tables)
    events = chain.struct.to_parts(gold, emissions.shape[2]).type_as(tables)
    (-chain.log_prob(events)).sum().backward()


def _least(measures: list[Callable[[], object]], rounds: int) -> list[float]:
    """The quickest of some rounds of each; they take turns."""
    least = [float("inf")] * len(measures)
    for measure in measures:
        measure()
    for _ in range(rounds):
        for k, measure in enumerate(measures):
            start = time.perf_counter()
            measure()
            least[k] = min(least[k], time.perf_counter() - start)
    return least


def _speed(run: Run) -> Iterator[Row]:
    import torch

    warnings.filterwarnings("ignore", module="torch")
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        for shape, required in QUICK if run.quick else SIZES:
            what = f"batch {shape[0]}, {shape[1]} steps, {shape[2]} tags"
            run.say(f"{what}: pytorch-crf and chordal")
            peer, ours = (_layer(name, shape[2], torch.float32) for name in ("peer", "ours"))
            given = _batch(shape, torch.float32)
            rounds = 2 if run.quick else 15
            losses = [partial(_loss, layer, *given) for layer in (peer, ours)]
            decoding = [partial(layer.decode, given[0], given[2]) for layer in (peer, ours)]
            yield run.speed(
                f"loss and gradient, {what} (pytorch-crf)",
                *_least(losses, rounds),
                at_least=required,
            )
            yield run.speed(
                f"decoding, {what} (pytorch-crf)",
                *_least(decoding, rounds),
                at_least=DECODING,
                goal=DECODING_GOAL,
            )
            yield from _struct(run, shape, what, ours, given)
    finally:
        torch.set_num_threads(before)


def _struct(
    run: Run, shape: tuple[int, int, int], what: str, ours: Any, given: Any
) -> Iterator[Row]:
    """torch-struct where it is installed and runs; its scan wants a cube of tags for each step."""
    try:
        import torch_struct  # noqa: F401
    except ImportError:
        return
    if shape[2] > 50:
        yield Row(f"loss and gradient, {what} (torch-struct)", problem="not measured: memory")
        return
    run.say(f"{what}: torch-struct")
    try:
        times = _least([lambda: _struct_loss(ours, *given[:2]), lambda: _loss(ours, *given)], 2)
    except Exception as error:  # it is made for an older PyTorch
        reason = str(error).partition("\n")[0]
        yield Row(f"loss and gradient, {what} (torch-struct)", problem=f"does not run: {reason}")
        return
    yield run.speed(f"loss and gradient, {what} (torch-struct)", *times)


def _agreement(run: Run) -> Iterator[Row]:
    import torch

    warnings.filterwarnings("ignore", module="torch")
    worst = [0.0, 0.0]
    for shape, _ in QUICK if run.quick else SIZES:
        run.say(f"float64, {shape}")
        found = []
        for name in ("peer", "ours"):
            layer, given = _layer(name, shape[2], torch.float64), _batch(shape, torch.float64)
            loss = _loss(layer, *given)
            found.append((loss.detach(), [given[0].grad, *(p.grad for p in layer.parameters())]))
        (their_loss, theirs), (our_loss, ours) = found
        worst[0] = max(worst[0], float(abs(our_loss - their_loss) / abs(their_loss)))
        largest = (float((a - b).abs().max()) for a, b in zip(theirs, ours, strict=True))
        worst[1] = max(worst[1], *largest)
    for what, far in zip(("loss (relative)", "gradients (largest difference)"), worst, strict=True):
        met = run.judged(far <= CLOSE)
        yield Row(f"float64, {what}", "", f"{far:.1e}", "", f"≤ {CLOSE:g} of pytorch-crf's", met)


def report_memory(name: str, *shape: int) -> None:
    """In a process of its own: the most that loss, gradient and decoding take."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(THREADS)
    sizes = (shape[0], shape[1], shape[2])
    layer = _layer(name, sizes[2], torch.float32)
    _loss(layer, *_batch((2, 2, sizes[2]), torch.float32))  # what is loaded once
    given = _batch(sizes, torch.float32)
    before, _ = memory()
    _loss(layer, *given)
    layer.decode(given[0], given[2])
    print(memory()[1] - before)


def _memory(run: Run) -> Iterator[Row]:
    for shape, _ in QUICK if run.quick else SIZES:
        found = []
        for name in ("peer", "ours"):
            run.say(f"memory, {shape}: {name}")
            code = f"from benchmarks.neural import report_memory; report_memory({name!r}, *{shape})"
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            found.append(float(done.stdout.split()[-1]))
        peer, ours = found
        yield Row(
            f"memory of loss, gradient and decoding, {shape[0]} × {shape[1]} × {shape[2]}",
            megabytes(peer),
            megabytes(ours),
            f"{ours / peer:.2f}" if peer else "",
            "≤ pytorch-crf's",
            run.judged(ours <= peer),
        )


def _training_step(crf: Any, shape: tuple[int, int, int]) -> Callable[[], object]:
    """One step of Adam on a transformer encoder; softmax where there is no layer."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    sequences, steps, tags = shape
    block = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
    encoder = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False),
        nn.Linear(WIDTH, tags),
    )
    parameters = [*encoder.parameters(), *([] if crf is None else crf.parameters())]
    optimizer = torch.optim.Adam(parameters)
    tokens = torch.randint(VOCABULARY, (sequences, steps))
    gold = torch.randint(tags, (sequences, steps))
    mask = torch.arange(steps) < torch.linspace(steps // 2, steps, sequences).long().unsqueeze(1)
    ignored = gold.masked_fill(~mask, -100)

    def step() -> None:
        optimizer.zero_grad()
        scores = encoder(tokens)
        if crf is None:
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), ignored.flatten())
        else:
            loss = -crf(scores, gold, mask, reduction="token_mean")
        loss.backward()
        optimizer.step()

    return step


def _encoder(run: Run) -> Iterator[Row]:
    import torch

    warnings.filterwarnings("ignore", module="torch")
    shape = QUICK_STEP if run.quick else STEP
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        run.say(f"a transformer of {LAYERS} layers, {WIDTH} wide, {shape}")
        layers = (None, _layer("ours", shape[2], torch.float32))
        steps = [_training_step(layer, shape) for layer in layers]
        softmax, ours = _least(steps, 2 if run.quick else 10)
    finally:
        torch.set_num_threads(before)
    yield Row(
        f"training step of an encoder, {shape[0]} × {shape[1]} × {shape[2]} (softmax)",
        seconds(softmax),
        seconds(ours),
        f"{ours / softmax:.3f}",
        f"≤ {STEP_LIMIT:g} of softmax's",
        run.judged(ours <= STEP_LIMIT * softmax),
    )


ORDER = 60
PARTS: dict[str, Part] = {
    "speed": _speed,
    "encoder": _encoder,
    "agreement": _agreement,
    "memory": _memory,
}
