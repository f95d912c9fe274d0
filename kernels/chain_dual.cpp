// Block-coordinate Frank–Wolfe on the dual of the structured hinge, and the oracle that it asks.
//
// With ψ_i(y) = φ(y_i) − φ(y), α_i a distribution over labellings of example i with weight ω_i, and
// v = w − centre:
//
//   v(α) = (1/λ) Σ_i ω_i Σ_y α_i(y) ψ_i(y)        ℓ_i = Σ_y α_i(y) cost_i(y)
//   dual   D(α) = Σ_i ω_i ℓ_i − λ ⟨centre, v⟩ − (λ/2) ‖v‖²
//   primal P(w) = Σ_i ω_i max_y [cost_i(y) − ⟨w, ψ_i(y)⟩] + (λ/2) ‖v‖²  >=  D(α)
//
// One step takes example i: ŷ = argmax_y [cost_i(y) + s(y)], s(y) = ⟨w, φ(y)⟩; with d = φ(ŷ) − E_α φ(y),
//
//   g = ω_i (cost_i(ŷ) + s(ŷ) − E_α [cost_i(y) + s(y)])          (block i's part of the gap; >= 0)
//   γ = min(1, λ g / (ω_i² ‖d‖²))                                 (the best step: D is quadratic in it)
//   α_i ← (1 − γ) α_i + γ [ŷ],   v ← v − γ (ω_i/λ) d,   ℓ_i ← (1 − γ) ℓ_i + γ cost_i(ŷ)
//
// The mean of w over time is taken from it at every `every`-th step, j = 1, 2, …, with weights that grow as
// j: m ← m + 2 (w − m) / (j + 1); it belongs to the mean of α, and so does the mean of Σ ω ℓ.
//
// Of α_i only its marginals are kept, which is all that d and the expectations need: μ_i(t, y), and
// those of transitions, few of which are not zero, as a list of keys (see Augmented::key) with values.
// ‖d‖² is the sum of x_t·x_u ⟨d_t, d_u⟩ over positions t, u if every attribute has a weight for every label
// (`gram` holds the products x_t·x_u, u <= t); else d is written out. Few labels of a position have a
// part in α_i: packs of labels where d_t is zero are left out of all loops.
// Hazard: g is a difference of nearly equal numbers; a step with g <= 1e-14 |score| is left out.
//
// Reference: Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), Block-coordinate Frank–Wolfe
// optimization for structural SVMs.
#include "chain_dual.hpp"

namespace chordal {

struct FrankWolfe {
    double lambda;
    double* w;                 // [cells]
    double* mean;              // [cells]
    double* linear;            // [examples] ℓ_i
    double* labels;            // [rows, stride] μ_i
    const std::int64_t* room;  // [examples + 1] where each list of transitions begins
    std::int32_t* used;        // [examples] and its length
    std::uint32_t* keys;
    double* values;
    const double* gram;        // null: d is written out
    const std::int64_t* gram_offsets;  // [examples + 1]
    std::int64_t every;
    // Steps, j, Σ ω ℓ and its mean; Σ ω² ‖d‖² and how many of them.
    double steps, taken, total, mean_total, curvature, moves;
};

CHORDAL_BOTH_ISAS(
    Outcome frank_wolfe(const OnlineChains&, const LabelCosts&, const std::int64_t* order,
                        std::size_t count, bool (*interrupted)(), FrankWolfe& state);
    Outcome best_labellings(const OnlineChains&, const LabelCosts&, bool full, std::size_t begin,
                            std::size_t end, bool (*interrupted)(), const double* w, double* lead,
                            std::int32_t* labels);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr double kForgotten = 1e-15;   // a marginal below it is zero
constexpr std::size_t kPerLine = 8;    // doubles of a cache line

class FrankWolfeVisit {
public:
    FrankWolfeVisit(const OnlineChains& x, const LabelCosts& costs, FrankWolfe& state)
        : x_(x), s_(state), example_(x, costs, state.gram != nullptr),
          adjoint_(x, *x.node, state.gram != nullptr) {
        if (!state.gram || x.edge) {
            sums_.resize(x.cells);
            std::memset(sums_.data(), 0, x.cells * sizeof(double));
        }
        example_.enter_table(state.w);
    }
    void close() { example_.leave_table(s_.w); }

    // False where scores are no longer finite.
    bool step(std::size_t n, std::size_t following) {
        n_ = n;
        example_.open(n);
        prefetch(following);
        if (example_.T > 0 && example_.weight > 0.0) {
            example_.score(s_.w);
            best_.resize(example_.T);
            const double highest = example_.best(best_.data());
            if (!std::isfinite(highest)) return false;
            open_list(n);
            const double lead = highest - expected();
            if (lead > 1e-14 * std::fabs(highest)) move(n, lead);
        }
        s_.steps += 1.0;
        if (static_cast<std::int64_t>(s_.steps) % s_.every == 0) take();
        return true;
    }
    std::size_t work() const { return example_.T * x_.labels * (x_.labels + 64) + 64; }

private:
    // Examples come in any order, which no processor foresees.
    void prefetch(std::size_t n) const {
        example_.prefetch(n);
        const double* rows = s_.labels + static_cast<std::size_t>(x_.node_offsets[n]) * example_.stride;
        const double* end = s_.labels + static_cast<std::size_t>(x_.node_offsets[n + 1]) * example_.stride;
        for (; rows < end; rows += kPerLine) CHORDAL_PREFETCH(rows);
        const auto used = static_cast<std::size_t>(s_.used[n]);
        for (std::size_t k = 0; k < used; k += kPerLine) CHORDAL_PREFETCH(s_.values + s_.room[n] + k);
        for (std::size_t k = 0; k < used; k += 2 * kPerLine) CHORDAL_PREFETCH(s_.keys + s_.room[n] + k);
        if (!s_.gram) return;
        const double* product = s_.gram + s_.gram_offsets[n];
        for (; product < s_.gram + s_.gram_offsets[n + 1]; product += kPerLine) CHORDAL_PREFETCH(product);
    }
    double* mu(std::size_t t) const {
        return s_.labels + (example_.first_row + t) * example_.stride;
    }
    void open_list(std::size_t n) {
        keys_ = s_.keys + s_.room[n];
        values_ = s_.values + s_.room[n];
        used_ = static_cast<std::size_t>(s_.used[n]);
    }
    double expected() const {
        double sum = 0.0;
        for (std::size_t t = 0; t < example_.T; ++t)
            sum += dot(mu(t), example_.scores(t), example_.stride);
        for (std::size_t k = 0; k < used_; ++k)
            sum += values_[k] * example_.transition_score(keys_[k]);
        return sum;
    }
    void move(std::size_t n, double lead) {
        collect();
        const double omega = example_.weight, curvature = omega * omega * norm2();
        const double most = s_.lambda * omega * lead;
        s_.curvature += curvature;
        s_.moves += 1.0;
        const double gamma = most < curvature ? most / curvature : 1.0;
        const double change = -gamma * omega / s_.lambda;
        const std::size_t first = example_.first_row;
        for (std::size_t t = 0; t < example_.T; ++t)
            if (s_.gram)
                adjoint_.add_filled(d(t), filled(t), first + t, change, s_.w);
            else
                adjoint_.add(d(t), first + t, change, s_.w);
        for (std::size_t k = 0; k < used_; ++k)
            move_transition(k, change * e_[k]);
        mix(n, gamma);
    }
    double* d(std::size_t t) const { return d_.data() + t * example_.stride; }

    // d in the space of marginals: indicators of ŷ minus μ; of transitions, e_ beside the list.
    void collect() {
        const std::size_t T = example_.T, stride = example_.stride;
        d_.resize(T * stride);
        n_filled_.resize(T);
        filled_.resize(T * stride);
        for (std::size_t t = 0; t < T; ++t) {
            for (std::size_t j = 0; j < stride; j += kLanes)
                store(d(t) + j, broadcast(0.0) - load(mu(t) + j));
            d(t)[best_[t]] += 1.0;
            note_filled(t);
        }
        e_.resize(used_ + T);
        for (std::size_t k = 0; k < used_; ++k) e_[k] = -values_[k];
        for (std::size_t t = 1; t < T; ++t) {
            const auto key = static_cast<std::uint32_t>(example_.key(best_.data(), t));
            std::size_t k = 0;
            while (k < used_ && keys_[k] != key) ++k;
            if (k == used_) {
                keys_[used_++] = key;
                values_[k] = e_[k] = 0.0;
            }
            e_[k] += 1.0;
        }
    }
    void note_filled(std::size_t t) {
        std::uint32_t *first = filled_.data() + t * example_.stride, count = 0;
        for (std::size_t j = 0; j < example_.stride; j += kLanes) {
            first[count] = static_cast<std::uint32_t>(j);
            count += any(load(d(t) + j));
        }
        n_filled_[t] = count;
    }
    Filled filled(std::size_t t) const {
        return {n_filled_[t], filled_.data() + t * example_.stride};
    }
    double norm2() {
        double sum = s_.gram ? label_norm2_by_gram() : label_norm2();
        if (x_.edge) return sum + transition_norm2();
        for (std::size_t k = 0; k < used_; ++k)
            if (is_live(x_, x_.table + keys_[k])) sum += e_[k] * e_[k];
        return sum;
    }
    // Σ_t ⟨d_t, x_t·x_t d_t + 2 Σ_{u<t} x_t·x_u d_u⟩
    double label_norm2_by_gram() const {
        Pack sum = broadcast(0.0);
        const double* product = s_.gram + s_.gram_offsets[n_];
        for (std::size_t t = 0; t < example_.T; product += ++t) {
            const Filled at = filled(t);
            for (std::size_t k = 0; k < at.count; ++k) {
                const double* column = d_.data() + at.first[k];
                Pack before = broadcast(0.0);
                for (std::size_t u = 0; u < t; ++u)
                    before = broadcast(product[u]) * load(column + u * example_.stride) + before;
                const Pack here = load(column + t * example_.stride);
                sum = here * (broadcast(product[t]) * here + before + before) + sum;
            }
        }
        return lane_sum(sum);
    }
    double label_norm2() {
        double* sums = sums_.data();
        const std::size_t T = example_.T, K = x_.labels, first = example_.first_row;
        for (std::size_t t = 0; t < T; ++t) adjoint_.add(d(t), first + t, 1.0, sums);
        mapped_.resize(T * K + 1);
        map_rows(*x_.node, first, T, sums, mapped_.data());
        double sum = 0.0;  // ‖adjoint d‖² = ⟨d, map adjoint d⟩
        for (std::size_t t = 0; t < T; ++t)
            for (std::size_t j = 0; j < K; ++j) sum += d(t)[j] * mapped_[t * K + j];
        for (std::size_t t = 0; t < T; ++t) adjoint_.clear(first + t, sums);
        return sum;
    }
    double transition_norm2() {
        double *sums = sums_.data(), sum = 0.0;
        each_transition([=](std::size_t c, double x) { sums[c] += x; });
        each_transition([=, &sum](std::size_t c, double x) { sum += x * sums[c]; });
        each_transition([=](std::size_t c, double) { sums[c] = 0.0; });
        return sum;
    }
    template <class F>
    void each_transition(F f) const {
        const std::size_t pairs = x_.labels * x_.labels;
        for (std::size_t k = 0; k < used_; ++k) {
            const double e = e_[k];
            each_entry(x_, *x_.edge, example_.first_edge + keys_[k] / pairs, keys_[k] % pairs,
                       [&](std::size_t c, double x) { f(c, x * e); });
        }
    }
    void move_transition(std::size_t k, double change) {
        const std::size_t pairs = x_.labels * x_.labels;
        double* w = s_.w;
        if (x_.edge)
            each_entry(x_, *x_.edge, example_.first_edge + keys_[k] / pairs, keys_[k] % pairs,
                       [=](std::size_t c, double x) { w[c] += change * x; });
        else if (is_live(x_, x_.table + keys_[k]))
            example_.add_to_table(keys_[k], change);
    }
    // α ← (1 − γ) α + γ [ŷ], in marginals.
    void mix(std::size_t n, double gamma) {
        const Pack a = broadcast(gamma), least = broadcast(kForgotten);
        for (std::size_t t = 0; t < example_.T; ++t) {
            const Filled at = filled(t);
            for (std::size_t k = 0; k < at.count; ++k) {
                double* to = mu(t) + at.first[k];
                const Pack mixed = a * load(d(t) + at.first[k]) + load(to);
                store(to, zero_below(mixed, least, mixed));
            }
        }
        std::size_t kept = 0;
        for (std::size_t k = 0; k < used_; ++k) {
            const double value = values_[k] + gamma * e_[k];
            keys_[kept] = keys_[k];
            values_[kept] = value;
            kept += value > kForgotten;
        }
        s_.used[n] = static_cast<std::int32_t>(kept);
        const double rise = gamma * (example_.cost_of(best_.data()) - s_.linear[n]);
        s_.linear[n] += rise;
        s_.total += example_.weight * rise;
    }
    void take() {
        s_.taken += 1.0;
        example_.leave_table(s_.w);
        const double share = 2.0 / (s_.taken + 1.0);
        const Pack a = broadcast(share);
        for (std::size_t c = 0; c < x_.cells; c += kLanes)  // cells come in fours
            store(s_.mean + c, a * (load(s_.w + c) - load(s_.mean + c)) + load(s_.mean + c));
        s_.mean_total += share * (s_.total - s_.mean_total);
    }

    const OnlineChains& x_;
    FrankWolfe& s_;
    Augmented example_;
    LabelAdjoint adjoint_;
    Scratch sums_, d_, e_, mapped_;
    ScratchOf<std::int32_t> best_;
    ScratchOf<std::uint32_t> n_filled_, filled_;
    std::uint32_t* keys_ = nullptr;
    double* values_ = nullptr;
    std::size_t used_ = 0, n_ = 0;
};

Outcome frank_wolfe(const OnlineChains& x, const LabelCosts& costs, const std::int64_t* order,
                    std::size_t count, bool (*interrupted)(), FrankWolfe& state) {
    Patience patience(interrupted);
    FrankWolfeVisit visit(x, costs, state);
    for (std::size_t k = 0; k < count; ++k) {
        const auto following = static_cast<std::size_t>(order[k + 1 < count ? k + 1 : k]);
        Outcome outcome = Outcome::done;
        if (!visit.step(static_cast<std::size_t>(order[k]), following)) outcome = Outcome::range;
        if (outcome == Outcome::done && patience.spent(visit.work())) outcome = Outcome::stopped;
        if (outcome == Outcome::done) continue;
        visit.close();
        return outcome;
    }
    visit.close();
    return Outcome::done;
}

// Of examples begin..end: the best labelling with its cost, and its lead over the gold one.
Outcome best_labellings(const OnlineChains& x, const LabelCosts& costs, bool full,
                        std::size_t begin, std::size_t end, bool (*interrupted)(), const double* w,
                        double* lead, std::int32_t* labels) {
    Patience patience(interrupted);
    Augmented example(x, costs, full);
    ScratchOf<std::int32_t> best;
    example.enter_table(w);
    for (std::size_t n = begin; n < end; ++n) {
        example.open(n);
        example.score(w);
        best.resize(example.T + 1);
        lead[n] = example.best(best.data()) - example.score_of(example.gold);
        if (!std::isfinite(lead[n])) return Outcome::range;
        if (labels)
            std::memcpy(labels + example.first_row, best.data(), example.T * sizeof(std::int32_t));
        if (patience.spent(example.T * x.labels * (x.labels + 64) + 64)) return Outcome::stopped;
    }
    return Outcome::done;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <tuple>

#include "chain_online_binding.hpp"

namespace chordal {
namespace {

void raise(Outcome outcome) {
    if (outcome == Outcome::stopped) throw nb::python_error();
    if (outcome == Outcome::range) throw std::overflow_error("the weights or scores overflow");
}

// `sums`: the six counters at the end of FrankWolfe.
struct FrankWolfeArrays {
    Output<double> w, mean, linear, labels;
    Input<std::int64_t> room;
    Output<std::int32_t> used;
    Output<std::uint32_t> keys;
    Output<double> values, sums;
    Maybe gram;
    Input<std::int64_t> gram_offsets;

    FrankWolfe view(double lambda, std::int64_t every) const {
        const double* sum = sums.data();
        return {lambda,      w.data(),      mean.data(),   linear.data(),       labels.data(),
                room.data(), used.data(),   keys.data(),   values.data(),       pointer(gram),
                gram_offsets.data(), every, sum[0],        sum[1],              sum[2],
                sum[3],      sum[4],        sum[5]};
    }
};

void run_frank_wolfe(const ChainArrays& chains, Input<double> cost_rows,
                     Input<std::int32_t> cost_of, Input<std::int64_t> order, double lambda,
                     std::int64_t every, const FrankWolfeArrays& arrays) {
    const ChainView view(chains, arrays.w.size());
    const LabelCosts costs{cost_rows.data(), cost_of.data()};
    FrankWolfe state = arrays.view(lambda, every);
    Outcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = CHORDAL_DISPATCH(
            frank_wolfe(view.chains, costs, order.data(), order.size(), interrupted, state));
    }
    const double now[] = {state.steps,      state.taken,     state.total,
                          state.mean_total, state.curvature, state.moves};
    std::memcpy(arrays.sums.data(), now, sizeof now);
    raise(outcome);
}

void run_best(const ChainArrays& chains, Input<double> cost_rows, Input<std::int32_t> cost_of,
              bool full, std::size_t begin, std::size_t end, Input<double> w, Output<double> lead,
              std::optional<Output<std::int32_t>> labels) {
    const ChainView view(chains, w.size());
    const LabelCosts costs{cost_rows.data(), cost_of.data()};
    Outcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = CHORDAL_DISPATCH(best_labellings(view.chains, costs, full, begin, end, interrupted,
                                                   w.data(), lead.data(),
                                                   labels ? labels->data() : nullptr));
    }
    raise(outcome);
}

// φ(labels) − φ(gold) of every example: offsets into cells and values. A cell may come twice.
auto differences(const ChainArrays& chains, std::size_t cells, Input<std::int32_t> labels) {
    const ChainView view(chains, cells);
    const OnlineChains& x = view.chains;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint32_t> cell;
    std::vector<double> value;
    for (std::size_t n = 0; n < x.examples; ++n) {
        const auto first = static_cast<std::size_t>(x.node_offsets[n]);
        const auto first_edge = static_cast<std::size_t>(x.edge_offsets[n]);
        const std::size_t T = static_cast<std::size_t>(x.node_offsets[n + 1]) - first;
        const std::int32_t *y = labels.data() + first, *gold = x.gold + first;
        for (double sign = 1.0; sign >= -1.0; sign -= 2.0) {
            const auto add = [&](std::size_t c, double a) {
                cell.push_back(static_cast<std::uint32_t>(c));
                value.push_back(sign * a);
            };
            const std::int32_t* z = sign > 0.0 ? y : gold;
            for (std::size_t t = 0; t < T; ++t) {
                const bool same = y[t] == gold[t];
                if (!same)
                    isa_baseline::each_entry(x, *x.node, first + t, isa_baseline::index(z[t]), add);
                if (t == 0 || (same && y[t - 1] == gold[t - 1])) continue;
                const std::size_t pair =
                    isa_baseline::index(z[t - 1]) * x.labels + isa_baseline::index(z[t]);
                if (x.edge)
                    isa_baseline::each_entry(x, *x.edge, first_edge + t - 1, pair, add);
                else if (isa_baseline::is_live(x, x.table + pair))
                    add(x.table + pair, 1.0);
            }
        }
        offsets.push_back(static_cast<std::int64_t>(cell.size()));
    }
    return std::make_tuple(array_of(std::move(offsets)), array_of(std::move(cell)),
                           array_of(std::move(value)));
}

// Whether every attribute of nodes has a weight for every label.
bool is_full(const ChainArrays& chains) {
    const ChainView view(chains, 0);
    const OnlineChains& x = view.chains;
    const OnlineRows& rows = *x.node;
    const auto n = static_cast<std::size_t>(x.node_offsets[x.examples]);
    if (rows.narrow_offsets[n] > 0) return false;
    for (std::uint32_t e = 0; e < rows.wide_offsets[n]; ++e) {
        const std::size_t cell = rows.base + (rows.wide_codes[e] >> 5) * rows.unit;
        if ((rows.wide_codes[e] & 31) * rows.unit < x.labels) return false;
        for (std::size_t j = 0; j < x.labels; ++j)
            if (!isa_baseline::is_live(x, cell + j)) return false;
    }
    return true;
}

// x_t·x_u for u <= t, example after example; the chains are full.
auto gram(const ChainArrays& chains, std::size_t cells) {
    const ChainView view(chains, cells);
    const OnlineChains& x = view.chains;
    const OnlineRows& rows = *x.node;
    std::vector<double> products, row(cells / rows.unit + 1, 0.0);
    const auto value = [&](std::uint32_t e) { return rows.wide_values ? rows.wide_values[e] : 1.0; };
    for (std::size_t n = 0; n < x.examples; ++n) {
        const auto first = static_cast<std::size_t>(x.node_offsets[n]);
        const auto last = static_cast<std::size_t>(x.node_offsets[n + 1]);
        for (std::size_t t = first; t < last; ++t) {
            for (auto e = rows.wide_offsets[t]; e < rows.wide_offsets[t + 1]; ++e)
                row[rows.wide_codes[e] >> 5] += value(e);
            for (std::size_t u = first; u <= t; ++u) {
                double sum = 0.0;
                for (auto e = rows.wide_offsets[u]; e < rows.wide_offsets[u + 1]; ++e)
                    sum += value(e) * row[rows.wide_codes[e] >> 5];
                products.push_back(sum);
            }
            for (auto e = rows.wide_offsets[t]; e < rows.wide_offsets[t + 1]; ++e)
                row[rows.wide_codes[e] >> 5] = 0.0;
        }
    }
    return array_of(std::move(products));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<FrankWolfeArrays>(m, "FrankWolfe", "Dual variables of chains, and their weights.")
        .def("__init__",
             [](FrankWolfeArrays* self, Output<double> w, Output<double> mean,
                Output<double> linear, Output<double> labels, Input<std::int64_t> room,
                Output<std::int32_t> used, Output<std::uint32_t> keys, Output<double> values,
                Output<double> sums, Maybe gram, Input<std::int64_t> gram_offsets) {
                 new (self) FrankWolfeArrays{w,    mean,   linear, labels, room,        used,
                                             keys, values, sums,   gram,   gram_offsets};
             },
             nb::arg("w"), nb::arg("mean"), nb::arg("linear"), nb::arg("labels"), nb::arg("room"),
             nb::arg("used"), nb::arg("keys"), nb::arg("values"), nb::arg("sums"),
             nb::arg("gram").none(), nb::arg("gram_offsets"));
    m.def("chain_frank_wolfe", &run_frank_wolfe, nb::arg("chains"), nb::arg("cost_rows"),
          nb::arg("cost_of"), nb::arg("order"), nb::arg("l2"), nb::arg("every"), nb::arg("arrays"));
    m.def("chain_best_with_cost", &run_best, nb::arg("chains"), nb::arg("cost_rows"),
          nb::arg("cost_of"), nb::arg("full"), nb::arg("begin"), nb::arg("end"), nb::arg("w"),
          nb::arg("lead"), nb::arg("labels").none());
    m.def("chain_differences", &differences);
    m.def("chain_is_full", &is_full);
    m.def("chain_gram", &gram);
});

}  // namespace chordal
#endif
