// Block-coordinate Frank–Wolfe on the dual of the structured hinge.
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
// Of α_i only its marginals are kept, which is all that d and the expectations need. Few of them are not
// zero: those of labels and those of transitions are lists of keys with values. A key is a place in the
// padded rows of scores, of labels or of tables (see Augmented), where d is written out too, for the time of
// a step. ‖d‖² is the sum of x_t·x_u ⟨d_t, d_u⟩ over positions t, u if every attribute has a weight for every
// label (`gram` holds the products x_t·x_u, u <= t); else its adjoint is written out. Packs of labels where
// d_t is zero are left out where w changes.
// Hazard: g is a difference of nearly equal numbers; a step with g <= 1e-14 |score| is left out.
//
// Reference: Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), Block-coordinate Frank–Wolfe
// optimization for structural SVMs.
#include "chain_direction.hpp"

namespace chordal {

struct FrankWolfe {
    double lambda;
    double* w;       // [cells]
    double* mean;    // [cells]
    double* linear;  // [examples] ℓ_i
    DualLists labels, transitions;
    const double* gram;                // null: the adjoint of d is written out
    const std::int64_t* gram_offsets;  // [examples + 1]
    std::int64_t every;
    // Steps, j, Σ ω ℓ and its mean; Σ ω² ‖d‖² and how many of them.
    double steps, taken, total, mean_total, curvature, moves;
};

CHORDAL_BOTH_ISAS(Outcome frank_wolfe(const OnlineChains&, const LabelCosts&,
                                      const std::int64_t* order, std::size_t count,
                                      bool (*interrupted)(), FrankWolfe& state);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// Examples whose turn comes soon.
struct Ahead {
    std::size_t next, second, third;
};

class FrankWolfeVisit {
public:
    FrankWolfeVisit(const OnlineChains& x, const LabelCosts& costs, FrankWolfe& state)
        : x_(x), s_(state), example_(x, costs, state.gram != nullptr),
          adjoint_(x, *x.node, state.gram != nullptr) {
        std::size_t longest = 1;
        for (std::size_t n = 0; n < x.examples; ++n) {
            const auto T = static_cast<std::size_t>(x.node_offsets[n + 1] - x.node_offsets[n]);
            longest = longest < T ? T : longest;
        }
        const std::size_t tables = x.edge ? longest - 1 : 1, stride = example_.stride;
        labels_.reserve(longest * stride);
        transitions_.reserve(tables * x.labels * stride);
        rows_.reserve(longest, stride);
        best_.resize(longest);
        if (!state.gram || x.edge) {
            sums_.resize(x.cells);
            std::memset(sums_.data(), 0, x.cells * sizeof(double));
        }
        example_.enter_table(state.w);
    }
    void close() { example_.leave_table(s_.w); }

    // False where scores are no longer finite. What later examples need is fetched while Viterbi runs,
    // which needs no memory but the first cache.
    bool step(std::size_t n, const Ahead& ahead) {
        example_.open(n);
        const bool counts = example_.T > 0 && example_.weight > 0.0;
        double expected = 0.0;
        if (counts) {
            example_.score(s_.w);
            labels_.open(s_.labels, n);
            transitions_.open(s_.transitions, n);
            expected = labels_.expected(example_.scores(0)) +
                       transitions_.expected(example_.tables());
        }
        foresee(ahead);
        if (counts) {
            const double highest = example_.highest();
            fetch_lists(ahead.next);
            if (!std::isfinite(highest)) return false;
            if (highest - expected > 1e-14 * std::fabs(highest)) move(n, highest - expected);
        }
        fetch_gram(ahead.next);
        s_.steps += 1.0;
        if (static_cast<std::int64_t>(s_.steps) % s_.every == 0) take();
        return true;
    }
    std::size_t work() const { return example_.T * x_.labels * (x_.labels + 64) + 64; }

private:
    // Examples come in any order, which no processor foresees. What one needs is fetched in three steps,
    // each of which tells where the next one looks.
    void foresee(const Ahead& ahead) const {
        CHORDAL_PREFETCH(x_.node_offsets + ahead.third);
        CHORDAL_PREFETCH(x_.edge_offsets + ahead.third);
        CHORDAL_PREFETCH(s_.linear + ahead.third);
        CHORDAL_PREFETCH(s_.gram_offsets + ahead.third);
        Direction::foresee(s_.labels, ahead.third);
        Direction::foresee(s_.transitions, ahead.third);
        example_.foresee(ahead.second);
        example_.fetch(ahead.next);
    }
    void fetch_lists(std::size_t next) const {
        Direction::fetch(s_.labels, next);
        Direction::fetch(s_.transitions, next);
    }
    void fetch_gram(std::size_t next) const {
        if (s_.gram)
            prefetch(s_.gram + s_.gram_offsets[next], s_.gram + s_.gram_offsets[next + 1]);
    }
    void move(std::size_t n, double lead) {
        example_.trace(best_.data());
        collect();
        const double omega = example_.weight, curvature = omega * omega * norm2(n);
        const double most = s_.lambda * omega * lead;
        s_.curvature += curvature;
        s_.moves += 1.0;
        const double gamma = most < curvature ? most / curvature : 1.0;
        move_labels(-gamma * omega / s_.lambda);
        move_transitions(-gamma * omega / s_.lambda);
        labels_.finish(gamma);
        transitions_.finish(gamma);
        const double rise = gamma * (example_.cost_of(best_.data()) - s_.linear[n]);
        s_.linear[n] += rise;
        s_.total += omega * rise;
    }
    void collect() {
        const std::size_t T = example_.T, stride = example_.stride;
        labels_.begin();
        transitions_.begin();
        for (std::size_t t = 0; t < T; ++t) {
            labels_.add(t * stride + index(best_[t]));
            if (t > 0) transitions_.add(example_.key(best_.data(), t));
        }
        rows_.collect(labels_.data(), T);
    }
    double norm2(std::size_t n) {
        double sum = s_.gram ? rows_.norm2(s_.gram + s_.gram_offsets[n]) : label_norm2();
        if (x_.edge) return sum + transition_norm2();
        transitions_.each([&](std::size_t key, double e) {
            if (example_.is_live_pair(key)) sum += e * e;
        });
        return sum;
    }
    double label_norm2() {
        double* sums = sums_.data();
        const std::size_t T = example_.T, K = x_.labels, first = example_.first_row;
        for (std::size_t t = 0; t < T; ++t) adjoint_.add(rows_.row(t), first + t, 1.0, sums);
        mapped_.resize(T * K + 1);
        map_rows(*x_.node, first, T, sums, mapped_.data());
        double sum = 0.0;  // ‖adjoint d‖² = ⟨d, map adjoint d⟩
        for (std::size_t t = 0; t < T; ++t)
            for (std::size_t j = 0; j < K; ++j) sum += rows_.row(t)[j] * mapped_[t * K + j];
        for (std::size_t t = 0; t < T; ++t) adjoint_.clear(first + t, sums);
        return sum;
    }
    double transition_norm2() {
        double *sums = sums_.data(), sum = 0.0;
        each_observed([=](std::size_t c, double x) { sums[c] += x; });
        each_observed([=, &sum](std::size_t c, double x) { sum += x * sums[c]; });
        each_observed([=](std::size_t c, double) { sums[c] = 0.0; });
        return sum;
    }
    // f(cell, x e) for the entries of transitions that have observations of their own.
    template <class F>
    void each_observed(F f) const {
        const std::size_t stride = example_.stride, K = x_.labels;
        transitions_.each([&](std::size_t key, double e) {
            const std::size_t row = key / stride, pair = row % K * K + key % stride;
            each_entry(x_, *x_.edge, example_.first_edge + row / K, pair,
                       [&](std::size_t c, double x) { f(c, x * e); });
        });
    }
    void move_labels(double change) {
        for (std::size_t k = 0; k < rows_.n_active; ++k) {
            const std::size_t t = rows_.active(k), r = example_.first_row + t;
            if (s_.gram)
                adjoint_.add_filled(rows_.row(t), rows_.filled(t), r, change, s_.w);
            else
                adjoint_.add(rows_.row(t), r, change, s_.w);
        }
    }
    void move_transitions(double change) {
        double* w = s_.w;
        if (x_.edge)
            each_observed([=](std::size_t c, double x) { w[c] += change * x; });
        else
            transitions_.each([&](std::size_t key, double e) {
                if (example_.is_live_pair(key)) example_.add_to_table(key, change * e);
            });
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
    Direction labels_, transitions_;
    Scratch sums_, mapped_;
    FilledRows rows_;  // of labels_
    ScratchOf<std::int32_t> best_;
};

Outcome frank_wolfe(const OnlineChains& x, const LabelCosts& costs, const std::int64_t* order,
                    std::size_t count, bool (*interrupted)(), FrankWolfe& state) {
    Patience patience(interrupted);
    FrankWolfeVisit visit(x, costs, state);
    const auto at = [=](std::size_t k) {
        return static_cast<std::size_t>(order[k < count ? k : count - 1]);
    };
    Outcome outcome = Outcome::done;
    for (std::size_t k = 0; k < count && outcome == Outcome::done; ++k) {
        if (!visit.step(at(k), {at(k + 1), at(k + 2), at(k + 3)}))
            outcome = Outcome::range;
        else if (patience.spent(visit.work()))
            outcome = Outcome::stopped;
    }
    visit.close();
    return outcome;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <stdexcept>

#include "chain_online_binding.hpp"

namespace chordal {
namespace {

struct DualListsArrays {
    Input<std::int64_t> room;
    Output<std::int32_t> used;
    Output<std::uint32_t> keys;
    Output<double> values;

    void require_examples(std::size_t examples) const {
        require(used.size() == examples && room.size() == examples + 1 &&
                    ends_at(room, keys.size()) && values.size() == keys.size(),
                "lists of dual variables do not fit the chains");
    }
    DualLists view() const { return {room.data(), used.data(), keys.data(), values.data()}; }
};

// `sums`: the six counters at the end of FrankWolfe.
struct FrankWolfeArrays {
    Output<double> w, mean, linear;
    DualListsArrays labels, transitions;
    Output<double> sums;
    Maybe gram;
    Input<std::int64_t> gram_offsets;

    void require_fit(const ChainArrays& chains) const {
        const std::size_t examples = chains.examples();
        chains.require_range(0, examples, w.size(), linear.size());
        labels.require_examples(examples);
        transitions.require_examples(examples);
        require(mean.size() == w.size() && sums.size() == 6 &&
                    gram_offsets.size() == examples + 1 &&
                    (!gram || ends_at(gram_offsets, gram->size())),
                "dual variables do not fit the chains");
    }
    FrankWolfe view(double lambda, std::int64_t every) const {
        const double* sum = sums.data();
        return {lambda,        w.data(),           mean.data(),         linear.data(),
                labels.view(), transitions.view(), pointer(gram),       gram_offsets.data(),
                every,         sum[0],             sum[1],              sum[2],
                sum[3],        sum[4],             sum[5]};
    }
};

void run_frank_wolfe(const ChainArrays& chains, const CostArrays& prices,
                     Input<std::int64_t> order, double lambda, std::int64_t every,
                     const FrankWolfeArrays& arrays) {
    arrays.require_fit(chains);
    const ChainView view(chains);
    const LabelCosts costs = prices.view(chains);
    FrankWolfe state = arrays.view(lambda, every);
    Outcome outcome;
    {
        GilReleased release;
        outcome = CHORDAL_DISPATCH(
            frank_wolfe(view.chains, costs, order.data(), order.size(), interrupted, state));
    }
    const double now[] = {state.steps,      state.taken,     state.total,
                          state.mean_total, state.curvature, state.moves};
    std::memcpy(arrays.sums.data(), now, sizeof now);
    raise_outcome(outcome);
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<DualListsArrays>(m, "DualLists", "For each example a list of keys with values.")
        .def("__init__",
             [](DualListsArrays* self, Input<std::int64_t> room, Output<std::int32_t> used,
                Output<std::uint32_t> keys, Output<double> values) {
                 new (self) DualListsArrays{room, used, keys, values};
             },
             nb::arg("room"), nb::arg("used"), nb::arg("keys"), nb::arg("values"));
    nb::class_<FrankWolfeArrays>(m, "FrankWolfe", "Dual variables of chains, and their weights.")
        .def("__init__",
             [](FrankWolfeArrays* self, Output<double> w, Output<double> mean,
                Output<double> linear, const DualListsArrays& labels,
                const DualListsArrays& transitions, Output<double> sums, Maybe gram,
                Input<std::int64_t> gram_offsets) {
                 new (self) FrankWolfeArrays{w,    mean, linear, labels, transitions,
                                             sums, gram, gram_offsets};
             },
             nb::kw_only(), nb::arg("w"), nb::arg("mean"), nb::arg("linear"), nb::arg("labels"),
             nb::arg("transitions"), nb::arg("sums"), nb::arg("gram").none(),
             nb::arg("gram_offsets"));
    m.def("chain_frank_wolfe", &run_frank_wolfe, nb::arg("chains"), nb::arg("costs"),
          nb::arg("order"), nb::arg("l2"), nb::arg("every"), nb::arg("arrays"));
});

}  // namespace chordal
#endif
