// Online learning of chains: weights change after every sequence, in place.
//
// With φ(y) the features of a labelling y of example n, y* its gold labelling and s(y) = w·φ(y):
//
//   perceptron family, ŷ = argmax_y s(y); where ŷ ≠ y*, with δ = φ(y*) − φ(ŷ), d = |{t: ŷ_t ≠ y*_t}|:
//     perceptron           w += ω δ                                           loss  ω d / T
//     passive-aggressive   w += ω τ δ,  ℓ = s(ŷ) − s(y*) + (√d or 1)          loss  ω ℓ
//                          τ = ℓ / ‖δ‖²  |  min(C, ℓ / ‖δ‖²)  |  ℓ / (‖δ‖² + 1/(2C))
//     AROW (diagonal Σ)    w += α Σ δ, α = ℓ / (r + δᵀΣδ), Σ⁻¹ += δδᵀ/r       loss  ω ℓ, ℓ with d
//                          (here δ is taken times ω)
//   gradient: chain_descent.hpp
//
// ω is the example's weight. Averages: with u = 1, 2, … counting examples and S = Σ u Δw, the mean of
// all w so far is w − S/u.
//
// Weights lie in one array of *cells*: the padded rows of wide attributes, single cells of narrow ones
// (see attributes.cpp), and the transition table. Padding holds no weight and must stay zero: bit k
// of live[c] says whether cell 4c + k may change.
//
// References: Collins (2002), Discriminative training methods for hidden Markov models; Crammer et al.
// (2006), Online passive-aggressive algorithms; Mejer and Crammer (2010), Confidence in structured-
// prediction using confidence-weighted models.
#include "chain_augmented.hpp"
#include "chain_descent.hpp"

namespace chordal {

enum class OnlineRule { perceptron, passive_aggressive, arow };

// w and `second` [cells]: the latter is S (perceptron, passive-aggressive) or the diagonal of Σ
// (AROW).
struct OnlineState {
    double* w;
    double* second;
    double steps, loss;
    double parameter[4];  // passive-aggressive: variant, C, √d; AROW: r
};

CHORDAL_BOTH_ISAS(
    Outcome visit(const OnlineChains&, OnlineRule, const std::int64_t* order, std::size_t count,
                  bool (*interrupted)(), OnlineState& state);
    Outcome visit_gradient(const OnlineChains&, const std::int64_t* order, std::size_t count,
                           bool (*interrupted)(), Descent& state);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

struct Mistake {
    double wrong, length, margin, weight;  // d, T, s(ŷ) − s(y*), ω
};

double aggressive_step(const double* parameter, double loss, double norm2) {
    if (parameter[0] == 0.0) return loss / norm2;
    if (parameter[0] == 1.0) return loss / norm2 < parameter[1] ? loss / norm2 : parameter[1];
    return loss / (norm2 + 0.5 / parameter[1]);
}

// Changes the weights and returns the loss; infinite where ‖δ‖² overflows.
double learn(OnlineRule rule, const Mistake& mistake, const Difference& delta, OnlineState& state) {
    double* w = state.w;
    double* second = state.second;
    if (rule == OnlineRule::arow) {
        const double r = state.parameter[0], omega = mistake.weight;
        const double loss = mistake.margin + mistake.wrong;
        double spread = 0.0;
        for (std::size_t j = 0; j < delta.size; ++j)
            spread += delta.value[j] * delta.value[j] * second[delta.cell[j]];
        if (!std::isfinite(spread)) return kInfinity;
        const double alpha = loss / (r + omega * omega * spread);
        for (std::size_t j = 0; j < delta.size; ++j) {
            const double change = omega * delta.value[j];
            double& variance = second[delta.cell[j]];
            w[delta.cell[j]] += alpha * variance * change;
            variance /= 1.0 + variance * change * change / r;
        }
        return omega * loss;
    }
    double tau = mistake.weight, loss = mistake.wrong / mistake.length;
    if (rule == OnlineRule::passive_aggressive) {
        loss = mistake.margin + (state.parameter[2] != 0.0 ? std::sqrt(mistake.wrong) : 1.0);
        const double norm2 = delta.norm2();
        if (!std::isfinite(norm2)) return kInfinity;
        tau *= aggressive_step(state.parameter, loss, norm2);
    }
    for (std::size_t j = 0; j < delta.size; ++j) {
        w[delta.cell[j]] += tau * delta.value[j];
        second[delta.cell[j]] += tau * state.steps * delta.value[j];
    }
    return mistake.weight * loss;
}

Outcome visit(const OnlineChains& x, OnlineRule rule, const std::int64_t* order, std::size_t count,
              bool (*interrupted)(), OnlineState& state) {
    Patience patience(interrupted);
    Augmented example(x, {nullptr, nullptr}, false);
    Difference delta(x);
    ScratchOf<std::int32_t> labelling;
    example.enter_table(state.w);
    for (std::size_t k = 0; k < count; ++k, state.steps += 1.0) {
        example.open(static_cast<std::size_t>(order[k]));
        if (k + 1 < count) example.fetch(static_cast<std::size_t>(order[k + 1]));
        example.score(state.w);
        labelling.resize(example.T + 1);
        std::int32_t* y = labelling.data();
        const double highest = example.best(y);
        if (!std::isfinite(highest)) return Outcome::range;
        std::size_t wrong = 0;
        for (std::size_t t = 0; t < example.T; ++t) wrong += y[t] != example.gold[t];
        if (wrong > 0) {
            const Mistake mistake{static_cast<double>(wrong), static_cast<double>(example.T),
                                  highest - example.score_of(example.gold), example.weight};
            delta.collect(example, y);
            state.loss += learn(rule, mistake, delta, state);
            if (!std::isfinite(state.loss)) return Outcome::range;
            for (std::size_t j = 0; j < delta.size; ++j) example.follow(state.w, delta.cell[j]);
        }
        if (patience.spent(example.T * x.labels * (x.labels + 8) + 64)) {
            state.steps += 1.0;
            return Outcome::stopped;
        }
    }
    return Outcome::done;
}

Outcome visit_gradient(const OnlineChains& x, const std::int64_t* order, std::size_t count,
                       bool (*interrupted)(), Descent& state) {
    return descend(x, order, count, interrupted, state);
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string_view>
#include <tuple>

#include "chain_online_binding.hpp"

namespace chordal {
namespace {

OnlineRule rule_of(std::string_view name) {
    if (name == "perceptron") return OnlineRule::perceptron;
    if (name == "passive_aggressive") return OnlineRule::passive_aggressive;
    if (name == "arow") return OnlineRule::arow;
    throw std::invalid_argument("unknown rule");
}

using MaybeOutput = std::optional<Output<double>>;

template <class Array>
auto pointer(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

// `run` on the arrays; what it counted is kept also when Ctrl-C ends it early.
template <class Run>
void visited(const ChainArrays& self, std::size_t cells, Run run) {
    const ChainView view(self, cells);
    const Outcome outcome = run(view.chains);
    if (outcome == Outcome::stopped) throw nb::python_error();
    if (outcome == Outcome::range) throw std::overflow_error("the weights or scores overflow");
}

// counts: steps, and the sum of losses.
void run_visit(const ChainArrays& self, std::string_view rule, Input<double> parameters,
               Input<std::int64_t> order, Output<double> w, Output<double> second,
               Output<double> counts) {
    OnlineState state{w.data(), second.data(), counts.data()[0], counts.data()[1],
                      {0.0, 0.0, 0.0, 0.0}};
    for (std::size_t k = 0; k < parameters.size() && k < 4; ++k)
        state.parameter[k] = parameters.data()[k];
    const OnlineRule kind = rule_of(rule);
    visited(self, w.size(), [&](const OnlineChains& chains) {
        nb::gil_scoped_release release;
        const Outcome outcome = CHORDAL_DISPATCH(
            visit(chains, kind, order.data(), order.size(), interrupted, state));
        counts.data()[0] = state.steps;
        counts.data()[1] = state.loss;
        return outcome;
    });
}

// counts: steps, the sum of losses, and steps averaged. Parameters: as Descent lists them.
void run_descent(const ChainArrays& self, Input<double> parameters, Input<std::int64_t> order,
                 Output<double> w, MaybeOutput velocity, MaybeOutput total, Maybe fixed, Maybe cost,
                 Input<std::int64_t> exempt, Output<double> counts) {
    const double* p = parameters.data();
    double* n = counts.data();
    Descent state{w.data(),      pointer(velocity), pointer(total), pointer(fixed), pointer(cost),
                  p[0],          p[1],              p[2],           p[3],           p[4],
                  p[5],          p[6],              p[7],           p[8] != 0.0,    p[9] != 0.0,
                  p[10] != 0.0,  n[0],              n[1],           n[2],           exempt.data(),
                  exempt.size()};
    visited(self, w.size(), [&](const OnlineChains& chains) {
        nb::gil_scoped_release release;
        const Outcome outcome = CHORDAL_DISPATCH(
            visit_gradient(chains, order.data(), order.size(), interrupted, state));
        n[0] = state.steps;
        n[1] = state.loss;
        n[2] = state.averaged;
        return outcome;
    });
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<RowArrays>(m, "OnlineRows", "Rows of sparse entries that point to cells of weights.")
        .def("__init__",
             [](RowArrays* self, Input<std::uint32_t> wide_offsets, Input<std::uint32_t> wide_codes,
                Maybe wide_values, Input<std::uint32_t> narrow_offsets,
                Input<std::uint32_t> narrow_outputs, Input<std::uint32_t> narrow_cells,
                Maybe narrow_values, std::size_t outputs, std::size_t unit, std::size_t base) {
                 new (self) RowArrays{wide_offsets, wide_codes,  narrow_offsets, narrow_outputs,
                                      narrow_cells, wide_values, narrow_values,  outputs,
                                      unit,         base};
             },
             nb::arg("wide_offsets"), nb::arg("wide_codes"), nb::arg("wide_values").none(),
             nb::arg("narrow_offsets"), nb::arg("narrow_outputs"), nb::arg("narrow_cells"),
             nb::arg("narrow_values").none(), nb::arg("outputs"), nb::arg("unit"), nb::arg("base"));
    nb::class_<ChainArrays>(m, "OnlineChains", "Labelled sequences that are learned one by one.")
        .def("__init__",
             [](ChainArrays* self, Input<std::int64_t> node_offsets,
                Input<std::int64_t> edge_offsets, Input<std::int32_t> gold, Maybe weight,
                Input<std::uint8_t> live, const RowArrays& node, const RowArrays* edge,
                std::size_t table, std::size_t labels) {
                 new (self) ChainArrays{
                     node_offsets, edge_offsets, gold, weight, live, node,
                     edge ? std::optional<RowArrays>(*edge) : std::nullopt, table, labels};
             },
             nb::arg("node_offsets"), nb::arg("edge_offsets"), nb::arg("gold"),
             nb::arg("weight").none(), nb::arg("live"), nb::arg("node"), nb::arg("edge").none(),
             nb::arg("table"), nb::arg("labels"))
        .def("visit", &run_visit, nb::arg("rule"), nb::arg("parameters"), nb::arg("order"),
             nb::arg("w"), nb::arg("second"), nb::arg("counts"))
        .def("descend", &run_descent, nb::arg("parameters"), nb::arg("order"), nb::arg("w"),
             nb::arg("velocity").none(), nb::arg("total").none(), nb::arg("fixed").none(),
             nb::arg("cost").none(), nb::arg("exempt"), nb::arg("counts"));
});

}  // namespace chordal
#endif
