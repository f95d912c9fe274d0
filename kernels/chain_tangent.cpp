// The derivative of a chain's marginals in a direction: forward–backward on conditional means.
//
// Let D(y) = Σ_t d_t(y_t) + Σ_t N_t(y_{t-1}, y_t) be the score of a labelling in the direction,
// d_t added to u_t and N_t to M_t. For an exponential family the derivative of an expectation is a
// covariance: d/dε P(y ∈ S) = P(y ∈ S) (E[D | y ∈ S] − E[D]). With P of chain_sum.cpp, and ~x_t
// for x_t − Σ_j P(y_t = j) x_t(j),
//
//   f_0 = ~d_0       f_t(j) = ~[d_t(j) + Σ_i P(y_{t-1} = i | y_t = j) (f_{t-1}(i) + N_t(i,j))]
//   b_{T-1} = 0      b_{t-1}(i) = ~[Σ_j P(y_t = j | y_{t-1} = i) (N_t(i,j) + r_t(j))]
//   r_t = d_t + b_t
//   ∂P(y_t = j) = P(y_t = j) (f_t(j) + b_t(j))
//   ∂P(y_{t-1} = i, y_t = j) = P(i,j) (f_{t-1}(i) + N_t(i,j) + r_t(j) − e_t)
//   e_t = Σ_ij P(i,j) (f_{t-1}(i) + N_t(i,j)) + Σ_j P(y_t = j) r_t(j)
//
// f and b are what the left and the right of a position have to say about D, each less its mean:
// they stay small however long the chain is. They are weighted means of finite numbers, so that they
// need no scaling and no logarithm of something negative. P(i,j) = A_{t-1}(i) M_t(i,j) V_t(j) is
// formed anew where it is needed.
//
// Hazard: a label of probability zero has no conditional mean. Any finite number will do, since it
// is only ever multiplied by zero. Means are divided by the sum of the weights that were added, so
// that they stay means where probabilities underflow.
// Reference: Vishwanathan et al. (2006), Accelerated training of conditional random fields with
// stochastic gradient methods, section 4 (differentiating the recursion gives H v).
#include <optional>

#include "chain_passes.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(Outcome marginals_derivative(const ChainBatch&, Domain, bool (*interrupted)(),
                                               const double* d_unary, const double* d_tables,
                                               const double* weight, double* log_partition,
                                               double* unary, double* tables);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

class Tangent {
public:
    // `unary` may be the memory of d_unary: d_t is read for the last time before row t is written.
    Tangent(const ChainBatch& batch, const double* d_unary, const double* d_tables, double* unary,
            double* tables, Patience& patience)
        : batch_(batch), d_unary_(d_unary), d_tables_(d_tables), unary_(unary), tables_(tables),
          patience_(patience) {}

    // After a forward pass; false if the user wants to stop.
    template <class S>
    bool add(const Chain& chain, Sweep<S>& sweep, double weight) {
        prepare(chain, sweep.stride);
        return nodes(chain, sweep) && forward(chain, sweep) && backward(chain, sweep, weight);
    }

private:
    void prepare(const Chain& chain, std::size_t stride) {
        stride_ = stride;
        node_.resize(chain.length * stride);
        f_.resize(chain.length * stride);
        pair_mean_.resize(chain.length);
        rows_.resize(4 * stride);
        for (std::size_t j = 0; j < 4 * stride; ++j) rows_[j] = 0.0;
    }

    // P(y_t), and V_t in the place of E_t.
    bool nodes(const Chain& chain, Sweep<Log>& sweep) {
        conditionals_.emplace(chain, sweep);
        const auto put = [&](std::size_t t, const double* P) {
            std::memcpy(node(t), P, stride_ * sizeof(double));
        };
        return conditionals_->run(patience_, put, [](std::size_t, std::size_t, const double*) {});
    }
    bool nodes(const Chain& chain, Sweep<Scaled>& sweep) {
        using S = Scaled;
        double* B = rows_.data();
        double* next = B + stride_;
        for (std::size_t j = 0; j < stride_; ++j) B[j] = next[j] = sweep.inverse[chain.length];
        for (std::size_t t = chain.length; t-- > 0;) {
            for (std::size_t j = 0; j < padded(chain.labels(t)); j += kLanes)
                store(node(t) + j, S::probability(S::times(load(sweep.a(t) + j), load(B + j))));
            if (t == 0) break;
            sweep.message(chain, t, B, sweep.e(t), next);
            double* old = B;
            B = next;
            next = old;
            if (patience_.spent(stride_ * stride_)) return false;
        }
        return true;
    }

    // P(y_{t-1} = i, y_t = j) for all j.
    CHORDAL_INLINE void pairs(Sweep<Log>&, std::size_t t, std::size_t i, std::size_t, double* P) {
        conditionals_->pairs(t, i, P);
    }
    CHORDAL_INLINE void pairs(Sweep<Scaled>& sweep, std::size_t t, std::size_t i, std::size_t n,
                              double* P) {
        using S = Scaled;
        const Pack a = broadcast(sweep.a(t - 1)[i]);
        const double* m = sweep.tables.forward(t) + i * stride_;
        for (std::size_t j = 0; j < padded(n); j += kLanes)
            store(P + j, S::probability(S::times(S::times(a, load(m + j)), load(sweep.e(t) + j))));
    }

    // x_t less its mean; n entries.
    static void centre(const double* P, double* x, std::size_t n) {
        double sum = 0.0, whole = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
            sum += P[j] * x[j];
            whole += P[j];
        }
        const double mean = sum / whole;
        for (std::size_t j = 0; j < n; ++j) x[j] -= mean;
    }

    // f_t, and the first sum of e_t.
    template <class S>
    bool forward(const Chain& chain, Sweep<S>& sweep) {
        double *P = rows_.data(), *sum = P + stride_, *weight = sum + stride_;
        for (std::size_t t = 0; t < chain.length; ++t) {
            const std::size_t n = chain.labels(t);
            const double* d = d_unary_ + chain.offsets[t];
            for (std::size_t j = 0; j < n; ++j) sum[j] = weight[j] = 0.0;
            if (t > 0) {
                const double* N = d_tables_ + batch_.table_offsets[chain.table[t - 1]];
                for (std::size_t i = 0; i < chain.labels(t - 1); ++i, N += n) {
                    pairs(sweep, t, i, n, P);
                    const double left = f(t - 1)[i];
                    for (std::size_t j = 0; j < n; ++j) sum[j] += P[j] * (left + N[j]);
                    for (std::size_t j = 0; j < n; ++j) weight[j] += P[j];
                }
            }
            pair_mean_[t] = 0.0;
            for (std::size_t j = 0; j < n; ++j) {
                pair_mean_[t] += sum[j];
                f(t)[j] = d[j] + (weight[j] > 0.0 ? sum[j] / weight[j] : 0.0);
            }
            centre(node(t), f(t), n);
            if (patience_.spent(2 * stride_ * stride_)) return false;
        }
        return true;
    }

    // b_t, and with it the derivatives.
    template <class S>
    bool backward(const Chain& chain, Sweep<S>& sweep, double weight) {
        double *P = rows_.data(), *product = P + stride_, *b = product + stride_, *r = b + stride_;
        for (std::size_t j = 0; j < stride_; ++j) P[j] = product[j] = b[j] = 0.0;
        for (std::size_t t = chain.length; t-- > 0;) {
            const std::size_t n = chain.labels(t);
            const double* d = d_unary_ + chain.offsets[t];
            double* out = unary_ + chain.offsets[t];
            double mean = pair_mean_[t];  // e_t
            for (std::size_t j = 0; j < n; ++j) {
                r[j] = d[j] + b[j];
                mean += node(t)[j] * r[j];
                out[j] = weight * node(t)[j] * (f(t)[j] + b[j]);
            }
            if (t == 0) break;
            const auto begin = batch_.table_offsets[chain.table[t - 1]];
            const double* N = d_tables_ + begin;
            double* cells = tables_ + begin;
            for (std::size_t j = n; j < stride_; ++j) product[j] = 0.0;
            for (std::size_t i = 0; i < chain.labels(t - 1); ++i, N += n, cells += n) {
                pairs(sweep, t, i, n, P);
                const double left = f(t - 1)[i] - mean;
                for (std::size_t j = 0; j < n; ++j) product[j] = P[j] * (N[j] + r[j]);
                for (std::size_t j = 0; j < n; ++j)
                    cells[j] += weight * (product[j] + P[j] * left);
                const double total = Scaled::total(P, padded(n));
                b[i] = total > 0.0 ? Scaled::total(product, padded(n)) / total : 0.0;
            }
            centre(node(t - 1), b, chain.labels(t - 1));
            if (patience_.spent(2 * stride_ * stride_)) return false;
        }
        return true;
    }

    double* node(std::size_t t) const { return node_.data() + t * stride_; }  // P(y_t)
    double* f(std::size_t t) const { return f_.data() + t * stride_; }

    const ChainBatch& batch_;
    const double *d_unary_, *d_tables_;
    double *unary_, *tables_;
    Patience& patience_;
    Scratch node_, f_, pair_mean_, rows_;
    std::optional<Conditionals> conditionals_;  // of a sweep in logarithms
    std::size_t stride_ = 0;
};

Outcome marginals_derivative(const ChainBatch& batch, Domain domain, bool (*interrupted)(),
                             const double* d_unary, const double* d_tables, const double* weight,
                             double* log_partition, double* unary, double* tables) {
    Patience patience(interrupted);
    Tangent tangent(batch, d_unary, d_tables, unary, tables, patience);
    Sweep<Scaled> scaled;
    Sweep<Log> logarithmic;
    for (std::size_t example = 0; example < batch.examples; ++example) {
        const Chain chain = batch.chain(example);
        const auto finish = [&](auto& sweep) {
            log_partition[example] = sweep.log_partition;
            if (chain.length == 0 || sweep.log_partition == -kInfinity) return true;
            return tangent.add(chain, sweep, weight ? weight[example] : 1.0);
        };
        Outcome outcome = Outcome::range;
        bool go_on = true;
        if (domain != Domain::logarithm) {
            outcome = scaled.forward(batch, chain, patience);
            if (outcome == Outcome::done) go_on = finish(scaled);
        }
        if (outcome == Outcome::range && domain != Domain::scaled) {
            outcome = logarithmic.forward(batch, chain, patience);
            if (outcome == Outcome::done) go_on = finish(logarithmic);
        }
        if (outcome != Outcome::done) return outcome;
        if (!go_on) return Outcome::stopped;
    }
    return Outcome::done;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "chain_binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // The parts' unary may be the memory of the direction's; their tables hold zeros.
    m.def(
        "chain_marginals_derivative",
        [](const BoundScores& scores, const BoundParts& parts, const char* domain,
           const BoundScores& direction, Weight weight, Output<double> log_partition) {
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(marginals_derivative(
                    batch, domain_of(domain), interrupted, direction.unary, direction.tables,
                    data_of(weight), log_partition.data(), parts.unary, parts.tables));
            });
        },
        nb::arg("scores"), nb::arg("parts"), nb::arg("domain"), nb::kw_only(), nb::arg("direction"),
        nb::arg("weight").none(), nb::arg("log_partition"));
});

}  // namespace chordal
#endif
