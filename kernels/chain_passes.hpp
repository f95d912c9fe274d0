// Passes over chains in sums: forward over each of a batch, scaled where that is safe, and back.
//
// With many labels the table no longer fits into the first cache. Two chains that share it then go
// side by side, so that it is read once for both.
#pragma once

#include <algorithm>
#include <utility>

#include "chain.hpp"

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kManyLabels = 48;  // whose table is read from the second cache

// Whether two chains have the same large table for every edge.
inline bool share_table(const Chain& p, const Chain& q) {
    return p.length > 1 && q.length > 1 && p.labels(0) >= kManyLabels && p.tied() && q.tied() &&
           p.table[0] == q.table[0];
}

// The forward pass of two chains that share a table, side by side. False if one of them is not as
// usual (nothing allowed, or close to underflow): each is then to be done alone.
inline Outcome forward_of_two(const Chain chain[2], Sweep<Scaled> sweep[2], Patience& patience) {
    const std::size_t n = chain[0].labels(0), stride = sweep[0].stride;
    const std::size_t common = std::min(chain[0].length, chain[1].length);
    for (std::size_t t = 0; t < common; ++t) {
        for (std::size_t k = 0; k < 2; ++k)
            if (!sweep[k].scale(chain[k], t)) return Outcome::range;
        if (t == 0) {
            for (std::size_t k = 0; k < 2; ++k)
                std::memcpy(sweep[k].a(0), sweep[k].e(0), padded(n) * sizeof(double));
        } else {
            const double* x[2] = {sweep[0].a(t - 1), sweep[1].a(t - 1)};
            double* y[2] = {sweep[0].a(t), sweep[1].a(t)};
            const TimesRow end[2] = {{sweep[0].e(t), sweep[0].inverse[t]},
                                     {sweep[1].e(t), sweep[1].inverse[t]}};
            product_of_two<Scaled>(x, sweep[0].tables.forward(t), y, n, n, stride, end);
        }
        for (std::size_t k = 0; k < 2; ++k)
            if (!sweep[k].settle(chain[k], t)) return Outcome::range;
        if (patience.spent(2 * stride * stride)) return Outcome::stopped;
    }
    for (std::size_t k = 0; k < 2; ++k) {
        const Outcome outcome = sweep[k].advance(chain[k], common, patience);
        if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
}

// Runs body(example, chain, sweep), which says whether to go on, after a forward pass, scaled where
// that is safe; body_of_two(example, chains, sweeps) where two chains can go side by side.
template <class Body, class BodyOfTwo>
Outcome each_chain(const ChainBatch& batch, Domain domain, Patience& patience, Body body,
                   BodyOfTwo body_of_two) {
    Sweep<Scaled> scaled[2];
    Sweep<Log> logarithmic;
    for (std::size_t example = 0; example < batch.examples; ++example) {
        const Chain chain = batch.chain(example);
        if (domain != Domain::logarithm && example + 1 < batch.examples) {
            const Chain both[2] = {chain, batch.chain(example + 1)};
            Outcome outcome = share_table(both[0], both[1]) ? scaled[0].begin(batch, both[0], patience) : Outcome::range;
            if (outcome == Outcome::done) outcome = scaled[1].begin(batch, both[1], patience);
            if (outcome == Outcome::stopped) return outcome;
            if (outcome == Outcome::done) {
                outcome = forward_of_two(both, scaled, patience);
                if (outcome == Outcome::stopped) return outcome;
                if (outcome == Outcome::done) {
                    if (!body_of_two(example, both, scaled)) return Outcome::stopped;
                    ++example;
                    continue;
                }
            }
        }
        Outcome outcome = Outcome::range;
        if (domain != Domain::logarithm) {
            outcome = scaled[0].forward(batch, chain, patience);
            if (outcome == Outcome::done && !body(example, chain, scaled[0]))
                return Outcome::stopped;
        }
        if (outcome == Outcome::range && domain != Domain::scaled) {
            outcome = logarithmic.forward(batch, chain, patience);
            if (outcome == Outcome::done && !body(example, chain, logarithmic))
                return Outcome::stopped;
        }
        if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
}
template <class Body>
Outcome each_chain(const ChainBatch& batch, Domain domain, Patience& patience, Body body) {
    return each_chain(batch, domain, patience, body,
                      [&](std::size_t example, const Chain chain[2], Sweep<Scaled> sweep[2]) {
                          return body(example, chain[0], sweep[0]) &&
                                 body(example + 1, chain[1], sweep[1]);
                      });
}

// Calls visit(t, B_t) from position `from` to the first, given B there; leaves V_t in the place of
// E_t. False if the user wants to stop. B and next are the rows to work in.
constexpr std::size_t kDrift = 4096;  // positions after which rounding errors of B are taken back

// Σ_j A_t(j) B_t(j) is one, but for errors that add up over long chains: B_t is divided by it.
inline void settle_drift(const Chain& chain, const Sweep<Scaled>& sweep, std::size_t t, double* B) {
    if (t % kDrift != 0) return;
    double sum = 0.0;
    for (std::size_t j = 0; j < chain.labels(t); ++j) sum += sweep.a(t)[j] * B[j];
    if (!(sum > 0.5 && sum < 2.0)) return;
    for (std::size_t j = 0; j < chain.labels(t); ++j) B[j] /= sum;
}

template <class S, class Visit>
bool backward_from(std::size_t from, const Chain& chain, Sweep<S>& sweep, double* B, double* next,
                   Patience& patience, Visit visit) {
    for (std::size_t t = from + 1; t-- > 0;) {
        if constexpr (S::kProbabilities) settle_drift(chain, sweep, t, B);
        visit(t, B);
        if (t == 0) break;
        sweep.message(chain, t, B, sweep.e(t), next);
        std::swap(B, next);
        if (patience.spent(sweep.stride * sweep.stride)) return false;
    }
    return true;
}

template <class S, class Visit>
bool backward(const Chain& chain, Sweep<S>& sweep, Scratch& rows, Patience& patience,
              Visit visit) {
    if (chain.length == 0) return true;
    rows.resize(2 * sweep.stride);
    double* B = rows.data();
    double* next = B + sweep.stride;
    for (std::size_t j = 0; j < sweep.stride; ++j) B[j] = next[j] = sweep.inverse[chain.length];
    return backward_from(chain.length - 1, chain, sweep, B, next, patience, visit);
}

// out(j) = weight * P(y_t = j), given B_t.
CHORDAL_INLINE void write_marginals(const Chain& chain, const Sweep<Scaled>& sweep, double weight,
                                    std::size_t t, const double* B, double* out) {
    const double* a = sweep.a(t);
    const std::size_t n = chain.labels(t);
    if (n < kLanes) {
        for (std::size_t j = 0; j < n; ++j) out[j] = weight * (a[j] * B[j]);
        return;
    }
    const Pack scale = broadcast(weight);
    for (std::size_t j = 0; j < n - kLanes; j += kLanes)
        store(out + j, scale * (load(a + j) * load(B + j)));
    const std::size_t j = n - kLanes;  // the end overlaps the rest
    store(out + j, scale * (load(a + j) * load(B + j)));
}

// Probabilities after a forward pass in logarithms, from the last position to the first; the symbols
// are those of chain.hpp. top takes the place of E_t.
class Conditionals {
public:
    Conditionals(const Chain& chain, Sweep<Log>& sweep) : chain_(chain), sweep_(sweep) {
        F_.resize(chain.length * sweep.stride);
        rows_.resize(3 * sweep.stride);
        for (std::size_t j = 0; j < 3 * sweep.stride; ++j) rows_[j] = 0.0;
    }

    // Calls node(t, P_t), and edge(t, i, P(y_{t-1} = i, y_t = ·)) for each i, t falling; false if the
    // user wants to stop.
    template <class Node, class Edge>
    bool run(Patience& patience, Node node, Edge edge) {
        if (chain_.length == 0) return true;
        const std::size_t stride = sweep_.stride;
        double *P = rows_.data(), *next = P + stride, *row = next + stride;
        const std::size_t last = chain_.length - 1;
        for (std::size_t j = 0; j < chain_.labels(last); ++j) P[j] = 1.0;
        const double* A = sweep_.a(last);
        const Pack top = broadcast(Max::total(A, padded(chain_.labels(last))));
        for (std::size_t j = 0; j < padded(chain_.labels(last)); j += kLanes)
            store(P + j, exp_nonpositive(load(A + j) - top));
        normalise(P, last);
        for (std::size_t t = last + 1; t-- > 0;) {
            node(t, P);
            if (t == 0) break;
            condition(t, P);
            for (std::size_t i = 0; i < chain_.labels(t - 1); ++i) {
                pairs(t, i, row);
                next[i] = Scaled::total(row, padded(chain_.labels(t)));
                edge(t, i, row);
            }
            for (std::size_t i = chain_.labels(t - 1); i < stride; ++i) next[i] = 0.0;
            std::swap(P, next);
            normalise(P, t - 1);
            if (patience.spent(4 * stride * stride)) return false;
        }
        return true;
    }

    // P(y_{t-1} = i, y_t = j) for all j, padded with zeros; t must be behind.
    CHORDAL_INLINE void pairs(std::size_t t, std::size_t i, double* P) const {
        const double* F = F_.data() + t * sweep_.stride;
        for (std::size_t j = 0; j < padded(chain_.labels(t)); j += kLanes)
            store(P + j, below_top(t, i, j) * load(F + j));
    }

private:
    // exp(A_{t-1}(i) + M_t(i,j) − top_j)
    CHORDAL_INLINE Pack below_top(std::size_t t, std::size_t i, std::size_t j) const {
        const double* m = sweep_.tables.forward(t) + i * sweep_.stride;
        const Pack x = broadcast(sweep_.a(t - 1)[i]) + load(m + j);
        return exp_nonpositive(x - load(sweep_.e(t) + j));
    }
    // top and F of position t.
    void condition(std::size_t t, const double* P) {
        const std::size_t rows = chain_.labels(t - 1), width = padded(chain_.labels(t));
        double *top = sweep_.e(t), *F = F_.data() + t * sweep_.stride;
        Max::product(sweep_.a(t - 1), sweep_.tables.forward(t), top, rows, chain_.labels(t),
                     sweep_.stride, Plain());
        for (std::size_t j = 0; j < width; j += kLanes) {
            store(top + j, maximum(load(top + j), broadcast(kLowest)));  // −inf − −inf would be NaN
            Pack sum = broadcast(0.0);
            for (std::size_t i = 0; i < rows; ++i) sum += below_top(t, i, j);
            for (std::size_t k = j; k < j + kLanes; ++k)
                F[k] = P[k] > 0.0 && sum[k - j] > 0.0 ? P[k] / sum[k - j] : 0.0;
        }
    }
    void normalise(double* P, std::size_t t) const {
        const double total = Scaled::total(P, padded(chain_.labels(t)));
        for (std::size_t j = 0; j < chain_.labels(t); ++j) P[j] /= total;
    }

    const Chain& chain_;
    Sweep<Log>& sweep_;
    Scratch F_, rows_;
};

// The same for two chains that share a table: visit(k, t, B_t), k = 0, 1.
template <class Visit>
bool backward_of_two(const Chain chain[2], Sweep<Scaled> sweep[2], Scratch& rows,
                     Patience& patience, Visit visit) {
    const std::size_t n = chain[0].labels(0), stride = sweep[0].stride;
    rows.resize(4 * stride);
    double* B[2] = {rows.data(), rows.data() + stride};
    double* next[2] = {rows.data() + 2 * stride, rows.data() + 3 * stride};
    for (std::size_t k = 0; k < 2; ++k)
        for (std::size_t j = 0; j < stride; ++j)
            B[k][j] = next[k][j] = sweep[k].inverse[chain[k].length];
    std::size_t t[2] = {chain[0].length - 1, chain[1].length - 1};
    const Plain end[2];
    while (t[0] > 0 && t[1] > 0) {
        const double* V[2] = {sweep[0].e(t[0]), sweep[1].e(t[1])};
        for (std::size_t k = 0; k < 2; ++k) {
            settle_drift(chain[k], sweep[k], t[k], B[k]);
            visit(k, t[k], B[k]);
            sweep[k].weigh(chain[k], t[k], B[k], sweep[k].e(t[k]));
        }
        product_of_two<Scaled>(V, sweep[0].tables.backward(chain[0], t[0]), next, n, n, stride, end);
        for (std::size_t k = 0; k < 2; ++k) {
            std::swap(B[k], next[k]);
            --t[k];
        }
        if (patience.spent(2 * stride * stride)) return false;
    }
    for (std::size_t k = 0; k < 2; ++k) {
        const auto visit_one = [&](std::size_t at, const double* b) { visit(k, at, b); };
        if (!backward_from(t[k], chain[k], sweep[k], B[k], next[k], patience, visit_one))
            return false;
    }
    return true;
}

}  // namespace chordal::CHORDAL_ISA
