// Online exponentiated gradient on the duals of the likelihood and of the structured hinge.
//
// Notation of chain_dual.cpp. α_i(y) ∝ exp θ_i(y), with θ_i a sum over labels and transitions, so that its
// marginals μ_i come from forward–backward, and so does its entropy H_i = log Z(θ_i) − ⟨θ_i, μ_i⟩:
//
//   likelihood   D(α) = Σ_i ω_i H_i − λ ⟨centre, v⟩ − (λ/2) ‖v‖²
//   hinge        D(α) = Σ_i ω_i ℓ_i − λ ⟨centre, v⟩ − (λ/2) ‖v‖²
//
// One step takes example i with s = its scores by w, plus its costs (hinge), and K = 1 (likelihood):
//
//   θ' = (1 − η) θ + η K s
//   ΔD = ω ⟨s, μ' − μ⟩ + (ω/K) (H' − H) − (ω²/2λ) ‖φ(μ' − μ)‖²
//
// and is made if D rises (then η_i grows by 5%); else it is tried again, at most kTries times, with half of η. At
// first all of α_i lies on the gold labelling, which is no exp θ: the first step of an example tries
// θ' = K s + A [gold], A = 0, 2, 4, …, with [gold] on its labels.
//
// For the hinge, whose D has no entropy, that of D + Σ_i ω_i H_i / K is raised instead, with a K that grows from
// pass to pass: the difference falls as 1/K. Steps η s without it (K = ∞) would drive θ so far apart that
// a labelling once given up could not come back.
// Reference: Collins, Globerson, Koo, Carreras and Bartlett (2008), Exponentiated gradient algorithms for
// conditional random fields and max-margin Markov networks.
#include "chain_dual.hpp"

namespace chordal {

struct Exponentiated {
    double lambda;
    double sharpness;       // K
    double* w;              // [cells]
    double* theta;          // labels, then transitions, example after example
    const std::int64_t* theta_offsets;
    double* eta;            // [examples]; 0: not begun
    bool entropies;         // likelihood
    double* term;           // [examples] H_i (likelihood) or ℓ_i
};

// The file chain_sum.cpp defines what is only called here.
CHORDAL_BOTH_ISAS(
    Outcome marginals(const ChainBatch&, Domain, bool (*interrupted)(), const double* weight,
                      double* log_partition, double* unary, double* tables);
    Outcome exponentiated(const OnlineChains&, const LabelCosts&, const std::int64_t* order,
                          std::size_t count, bool (*interrupted)(), Exponentiated& state);
    Outcome log_partitions(const OnlineChains&, std::size_t begin, std::size_t end,
                           bool (*interrupted)(), const double* w, double* lead);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr int kTries = 8;
constexpr double kGrowth = 1.05;

class ExponentiatedVisit {
public:
    ExponentiatedVisit(const OnlineChains& x, const LabelCosts& costs, Exponentiated& state,
                       bool (*interrupted)())
        : x_(x), costs_(costs), s_(state), interrupted_(interrupted), example_(x),
          nodes_(x, *x.node, false), edges_(x, x.edge ? *x.edge : *x.node, false), sums_(x.cells) {
        std::memset(sums_.data(), 0, x.cells * sizeof(double));
    }

    Outcome step(std::size_t n) {
        example_.open(n);
        if (example_.T == 0 || example_.weight == 0.0) return Outcome::done;
        theta_ = s_.theta + s_.theta_offsets[n];
        labels_ = example_.T * x_.labels;
        size_ = labels_ + example_.n_tables * x_.labels * x_.labels;
        for (Scratch* array : arrays_) array->resize(size_ + 4);
        load_scores();
        const Outcome outcome = old_marginals(n);
        return outcome == Outcome::done ? search(n) : outcome;
    }
    std::size_t work() const { return example_.T * x_.labels * (8 * x_.labels + 64) + 64; }

private:
    // s: labels with their costs, then transitions.
    void load_scores() {
        example_.score(s_.w, 1.0, nullptr);
        const ChainBatch batch = example_.batch();
        std::memcpy(scores_.data(), batch.unary, labels_ * sizeof(double));
        std::memcpy(scores_.data() + labels_, batch.tables, (size_ - labels_) * sizeof(double));
        for (std::size_t t = 0; t < example_.T; ++t) {
            const double* cost = cost_row(t);
            for (std::size_t j = 0; j < x_.labels; ++j) scores_[t * x_.labels + j] += cost[j];
        }
    }
    const double* cost_row(std::size_t t) const {
        return costs_.rows + index(costs_.row_of[example_.first_row + t]) * x_.labels;
    }
    // On labels alone: a tied table would favour gold transitions at other positions too.
    void favour_gold(double* theta, double value) const {
        for (std::size_t t = 0; t < example_.T; ++t)
            theta[t * x_.labels + index(example_.gold[t])] += value;
    }
    // Marginals of exp θ, and their entropy.
    Outcome infer(const double* theta, double* mu, double* entropy) {
        ChainBatch batch = example_.batch();
        batch.unary = theta;
        batch.tables = theta + labels_;
        std::memset(mu, 0, size_ * sizeof(double));
        double log_partition = 0.0;
        const Outcome outcome = marginals(batch, Domain::automatic, interrupted_, nullptr,
                                          &log_partition, mu, mu + labels_);
        *entropy = log_partition - product(theta, mu);
        return outcome;
    }
    Outcome old_marginals(std::size_t n) {
        if (s_.eta[n] > 0.0) return infer(theta_, old_.data(), &old_entropy_);
        std::memset(old_.data(), 0, size_ * sizeof(double));
        favour_gold(old_.data(), 1.0);
        for (std::size_t t = 1; t < example_.T; ++t) {
            const std::size_t table = x_.edge ? (t - 1) * x_.labels * x_.labels : 0;
            old_[labels_ + table + example_.pair(example_.gold, t)] += 1.0;
        }
        old_entropy_ = 0.0;
        return Outcome::done;
    }
    Outcome search(std::size_t n) {
        const bool begun = s_.eta[n] > 0.0;
        double eta = begun ? s_.eta[n] : 1.0, gold = 0.0, entropy = 0.0;
        const double small =
            1e-13 * example_.weight * (1.0 + std::fabs(product(scores_.data(), old_.data())));
        for (int tries = 0; tries < kTries; ++tries) {
            for (std::size_t k = 0; k < size_; ++k)
                tried_[k] = (begun ? (1.0 - eta) * theta_[k] : 0.0) + eta * s_.sharpness * scores_[k];
            if (gold > 0.0) favour_gold(tried_.data(), gold);
            const Outcome outcome = infer(tried_.data(), new_.data(), &entropy);
            if (outcome != Outcome::done) return outcome;
            const double rise = gain(entropy);
            if (std::isnan(rise)) return Outcome::range;
            if (rise > small) {
                accept(n, entropy);
                s_.eta[n] = eta * kGrowth > 1.0 ? 1.0 : eta * kGrowth;
                return Outcome::done;
            }
            if (begun)
                eta *= 0.5;
            else
                gold = gold == 0.0 ? 2.0 : 2.0 * gold;
        }
        if (begun && eta > 1e-12) s_.eta[n] = eta;
        return Outcome::done;
    }
    // ΔD, with d = μ' − μ.
    double gain(double entropy) {
        for (std::size_t k = 0; k < size_; ++k) d_[k] = new_[k] - old_[k];
        const double omega = example_.weight;
        double rise = omega * product(scores_.data(), d_.data());
        rise += omega / s_.sharpness * (entropy - old_entropy_);
        return rise - 0.5 * omega * omega / s_.lambda * norm2();
    }
    double norm2() {
        double* sums = sums_.data();
        add_adjoint(1.0, sums);
        const std::size_t K = x_.labels;
        map_rows(*x_.node, example_.first_row, example_.T, sums, mapped_.data());
        double sum = 0.0;
        for (std::size_t k = 0; k < labels_; ++k) sum += d_[k] * mapped_[k];
        if (x_.edge && example_.n_tables) {
            map_rows(*x_.edge, example_.first_edge, example_.T - 1, sums, mapped_.data() + labels_);
            for (std::size_t k = labels_; k < size_; ++k) sum += d_[k] * mapped_[k];
            for (std::size_t t = 1; t < example_.T; ++t) edges_.clear(example_.first_edge + t - 1, sums);
        } else {
            for (std::size_t k = labels_; k < size_; ++k)
                if (is_live(x_, x_.table + k - labels_)) sum += d_[k] * d_[k];
            std::memset(sums + x_.table, 0, (example_.n_tables ? K * K : 0) * sizeof(double));
        }
        for (std::size_t t = 0; t < example_.T; ++t) nodes_.clear(example_.first_row + t, sums);
        return sum;
    }
    // w += scale · φ(d)
    void add_adjoint(double scale, double* w) {
        const std::size_t K = x_.labels, pairs = K * K;
        for (std::size_t t = 0; t < example_.T; ++t)
            nodes_.add(padded_row(d_.data() + t * K, K, *x_.node), example_.first_row + t, scale, w);
        if (x_.edge) {
            for (std::size_t t = 1; t < example_.T; ++t)
                edges_.add(padded_row(d_.data() + labels_ + (t - 1) * pairs, pairs, *x_.edge),
                           example_.first_edge + t - 1, scale, w);
            return;
        }
        for (std::size_t k = 0; k + labels_ < size_; ++k)
            if (is_live(x_, x_.table + k)) w[x_.table + k] += scale * d_[labels_ + k];
    }
    const double* padded_row(const double* from, std::size_t count, const OnlineRows& rows) {
        const std::size_t width = (count + rows.unit - 1) / rows.unit * rows.unit;
        row_.resize(width);
        std::memcpy(row_.data(), from, count * sizeof(double));
        for (std::size_t k = count; k < width; ++k) row_[k] = 0.0;
        return row_.data();
    }
    void accept(std::size_t n, double entropy) {
        add_adjoint(-example_.weight / s_.lambda, s_.w);
        std::memcpy(theta_, tried_.data(), size_ * sizeof(double));
        double cost = 0.0;
        if (!s_.entropies)
            for (std::size_t t = 0; t < example_.T; ++t)
                for (std::size_t j = 0; j < x_.labels; ++j)
                    cost += cost_row(t)[j] * new_[t * x_.labels + j];
        s_.term[n] = s_.entropies ? entropy : cost;
    }
    double product(const double* a, const double* b) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < size_; ++k)
            if (b[k] != 0.0) sum += a[k] * b[k];
        return sum;
    }

    const OnlineChains& x_;
    LabelCosts costs_;
    Exponentiated& s_;
    bool (*interrupted_)();
    Example example_;
    LabelAdjoint nodes_, edges_;
    Scratch sums_, scores_, old_, new_, d_, tried_, mapped_, row_;
    Scratch* arrays_[6] = {&scores_, &old_, &new_, &d_, &tried_, &mapped_};
    double* theta_ = nullptr;
    std::size_t labels_ = 0, size_ = 0;
    double old_entropy_ = 0.0;
};

Outcome exponentiated(const OnlineChains& x, const LabelCosts& costs, const std::int64_t* order,
                      std::size_t count, bool (*interrupted)(), Exponentiated& state) {
    Patience patience(interrupted);
    ExponentiatedVisit visit(x, costs, state, interrupted);
    for (std::size_t k = 0; k < count; ++k) {
        const Outcome outcome = visit.step(static_cast<std::size_t>(order[k]));
        if (outcome != Outcome::done) return outcome;
        if (patience.spent(visit.work())) return Outcome::stopped;
    }
    return Outcome::done;
}

// Of examples begin..end: log Z minus the gold labelling's score.
Outcome log_partitions(const OnlineChains& x, std::size_t begin, std::size_t end,
                       bool (*interrupted)(), const double* w, double* lead) {
    Patience patience(interrupted);
    Example example(x);
    Scratch unary, tables;
    for (std::size_t n = begin; n < end; ++n) {
        example.open(n);
        example.score(w, 1.0, nullptr);
        const std::size_t cells = example.n_tables * x.labels * x.labels;
        unary.resize(example.T * x.labels + 1);
        tables.resize(cells + 4);
        std::memset(tables.data(), 0, (cells + 4) * sizeof(double));
        const Outcome outcome = marginals(example.batch(), Domain::automatic, interrupted, nullptr,
                                          lead + n, unary.data(), tables.data());
        if (outcome != Outcome::done) return outcome;
        lead[n] -= example.score_of(example.gold);
        if (!std::isfinite(lead[n])) return Outcome::range;
        if (patience.spent(example.T * x.labels * (4 * x.labels + 8) + 64)) return Outcome::stopped;
    }
    return Outcome::done;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "chain_online_binding.hpp"

namespace chordal {
namespace {

struct ExponentiatedArrays {
    Output<double> w, theta;
    Input<std::int64_t> theta_offsets;
    Output<double> eta, term;

    ExponentiatedArrays(Output<double> w, Output<double> theta, Input<std::int64_t> theta_offsets,
                        Output<double> eta, Output<double> term)
        : w(w), theta(theta), theta_offsets(theta_offsets), eta(eta), term(term) {
        require(ends_at(theta_offsets, theta.size()) && eta.size() + 1 == theta_offsets.size() &&
                    term.size() == eta.size(),
                "dual variables do not fit together");
    }
};

void run_exponentiated(const ChainArrays& chains, const CostArrays& prices,
                       Input<std::int64_t> order, double lambda, double sharpness, bool entropies,
                       const ExponentiatedArrays& arrays) {
    chains.require_range(0, arrays.eta.size(), arrays.w.size(), arrays.eta.size());
    const ChainView view(chains);
    const LabelCosts costs = prices.view(chains);
    Exponentiated state{lambda,
                        sharpness,
                        arrays.w.data(),
                        arrays.theta.data(),
                        arrays.theta_offsets.data(),
                        arrays.eta.data(),
                        entropies,
                        arrays.term.data()};
    Outcome outcome;
    {
        GilReleased release;
        outcome = CHORDAL_DISPATCH(
            exponentiated(view.chains, costs, order.data(), order.size(), interrupted, state));
    }
    raise_outcome(outcome);
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<ExponentiatedArrays>(m, "Exponentiated", "Scores as dual variables of chains.")
        .def(nb::init<Output<double>, Output<double>, Input<std::int64_t>, Output<double>,
                      Output<double>>(),
             nb::kw_only(), nb::arg("w"), nb::arg("theta"), nb::arg("theta_offsets"), nb::arg("eta"),
             nb::arg("term"));
    m.def("chain_exponentiated", &run_exponentiated, nb::arg("chains"), nb::arg("costs"),
          nb::arg("order"), nb::arg("l2"), nb::arg("sharpness"), nb::arg("entropies"),
          nb::arg("arrays"));
    m.def("chain_log_partitions",
          [](const ChainArrays& chains, std::size_t begin, std::size_t end, Input<double> w,
             Output<double> lead) {
              chains.require_range(begin, end, w.size(), lead.size());
              const ChainView view(chains);
              Outcome outcome;
              {
                  GilReleased release;
                  outcome = CHORDAL_DISPATCH(log_partitions(view.chains, begin, end, interrupted,
                                                            w.data(), lead.data()));
              }
              raise_outcome(outcome);
          },
          nb::arg("chains"), nb::arg("begin"), nb::arg("end"), nb::kw_only(), nb::arg("w"),
          nb::arg("lead"));
});

}  // namespace chordal
#endif
