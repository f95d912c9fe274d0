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
//   gradient of the likelihood at step t, η = η₀ / (1 + λ η₀ t):
//     w = (1 − ηλ) w − η ω (E_y φ(y) − φ(y*))                                 loss  ω (log Z − s(y*))
//
// ω is the example's weight. Averages: with u = 1, 2, … counting examples and S = Σ u Δw, the mean of
// all w so far is w − S/u. The decay 1 − ηλ is kept as one factor of all weights and applied at
// the end, so that a step costs what its example costs.
//
// Weights lie in one array of *cells*: the padded rows of wide attributes, single cells of narrow ones
// (see attributes.cpp), and the transition table. Padding holds no weight and must stay zero: bit k
// of live[c] says whether cell 4c + k may change.
//
// References: Collins (2002), Discriminative training methods for hidden Markov models; Crammer et al.
// (2006), Online passive-aggressive algorithms; Mejer and Crammer (2010), Confidence in structured-
// prediction using confidence-weighted models; Shalev-Shwartz et al. (2007), Pegasos.
#include "chain_online.hpp"

namespace chordal {

enum class OnlineRule { perceptron, passive_aggressive, arow, gradient };

// w and `second` [cells]: the latter is S (perceptron, passive-aggressive), the diagonal of Σ
// (AROW), or scores of weights that do not change (gradient; may be null).
struct OnlineState {
    double* w;
    double* second;
    double steps, loss;
    double parameter[4];  // passive-aggressive: variant, C, √d; AROW: r; gradient: λ, η₀
};

// The files chain_max.cpp and chain_sum.cpp define what is only called here.
CHORDAL_BOTH_ISAS(
    Outcome best_labelling(const ChainBatch&, bool (*interrupted)(), double* score,
                           std::int32_t* labels);
    Outcome marginals(const ChainBatch&, Domain, bool (*interrupted)(), const double* weight,
                      double* log_partition, double* unary, double* tables);
    Outcome visit(const OnlineChains&, OnlineRule, const std::int64_t* order, std::size_t count,
                  bool (*interrupted)(), OnlineState& state);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// δ = φ(y*) − φ(ŷ): a sum per cell, and the cells that it touches.
class Difference {
public:
    explicit Difference(const OnlineChains& x) : x_(x), sums_(x.cells + 1) {
        std::memset(sums_.data(), 0, x.cells * sizeof(double));
    }
    void collect(const Example& example, const std::int32_t* y) {
        const std::int32_t* gold = example.gold;
        size = 0;
        reserve(example);
        for (std::size_t t = 0; t < example.T; ++t) {
            const bool same = gold[t] == y[t];
            if (!same) {
                add_row(*x_.node, example.first_row + t, static_cast<std::size_t>(gold[t]), 1.0);
                add_row(*x_.node, example.first_row + t, static_cast<std::size_t>(y[t]), -1.0);
            }
            if (t == 0 || (same && gold[t - 1] == y[t - 1])) continue;
            add_transition(example, t, example.pair(gold, t), 1.0);
            add_transition(example, t, example.pair(y, t), -1.0);
        }
        // A cell met twice is taken at its first place, with its sum; what cancels is dropped.
        std::size_t kept = 0;
        for (std::size_t j = 0; j < size; ++j) {
            const std::uint32_t c = cell[j];
            if (sums_[c] == 0.0) continue;
            cell[kept] = c;
            value[kept++] = sums_[c];
            sums_[c] = 0.0;
        }
        size = kept;
    }
    double norm2() const {
        double sum = 0.0;
        for (std::size_t j = 0; j < size; ++j) sum += value[j] * value[j];
        return sum;
    }

    ScratchOf<std::uint32_t> cell;
    Scratch value;
    std::size_t size = 0;

private:
    static std::size_t entries(const OnlineRows& rows, std::size_t first, std::size_t count) {
        return rows.wide_offsets[first + count] - rows.wide_offsets[first] +
               rows.narrow_offsets[first + count] - rows.narrow_offsets[first];
    }
    void reserve(const Example& example) {
        std::size_t most = entries(*x_.node, example.first_row, example.T) + example.T;
        if (x_.edge && example.n_tables)
            most += entries(*x_.edge, example.first_edge, example.T - 1);
        cell.resize(2 * most);
        value.resize(2 * most);
    }
    CHORDAL_INLINE void add(std::size_t c, double x) {
        if (sums_[c] == 0.0) cell[size++] = static_cast<std::uint32_t>(c);
        sums_[c] += x;
    }
    void add_row(const OnlineRows& rows, std::size_t r, std::size_t output, double sign) {
        for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e) {
            const std::uint32_t code = rows.wide_codes[e];
            if (output >= (code & 31) * rows.unit) continue;
            const std::size_t c = rows.base + (code >> 5) * rows.unit + output;
            if (is_live(x_, c)) add(c, sign * (rows.wide_values ? rows.wide_values[e] : 1.0));
        }
        for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e)
            if (rows.narrow_outputs[e] == output)
                add(rows.narrow_cells[e], sign * (rows.narrow_values ? rows.narrow_values[e] : 1.0));
    }
    void add_transition(const Example& example, std::size_t t, std::size_t pair, double sign) {
        if (x_.edge)
            add_row(*x_.edge, example.first_edge + t - 1, pair, sign);
        else if (is_live(x_, x_.table + pair))
            add(x_.table + pair, sign);
    }

    const OnlineChains& x_;
    Scratch sums_;
};

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

Outcome visit_best(const OnlineChains& x, OnlineRule rule, Order order, std::size_t count,
                   bool (*interrupted)(), OnlineState& state) {
    Patience patience(interrupted);
    Example example(x);
    Difference delta(x);
    ScratchOf<std::int32_t> labelling;
    for (std::size_t k = 0; k < count; ++k, state.steps += 1.0) {
        example.open(static_cast<std::size_t>(order[k]));
        if (k + 1 < count) example.prefetch(static_cast<std::size_t>(order[k + 1]));
        example.score(state.w, 1.0, nullptr);
        labelling.resize(example.T + 1);
        std::int32_t* y = labelling.data();
        double highest = 0.0;
        const Outcome outcome = best_labelling(example.batch(), interrupted, &highest, y);
        if (outcome != Outcome::done) return outcome;
        if (!std::isfinite(highest)) return Outcome::range;
        std::size_t wrong = 0;
        for (std::size_t t = 0; t < example.T; ++t) wrong += y[t] != example.gold[t];
        if (wrong > 0) {
            const Mistake mistake{static_cast<double>(wrong), static_cast<double>(example.T),
                                  highest - example.score_of(example.gold), example.weight};
            delta.collect(example, y);
            state.loss += learn(rule, mistake, delta, state);
            if (!std::isfinite(state.loss)) return Outcome::range;
        }
        if (patience.spent(example.T * x.labels * (x.labels + 8) + 64)) {
            state.steps += 1.0;
            return Outcome::stopped;
        }
    }
    return Outcome::done;
}

// w += scale * parts, row by row, on live cells.
class MaskedAdjoint {
public:
    explicit MaskedAdjoint(const OnlineChains& x) : x_(x) {
        for (std::size_t bits = 0; bits < 16; ++bits)
            for (std::size_t k = 0; k < 4; ++k) mask_[bits * 4 + k] = bits >> k & 1 ? 1.0 : 0.0;
    }
    void rows(const OnlineRows& rows, std::size_t first, std::size_t count, const double* parts,
              double scale, double* w) {
        const std::size_t n = rows.outputs, width = (n + rows.unit - 1) / rows.unit * rows.unit;
        padded_.resize(width);
        std::memset(padded_.data(), 0, width * sizeof(double));
        for (std::size_t r = first; r < first + count; ++r, parts += n) {
            std::memcpy(padded_.data(), parts, n * sizeof(double));
            for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e) {
                const std::uint32_t code = rows.wide_codes[e];
                const double value = rows.wide_values ? rows.wide_values[e] : 1.0;
                cells(rows.base + (code >> 5) * rows.unit, (code & 31) * rows.unit, padded_.data(),
                      scale * value, w);
            }
            for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e) {
                const double value = rows.narrow_values ? rows.narrow_values[e] : 1.0;
                w[rows.narrow_cells[e]] += scale * value * parts[rows.narrow_outputs[e]];
            }
        }
    }
    // Cells c .. c + size, c and size multiples of four.
    void cells(std::size_t c, std::size_t size, const double* parts, double scale, double* w) const {
        const Pack a = broadcast(scale);
        for (std::size_t k = 0; k < size; k += 4) {
            const double* mask = mask_ + x_.live[(c + k) / 4] * 4;
            CHORDAL_UNROLL
            for (std::size_t i = 0; i < 4; i += kLanes) {
                double* to = w + c + k + i;
                store(to, a * load(parts + k + i) * load(mask + i) + load(to));
            }
        }
    }

private:
    const OnlineChains& x_;
    Scratch padded_;
    double mask_[64];
};

void scale_all(double* w, std::size_t cells, double& decay) {
    for (std::size_t c = 0; c < cells; ++c) w[c] *= decay;
    decay = 1.0;
}

Outcome visit_gradient(const OnlineChains& x, Order order, std::size_t count,
                       bool (*interrupted)(), OnlineState& state) {
    const double lambda = state.parameter[0], eta0 = state.parameter[1];
    const std::size_t K = x.labels;
    Patience patience(interrupted);
    Example example(x);
    MaskedAdjoint adjoint(x);
    Scratch unary, tables;
    double decay = 1.0;
    Outcome outcome = Outcome::done;
    for (std::size_t k = 0; k < count && outcome == Outcome::done; ++k, state.steps += 1.0) {
        const double eta = eta0 / (1.0 + lambda * eta0 * state.steps);
        decay *= 1.0 - eta * lambda;
        if (std::fabs(decay) < 1e-9) scale_all(state.w, x.cells, decay);
        example.open(static_cast<std::size_t>(order[k]));
        if (k + 1 < count) example.prefetch(static_cast<std::size_t>(order[k + 1]));
        example.score(state.w, decay, state.second);
        const std::size_t T = example.T, table_cells = example.n_tables * K * K;
        unary.resize(T * K + 1);
        tables.resize(table_cells + 4);
        std::memset(tables.data(), 0, (table_cells + 4) * sizeof(double));
        double log_partition = 0.0;
        outcome = marginals(example.batch(), Domain::automatic, interrupted, nullptr,
                            &log_partition, unary.data(), tables.data());
        if (outcome != Outcome::done) break;
        state.loss += example.weight * (log_partition - example.score_of(example.gold));
        if (!std::isfinite(state.loss)) outcome = Outcome::range;
        for (std::size_t t = 0; t < T; ++t) {
            unary[t * K + static_cast<std::size_t>(example.gold[t])] -= 1.0;
            if (t > 0) tables[(x.edge ? (t - 1) * K * K : 0) + example.pair(example.gold, t)] -= 1.0;
        }
        const double scale = -eta * example.weight / decay;
        adjoint.rows(*x.node, example.first_row, T, unary.data(), scale, state.w);
        if (x.edge && example.n_tables)
            adjoint.rows(*x.edge, example.first_edge, T - 1, tables.data(), scale, state.w);
        else if (example.n_tables)
            adjoint.cells(x.table, padded(K * K), tables.data(), scale, state.w);
        if (outcome == Outcome::done && patience.spent(T * K * (4 * K + 8) + 64))
            outcome = Outcome::stopped;
    }
    scale_all(state.w, x.cells, decay);
    return outcome;
}

Outcome visit(const OnlineChains& x, OnlineRule rule, const std::int64_t* order, std::size_t count,
              bool (*interrupted)(), OnlineState& state) {
    return rule == OnlineRule::gradient
               ? visit_gradient(x, order, count, interrupted, state)
               : visit_best(x, rule, order, count, interrupted, state);
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
    if (name == "gradient") return OnlineRule::gradient;
    throw std::invalid_argument("unknown rule");
}

// Steps and losses are counted in `counts` (two numbers), also when Ctrl-C ends the visit early.
void run_visit(const ChainArrays& self, std::string_view rule, Input<double> parameters,
               Input<std::int64_t> order, Output<double> w, std::optional<Output<double>> second,
               Output<double> counts) {
    const ChainView view(self, w.size());
    OnlineState state{w.data(),         second ? second->data() : nullptr,
                      counts.data()[0], counts.data()[1],
                      {0.0, 0.0, 0.0, 0.0}};
    for (std::size_t k = 0; k < parameters.size() && k < 4; ++k)
        state.parameter[k] = parameters.data()[k];
    const OnlineRule kind = rule_of(rule);
    Outcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = CHORDAL_DISPATCH(
            visit(view.chains, kind, order.data(), order.size(), interrupted, state));
    }
    counts.data()[0] = state.steps;
    counts.data()[1] = state.loss;
    if (outcome == Outcome::stopped) throw nb::python_error();
    if (outcome == Outcome::range) throw std::overflow_error("the weights or scores overflow");
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
             nb::arg("w"), nb::arg("second").none(), nb::arg("counts"));
});

}  // namespace chordal
#endif
