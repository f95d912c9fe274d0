"""Decoding and marginals in onnxruntime, equal to the layer's on ragged batches of any size."""

import warnings

import numpy as np
import pytest
import torch

from chordal.torch import CRF, Decoder, Marginals, allowed_transitions

pytest.importorskip("onnxscript", reason="onnxscript is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def layer(constrained, batch_first=True):
    allowed = allowed_transitions(TAGS) if constrained else None
    torch.manual_seed(0)
    crf = CRF(5, batch_first, any_mask=True, allowed_transitions=allowed)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def session_of(model, path):
    dynamic = torch.export.Dim.DYNAMIC
    shapes = {name: {0: dynamic, 1: dynamic} for name in ("emissions", "mask")}
    example = (torch.randn(3, 4, 5), torch.ones(3, 4, dtype=torch.bool))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own
        program = torch.onnx.export(
            model,
            example,
            dynamo=True,
            verbose=False,
            input_names=["emissions", "mask"],
            dynamic_shapes=shapes,
        )
    program.save(path)
    return onnxruntime.InferenceSession(path)


@pytest.mark.parametrize("constrained", [False, True], ids=["free", "bio"])
@pytest.mark.parametrize("what", [Decoder, Marginals])
def test_a_thousand_ragged_batches(tmp_path, what, constrained):
    model = what(layer(constrained))
    session = session_of(model, str(tmp_path / "model.onnx"))
    random = np.random.default_rng(0)
    for _ in range(1000):
        sequences, steps = random.integers(1, 9, 2)
        emissions = 2 * random.normal(size=(sequences, steps, 5)).astype(np.float32)
        mask = random.random((sequences, steps)) < 0.7
        (found,) = session.run(None, {"emissions": emissions, "mask": mask})
        with torch.no_grad():
            eager = model(torch.from_numpy(emissions), torch.from_numpy(mask)).numpy()
        if what is Decoder:
            np.testing.assert_array_equal(found, eager)
        else:
            np.testing.assert_allclose(found, eager, rtol=1e-4, atol=2e-5)


def test_steps_first(tmp_path):
    model = Decoder(layer(False, batch_first=False))
    session = session_of(model, str(tmp_path / "model.onnx"))
    emissions = torch.randn(7, 2, 5)
    mask = torch.ones(7, 2, dtype=torch.bool)
    (found,) = session.run(None, {"emissions": emissions.numpy(), "mask": mask.numpy()})
    np.testing.assert_array_equal(found, model(emissions, mask).numpy())
