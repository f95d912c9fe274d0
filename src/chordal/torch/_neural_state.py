"""What a fitted `NeuralCRF` is made of, as facts that JSON can hold and arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from chordal.estimators import (
    MAX_WEIGHT,
    BaseCRF,
    ChainCRF,
    FitReport,
)
from chordal.estimators.linked import check_scores_in, link_places
from chordal.potentials import Floats
from chordal.torch._drawing import Stream
from chordal.torch._forms import Form, ImageForm, form_for
from chordal.torch._heads import ChainNetwork, LinkedNetwork, Potentials, is_plain
from chordal.torch._inputs import Inputs
from chordal.torch._networks import network_of
from chordal.torch._training import copied, flat, unflat_state

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def to_state(model: NeuralCRF) -> tuple[Facts, Arrays]:
    """The network's weights, the CRF that answers, and the state of training, if it is to
    resume.
    """
    of_crf, arrays = model.crf_.to_state()
    inputs = model._form.inputs.to_facts()
    tokens = json.dumps(inputs.pop("tokens")).encode()  # there may be a million
    facts: Facts = {
        "inputs": inputs,
        "crf": of_crf,
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "reports": [report.to_facts() for report in model.reports_],
    }
    own: Arrays = {
        "weights": flat(model.module_.network),
        "tokens": np.frombuffer(tokens, dtype=np.uint8),
    }
    own |= {f"crf.{name}": array for name, array in arrays.items()}
    if model._saved[0]:
        facts["training"], more = model._saved
        own |= {f"training.{name}": array for name, array in more.items()}
    return facts, own


def set_state(
    model: NeuralCRF, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Give a model, which has its parameters, what was learned; refuses what does not fit."""
    crf = model._given_crf()
    form = form_for(crf)(crf, _inputs(facts["inputs"], arrays))
    if isinstance(form, ImageForm) and len(form.inputs.shape) != 1:
        raise ValueError(f"the shape of inputs must be 1 size for images, got {form.inputs.shape}")
    model._form = form
    model.crf_ = _crf(form).from_state(facts["crf"], _named(arrays, "crf."))
    model.crf_.inference_ = model.inference_
    compares = isinstance(form, ImageForm) and form.compares
    check_scores_in(model.crf_, form.inputs.shape[0] if compares else 0)
    model.classes_ = model.crf_.classes_
    weights = np.asarray(arrays["weights"], dtype=np.float64)
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise ValueError(f"weights must be numbers of magnitude up to {MAX_WEIGHT:g}")
    with Stream(0, model.network, model.dropout).drawing():  # numbers that are replaced
        model.module_ = _potentials(model, weights)
    model.reports_ = [FitReport.from_facts(report) for report in facts["reports"]]
    if model.reports_:
        model.fit_report_ = model.reports_[-1]
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    model.module_.eval()
    if "training" in facts:
        model._saved = facts["training"], _named(arrays, "training.")


def _inputs(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Inputs:
    """The inputs of a file; older files have their tokens among the facts."""
    if "tokens" not in arrays:
        return Inputs.from_facts(facts)
    try:
        tokens = json.loads(arrays["tokens"].tobytes())
    except RecursionError:
        raise ValueError("the vocabulary must be a list of strings or whole numbers") from None
    return Inputs.from_facts({**facts, "tokens": tokens})


def _named(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _crf(form: Form) -> BaseCRF:
    """The CRF of scores, with its parameters."""
    crf = form.reads
    if isinstance(crf, ChainCRF) and is_plain(crf):
        crf.set_params(pairs="all", warm_start=True)
    return crf


def _potentials(model: NeuralCRF, weights: Floats) -> Potentials:
    """The module with these weights of its network and the links of the CRF."""
    network, crf = _network(model, weights), model.crf_
    if not is_plain(model._form.crf):
        return LinkedNetwork(network, crf.weights_[link_places(crf)]).to(model.device)
    chain = ChainNetwork(network, len(crf.labels_)).to(model.device)
    chain.take(crf)
    return chain


def _network(model: NeuralCRF, weights: Floats) -> nn.Module:
    """The network with these weights, if they are as many as it has."""
    named = isinstance(model.network, str)
    n_labels = len(model.crf_.labels_)
    try:
        # The sizes are a file's: on this device they take no memory.
        device = torch.device("meta") if named else nullcontext()
        with device:
            network = network_of(model.network, model._form, n_labels, model._sizes())
    except RuntimeError as error:
        raise ValueError(f"the network cannot be made: {error}") from None
    n = sum(tensor.numel() for tensor in network.state_dict().values())
    if n != len(weights):
        raise ValueError(f"the network has {n} weights, but the file {len(weights)}")
    network = network.to_empty(device="cpu") if named else network
    network.load_state_dict(unflat_state(copied(network), weights))
    return network.to(model.device)
