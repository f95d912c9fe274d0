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
#include <variant>

#include "chain_augmented.hpp"
#include "chain_descent.hpp"

namespace chordal {

struct Perceptron {};
struct PassiveAggressive {
    enum class Variant { hard, linear, squared } variant;
    double aggressiveness;  // C
    bool error_sensitive;   // √d, or else 1
};
struct Arow {
    double regularization;  // r
};
using MistakeRule = std::variant<Perceptron, PassiveAggressive, Arow>;

// w and `second` [cells]: the latter is S (perceptron, passive-aggressive) or the diagonal of Σ
// (AROW).
struct OnlineState {
    double* w;
    double* second;
    double steps, loss;
};

CHORDAL_BOTH_ISAS(
    Outcome visit(const OnlineChains&, const MistakeRule&, const std::int64_t* order,
                  std::size_t count, bool (*interrupted)(), OnlineState& state);
    Outcome visit_gradient(const OnlineChains&, const std::int64_t* order, std::size_t count,
                           bool (*interrupted)(), Descent& state);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

struct Mistake {
    double wrong, length, margin, weight;  // d, T, s(ŷ) − s(y*), ω
};

// w += τ δ, and what the mean over time takes of it.
void add(const Difference& delta, double tau, OnlineState& state) {
    double* w = state.w;
    double* second = state.second;
    const double later = tau * state.steps;
    for (std::size_t j = 0; j < delta.size; ++j) {
        w[delta.cell[j]] += tau * delta.value[j];
        second[delta.cell[j]] += later * delta.value[j];
    }
}

// Each changes the weights and returns the loss; infinite where ‖δ‖² overflows.

double learn(const Perceptron&, const Mistake& mistake, const Difference& delta,
             OnlineState& state) {
    add(delta, mistake.weight, state);
    return mistake.weight * (mistake.wrong / mistake.length);
}

double learn(const PassiveAggressive& rule, const Mistake& mistake, const Difference& delta,
             OnlineState& state) {
    const double loss = mistake.margin + (rule.error_sensitive ? std::sqrt(mistake.wrong) : 1.0);
    const double norm2 = delta.norm2(), C = rule.aggressiveness;
    if (!std::isfinite(norm2)) return kInfinity;
    double tau = loss / norm2;
    if (rule.variant == PassiveAggressive::Variant::linear)
        tau = tau < C ? tau : C;
    else if (rule.variant == PassiveAggressive::Variant::squared)
        tau = loss / (norm2 + 0.5 / C);
    add(delta, mistake.weight * tau, state);
    return mistake.weight * loss;
}

double learn(const Arow& rule, const Mistake& mistake, const Difference& delta,
             OnlineState& state) {
    const double r = rule.regularization, omega = mistake.weight;
    const double loss = mistake.margin + mistake.wrong;
    double spread = 0.0;
    for (std::size_t j = 0; j < delta.size; ++j)
        spread += delta.value[j] * delta.value[j] * state.second[delta.cell[j]];
    if (!std::isfinite(spread)) return kInfinity;
    const double alpha = loss / (r + omega * omega * spread);
    for (std::size_t j = 0; j < delta.size; ++j) {
        const double change = omega * delta.value[j];
        double& variance = state.second[delta.cell[j]];
        state.w[delta.cell[j]] += alpha * variance * change;
        variance /= 1.0 + variance * change * change / r;
    }
    return omega * loss;
}

Outcome visit(const OnlineChains& x, const MistakeRule& rule, const std::int64_t* order,
              std::size_t count, bool (*interrupted)(), OnlineState& state) {
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
            state.loss += std::visit(
                [&](const auto& own) { return learn(own, mistake, delta, state); }, rule);
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

#include <string_view>
#include <tuple>

#include "chain_online_binding.hpp"

namespace chordal {
namespace {

PassiveAggressive::Variant variant_of(std::string_view name) {
    if (name == "hard") return PassiveAggressive::Variant::hard;
    if (name == "linear") return PassiveAggressive::Variant::linear;
    if (name == "squared") return PassiveAggressive::Variant::squared;
    throw std::invalid_argument("unknown variant");
}

using MaybeOutput = std::optional<Output<double>>;
constexpr const char* kMisfit = "arrays do not fit the chains";

// counts: steps, and the sum of losses; kept also when Ctrl-C ends the loop early.
template <class Rule>
void run_visit(const ChainArrays& self, const Rule& rule, Input<std::int64_t> order,
               Output<double> w, Output<double> memory, Output<double> counts) {
    require(w.size() == self.cells() && memory.size() == w.size() && counts.size() == 2, kMisfit);
    OnlineState state{w.data(), memory.data(), counts.data()[0], counts.data()[1]};
    const MistakeRule any(rule);
    const ChainView view(self);
    Outcome outcome;
    {
        GilReleased release;
        outcome = CHORDAL_DISPATCH(
            visit(view.chains, any, order.data(), order.size(), interrupted, state));
    }
    counts.data()[0] = state.steps;
    counts.data()[1] = state.loss;
    raise_outcome(outcome);
}

struct Gradient {
    double decay, inverse_rate, growth, power, first, momentum, radius, average_after;
    bool look_ahead;
};

struct ChainLoss {
    bool soft;  // log Σ exp, or else max
    Maybe cost;
    bool normalised;
};

// counts: steps, the sum of losses, and steps averaged.
struct DescentArrays {
    Output<double> w;
    MaybeOutput velocity, total;
    Maybe fixed;
    Input<std::int64_t> exempt;
    Output<double> counts;
};

void run_descent(const ChainArrays& self, const Gradient& rule, const ChainLoss& loss,
                 Input<std::int64_t> order, const DescentArrays& arrays) {
    const std::size_t cells = self.cells();
    require(arrays.w.size() == cells && fits(arrays.velocity, cells) && fits(arrays.total, cells) &&
                fits(arrays.fixed, cells) && arrays.counts.size() == 3 &&
                fits(loss.cost, self.labels * self.labels),
            kMisfit);
    double* n = arrays.counts.data();
    Descent state{arrays.w.data(),
                  pointer(arrays.velocity),
                  pointer(arrays.total),
                  pointer(arrays.fixed),
                  pointer(loss.cost),
                  rule.decay,
                  rule.inverse_rate,
                  rule.growth,
                  rule.power,
                  rule.first,
                  rule.momentum,
                  rule.radius,
                  rule.average_after,
                  rule.look_ahead,
                  loss.soft,
                  loss.normalised,
                  n[0],
                  n[1],
                  n[2],
                  arrays.exempt.data(),
                  arrays.exempt.size()};
    const ChainView view(self);
    Outcome outcome;
    {
        GilReleased release;
        outcome = CHORDAL_DISPATCH(
            visit_gradient(view.chains, order.data(), order.size(), interrupted, state));
    }
    n[0] = state.steps;
    n[1] = state.loss;
    n[2] = state.averaged;
    raise_outcome(outcome);
}

// The n-th example, whose scores have these sizes.
void open(isa_baseline::Example& example, const ChainArrays& self, std::size_t n, std::size_t w,
          std::size_t unary, std::size_t tables) {
    require(n < self.examples() && w == self.cells(), kMisfit);
    example.open(n);
    const std::size_t K = self.labels;
    require(unary == example.T * K && tables == example.n_tables * K * K, kMisfit);
}

// The scores of one example.
void run_scores(const ChainArrays& self, std::size_t n, Input<double> w, Output<double> unary,
                Output<double> tables) {
    const ChainView view(self);
    isa_baseline::Example example(view.chains);
    open(example, self, n, w.size(), unary.size(), tables.size());
    example.score(w.data(), 1.0, nullptr);
    const ChainBatch batch = example.batch();
    std::memcpy(unary.data(), batch.unary, unary.size() * sizeof(double));
    std::memcpy(tables.data(), batch.tables, tables.size() * sizeof(double));
}

// w += the adjoint of one example's parts.
void run_adjoint(const ChainArrays& self, std::size_t n, Input<double> unary, Input<double> tables,
                 Output<double> w) {
    const ChainView view(self);
    const OnlineChains& x = view.chains;
    isa_baseline::Example example(x);
    open(example, self, n, w.size(), unary.size(), tables.size());
    Descent state{};
    state.z = w.data();
    state.radius = isa_baseline::kInfinity;
    isa_baseline::LazyWeights lazy(state, w.size());
    isa_baseline::Kick kick(x, state, lazy);
    kick.aim(-1.0);
    kick.rows(*x.node, example.first_row, example.T, unary.data());
    if (example.n_tables == 0) return;
    if (x.edge) {
        kick.rows(*x.edge, example.first_edge, example.T - 1, tables.data());
    } else {
        std::vector<double> whole(isa_baseline::padded(tables.size()) + 4, 0.0);
        std::memcpy(whole.data(), tables.data(), tables.size() * sizeof(double));
        kick.cells(x.table, isa_baseline::padded(tables.size()), whole.data(), 1.0);
    }
}

void make_wide(WideArrays* self, Input<std::uint32_t> offsets, Input<std::uint32_t> codes,
               Maybe values) {
    require(ends_at(offsets, codes.size()) && fits(values, codes.size()),
            "entries do not fit their offsets");
    new (self) WideArrays{offsets, codes, values};
}

void make_narrow(NarrowArrays* self, Input<std::uint32_t> offsets, Input<std::uint32_t> outputs,
                 Input<std::uint32_t> cells, Maybe values) {
    require(ends_at(offsets, cells.size()) && outputs.size() == cells.size() &&
                fits(values, cells.size()),
            "entries do not fit their offsets");
    new (self) NarrowArrays{offsets, outputs, cells, values};
}

void make_rows(RowArrays* self, const WideArrays& wide, const NarrowArrays& narrow,
               std::size_t outputs, std::size_t unit, std::size_t base) {
    require(wide.offsets.size() == narrow.offsets.size() && unit, "entries do not fit together");
    new (self) RowArrays{wide, narrow, outputs, unit, base};
}

void make_chains(ChainArrays* self, Input<std::int64_t> offsets, Input<std::int32_t> gold,
                 Maybe weight, Input<std::uint8_t> live, const RowArrays& node,
                 const RowArrays* edge, std::size_t table, std::size_t labels) {
    require(ends_at(offsets, gold.size()) && labels && fits(weight, offsets.size() - 1) &&
                node.rows() == gold.size() && node.outputs == labels,
            kMisfit);
    std::vector<std::int64_t> edges{0};
    for (std::size_t n = 0; n + 1 < offsets.size(); ++n) {
        const std::int64_t length = offsets.data()[n + 1] - offsets.data()[n];
        edges.push_back(edges.back() + (length > 1 ? length - 1 : 0));
    }
    const std::size_t pairs = labels * labels;
    require(edge ? edge->rows() == static_cast<std::size_t>(edges.back()) && edge->outputs == pairs
                 : table + pairs <= 4 * live.size(),
            kMisfit);
    new (self) ChainArrays{
        offsets, std::move(edges), gold, weight, live, node,
        edge ? std::optional<RowArrays>(*edge) : std::nullopt, table, labels};
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<Perceptron>(m, "Perceptron", "w += δ where the best labelling is wrong.")
        .def(nb::init<>());
    nb::class_<PassiveAggressive>(m, "PassiveAggressive", "w += τ δ, by a margin.")
        .def("__init__",
             [](PassiveAggressive* self, std::string_view variant, double aggressiveness,
                bool error_sensitive) {
                 new (self) PassiveAggressive{variant_of(variant), aggressiveness, error_sensitive};
             },
             nb::arg("variant"), nb::arg("aggressiveness"), nb::arg("error_sensitive"));
    nb::class_<Arow>(m, "Arow", "w += α Σ δ, with a variance of each weight.")
        .def(nb::init<double>(), nb::arg("regularization"));
    nb::class_<Gradient>(m, "Gradient", "A step down the loss of each example.")
        .def(nb::init<double, double, double, double, double, double, double, double, bool>(),
             nb::kw_only(), nb::arg("decay"), nb::arg("inverse_rate"), nb::arg("growth"),
             nb::arg("power"), nb::arg("first"), nb::arg("momentum"), nb::arg("radius"),
             nb::arg("average_after"), nb::arg("look_ahead"));
    nb::class_<ChainLoss>(m, "ChainLoss", "softmax or maximum of score + cost, less the gold score.")
        .def(nb::init<bool, Maybe, bool>(), nb::arg("soft"), nb::arg("cost").none(),
             nb::arg("normalised"));
    nb::class_<DescentArrays>(m, "Descent", "Weights that examples take down their losses.")
        .def(nb::init<Output<double>, MaybeOutput, MaybeOutput, Maybe, Input<std::int64_t>,
                      Output<double>>(),
             nb::kw_only(), nb::arg("w"), nb::arg("velocity").none(), nb::arg("total").none(),
             nb::arg("fixed").none(), nb::arg("exempt"), nb::arg("counts"));
    nb::class_<WideArrays>(m, "WideRows", "Entries of rows that add rows of cells to the outputs.")
        .def("__init__", &make_wide, nb::kw_only(), nb::arg("offsets"), nb::arg("codes"),
             nb::arg("values").none());
    nb::class_<NarrowArrays>(m, "NarrowRows", "Entries of rows that add one cell to one output.")
        .def("__init__", &make_narrow, nb::kw_only(), nb::arg("offsets"), nb::arg("outputs"),
             nb::arg("cells"), nb::arg("values").none());
    nb::class_<RowArrays>(m, "OnlineRows", "Rows of sparse entries that point to cells of weights.")
        .def("__init__", &make_rows, nb::arg("wide"), nb::arg("narrow"), nb::kw_only(),
             nb::arg("outputs"), nb::arg("unit"), nb::arg("base"));
    nb::class_<ChainArrays>(m, "OnlineChains", "Labelled sequences that are learned one by one.")
        .def("__init__", &make_chains, nb::kw_only(), nb::arg("offsets"), nb::arg("gold"),
             nb::arg("weight").none(), nb::arg("live"), nb::arg("node"), nb::arg("edge").none(),
             nb::arg("table"), nb::arg("labels"))
        .def("visit", &run_visit<Perceptron>, nb::arg("rule"), nb::arg("order"), nb::kw_only(),
             nb::arg("w"), nb::arg("memory"), nb::arg("counts"))
        .def("visit", &run_visit<PassiveAggressive>, nb::arg("rule"), nb::arg("order"),
             nb::kw_only(), nb::arg("w"), nb::arg("memory"), nb::arg("counts"))
        .def("visit", &run_visit<Arow>, nb::arg("rule"), nb::arg("order"), nb::kw_only(),
             nb::arg("w"), nb::arg("memory"), nb::arg("counts"))
        .def("descend", &run_descent, nb::arg("rule"), nb::arg("loss"), nb::arg("order"),
             nb::arg("arrays"))
        .def("scores", &run_scores, nb::arg("example"), nb::kw_only(), nb::arg("w"),
             nb::arg("unary"), nb::arg("tables"))
        .def("adjoint", &run_adjoint, nb::arg("example"), nb::kw_only(), nb::arg("unary"),
             nb::arg("tables"), nb::arg("w"));
});

}  // namespace chordal
#endif
