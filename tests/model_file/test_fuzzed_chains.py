"""Chain models with anything changed: refused, or sound in all their answers."""

import copy

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chordal.model_file import ModelFileError, load

from .chain_parts import KINDS, Parts

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.sampled_from(["", "x", "A", "template", "dense", "pairs", "<U3", "lbfgs", "U:%x[0,0]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)


def places(facts, prefix=()):
    yield prefix
    items = facts.items() if isinstance(facts, dict) else enumerate(facts)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from places(value, (*prefix, key))
        else:
            yield (*prefix, key)


FUZZED = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def refused_or_answers(parts, X, path):
    """Loads a file: an error that says why, or a model all of whose answers are sound."""
    path.write_bytes(parts.bytes())
    try:
        model = load(path)
    except ModelFileError:
        return
    model.predict(X)
    for marginals in model.predict_marginals(X):
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=0, atol=1e-6)
    model.top_features(), model.coef_, repr(model), str(getattr(model, "fit_report_", ""))


@FUZZED
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_changed_facts(data, kind, chain_files, tmp_path):
    parts = Parts(chain_files[kind])
    for _ in range(data.draw(st.integers(1, 2))):
        facts = copy.deepcopy(parts.facts)
        place = data.draw(st.sampled_from([p for p in places(facts) if p]))
        at = facts
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = data.draw(values)
        parts.facts = facts
    refused_or_answers(parts, KINDS[kind], tmp_path / "fuzzed")


@FUZZED
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_changed_arrays(data, kind, chain_files, tmp_path):
    """Under a sanitizer this also shows that no index leads outside."""
    parts = Parts(chain_files[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(parts.arrays)))
        raw = parts.arrays[name].view(np.uint8)
        if len(raw):
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at] = data.draw(st.integers(0, 255))
    refused_or_answers(parts, KINDS[kind], tmp_path / "fuzzed")
