// Belief propagation on forests of edges, in scaled probabilities: log Z and marginals.
//
//   E_e = exp(M_e − max M_e),   β_v = exp(u_v − max u_v) before any message
//   up, leaves first:    m_e(i) = Σ_j E_e(i, j) β_v(j)          edge e from parent p to child v
//                        β_p(i) ← β_p(i) m_e(i),  β_v scaled to a largest of one before it is used
//   roots:               Z = Σ_i β(i),  P(i) = β(i) / Z
//   down, roots first:   q_e(i) = P_p(i) / m_e(i)
//                        P_v(j) = β_v(j) Σ_i q_e(i) E_e(i, j),   P_e(i, j) = q_e(i) E_e(i, j) β_v(j)
//
// log Z is the sum of all logarithms of scales. For a tied table q_e β_vᵀ is summed over its edges, and
// multiplied by E_e at the end. Messages wait on a stack: the way down meets them in the other order.
//
// Hazard: underflow. A message's labels differ by a factor of at most exp(range of M_e), and so β_v by
// exp(range of u_v + Σ over children of (range of M + log L)). An example in which this is above
// e^600, or whose tables hold −inf, is left to the clique tree (`done` says so). −inf among u is a zero.
//
// Reference: Pearl (1988), Probabilistic reasoning in intelligent systems, chapter 4.
#include "simd.hpp"
#include "sum.hpp"
#include "patience.hpp"
#include "tree.hpp"

namespace chordal {

// False after Ctrl-C. unary is null where only log Z is wanted; both parts are zero before.
CHORDAL_BOTH_ISAS(void tree_sums(const TreeBatch&, bool (*interrupted)(), const double* weight,
                                 double* log_partition, std::uint8_t* done, double* unary,
                                 double* tables);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {
namespace {

constexpr double kWidest = 600.0;

// y += a x
CHORDAL_INLINE void add_multiple(double a, const double* x, double* y, std::size_t n) {
    std::size_t k = 0;
    for (; k + kLanes <= n; k += kLanes) store(y + k, load(y + k) + broadcast(a) * load(x + k));
    for (; k < n; ++k) y[k] += a * x[k];
}

CHORDAL_INLINE double product(const double* x, const double* y, std::size_t n) {
    Pack sum = broadcast(0.0);
    std::size_t k = 0;
    for (; k + kLanes <= n; k += kLanes) sum += load(x + k) * load(y + k);
    double total = k ? lane_sum(sum) : 0.0;
    for (; k < n; ++k) total += x[k] * y[k];
    return total;
}

// to[k] = Σ_j E(k, j) x(j), for E [n, m] or its transpose stored as [m, n]
CHORDAL_INLINE void times(const double* E, bool as_rows, const double* x, std::size_t m, double* to,
                          std::size_t n) {
    if (as_rows) {
        for (std::size_t k = 0; k < n; ++k) to[k] = product(E + k * m, x, m);
        return;
    }
    for (std::size_t k = 0; k < n; ++k) to[k] = 0.0;
    for (std::size_t j = 0; j < m; ++j) add_multiple(x[j], E + j * n, to, n);
}

CHORDAL_INLINE double largest(const double* x, std::size_t n) {
    double most = x[0];
    for (std::size_t k = 1; k < n; ++k) most = x[k] > most ? x[k] : most;
    return most;
}

// The smallest that is not −inf.
CHORDAL_INLINE double smallest_finite(const double* x, std::size_t n) {
    double least = kInfinity;
    for (std::size_t k = 0; k < n; ++k)
        if (x[k] > -kInfinity && x[k] < least) least = x[k];
    return least;
}

void exponentials(const double* x, double most, double* to, std::size_t n) {
    std::size_t k = 0;
    for (; k + kLanes <= n; k += kLanes) store(to + k, exp_nonpositive(load(x + k) - broadcast(most)));
    if (k == n) return;
    double lane[kLanes];
    for (std::size_t j = 0; j < kLanes; ++j) lane[j] = k + j < n ? x[k + j] - most : 0.0;
    store(lane, exp_nonpositive(load(lane)));
    for (std::size_t j = 0; k + j < n; ++j) to[k + j] = lane[j];
}

class TreeSums {
public:
    TreeSums(const TreeBatch& t, bool (*interrupted)())
        : t_(t), patience_(interrupted), E_(size(t.table_offsets[t.n_tables])), top_(t.n_tables), range_(t.n_tables) {
        for (std::size_t k = 0; k < t.n_tables; ++k) {
            const std::int64_t first = t.table_offsets[k];
            const std::size_t n = size(t.table_offsets[k + 1] - first);
            if (n == 0) continue;
            const double* table = t.tables + first;
            double least = table[0];
            for (std::size_t j = 1; j < n; ++j) least = table[j] < least ? table[j] : least;
            top_[k] = largest(table, n);
            range_[k] = top_[k] - least;  // NaN where all is −inf
            exponentials(table, top_[k], E_.data() + first, n);
            patience_.spend(4 * n);
        }
    }

    // Whether the scores' range allows scaled probabilities.
    bool allows(std::size_t e) {
        const std::int64_t first = t_.variable_offsets[e], last = t_.variable_offsets[e + 1];
        spread_.resize(size(last - first));
        for (auto v = first; v < last; ++v) {
            const std::size_t n = size(t_.labels(v));
            const double* u = t_.unary + t_.state_offsets[v];
            const double least = smallest_finite(u, n);
            spread_[size(v - first)] = least < kInfinity ? largest(u, n) - least : 0.0;
        }
        for (auto k = t_.clique_offsets[e]; k < t_.clique_offsets[e + 1]; ++k) {
            const TreeEdge edge = t_.edge(k);
            // log₂ of the labels, rounded up, is more than enough.
            double bits = 1.0;
            for (auto n = t_.labels(edge.child); n > 1; n /= 2) bits += 1.0;
            spread_[size(edge.parent - first)] += range_[size(edge.table)] + bits;
        }
        for (auto v = first; v < last; ++v)
            if (!(spread_[size(v - first)] <= kWidest)) return false;
        return true;
    }

    // log Z; leaves β and the messages.
    double up(std::size_t e) {
        const std::int64_t first = t_.variable_offsets[e], last = t_.variable_offsets[e + 1];
        base_ = t_.state_offsets[first];
        beta_.resize(size(t_.state_offsets[last] - base_));
        log_z_ = Sum();
        scale_ = 1.0;
        for (auto v = first; v < last; ++v) {
            const double most = largest(t_.unary + t_.state_offsets[v], size(t_.labels(v)));
            if (most == -kInfinity) return -kInfinity;
            log_z_.add(most);
            exponentials(t_.unary + t_.state_offsets[v], most, beta(v), size(t_.labels(v)));
            patience_.spend(16 + 4 * size(t_.labels(v)));
        }
        const std::int64_t begin = t_.clique_offsets[e], end = t_.clique_offsets[e + 1];
        std::size_t room = 0;
        for (auto k = begin; k < end; ++k) room += size(t_.labels(t_.edge(k).parent));
        message_.resize(room);
        double* m = message_.data();
        for (auto k = end; k-- > begin;) {
            const TreeEdge edge = t_.edge(k);
            const std::size_t rows = size(t_.labels(edge.parent)), columns = size(t_.labels(edge.child));
            double* b = beta(edge.child);
            rescale(b, columns);
            log_z_.add(top_[size(edge.table)]);
            times(table(edge), edge.child_last, b, columns, m, rows);
            double* to = beta(edge.parent);
            for (std::size_t i = 0; i < rows; ++i) to[i] *= m[i];
            m += rows;
            patience_.spend(64 + rows * columns);
        }
        for (auto v = first; v < last; ++v) {
            if (t_.parent_edge[v] >= 0) continue;
            double sum = 0.0;
            for (std::size_t i = 0; i < size(t_.labels(v)); ++i) sum += beta(v)[i];
            count(sum);
        }
        log_z_.add(std::log(scale_));
        return log_z_.value();
    }

    // Marginals of variables, and of tables less their factor E, times the weight.
    void down(std::size_t e, double weight, double* unary, double* tables) {
        for (auto v = t_.variable_offsets[e]; v < t_.variable_offsets[e + 1]; ++v) {
            if (t_.parent_edge[v] >= 0) continue;
            const std::size_t n = size(t_.labels(v));
            double sum = 0.0;
            for (std::size_t i = 0; i < n; ++i) sum += beta(v)[i];
            double* to = unary + t_.state_offsets[v];
            for (std::size_t i = 0; i < n; ++i) to[i] = beta(v)[i] / sum;
        }
        const double* m = message_.data();
        for (auto k = t_.clique_offsets[e]; k < t_.clique_offsets[e + 1]; ++k)
            m += t_.labels(t_.edge(k).parent);
        for (auto k = t_.clique_offsets[e]; k < t_.clique_offsets[e + 1]; ++k) {
            const TreeEdge edge = t_.edge(k);
            const std::size_t rows = size(t_.labels(edge.parent)), columns = size(t_.labels(edge.child));
            const double* p = unary + t_.state_offsets[edge.parent];
            const double* b = beta(edge.child);
            double* to = unary + t_.state_offsets[edge.child];
            double* part = tables + t_.table_offsets[edge.table];
            m -= rows;
            q_.resize(rows);
            for (std::size_t i = 0; i < rows; ++i) q_[i] = p[i] / m[i];
            times(table(edge), !edge.child_last, q_.data(), rows, to, columns);
            for (std::size_t j = 0; j < columns; ++j) to[j] *= b[j];
            patience_.spend(64 + 2 * rows * columns);
            if (edge.child_last) {
                for (std::size_t i = 0; i < rows; ++i)
                    add_multiple(weight * q_[i], b, part + i * columns, columns);
            } else {
                for (std::size_t j = 0; j < columns; ++j)
                    add_multiple(weight * b[j], q_.data(), part + j * rows, rows);
            }
        }
        if (weight == 1.0) return;
        const std::int64_t from = t_.state_offsets[t_.variable_offsets[e]];
        for (auto k = from; k < t_.state_offsets[t_.variable_offsets[e + 1]]; ++k) unary[k] *= weight;
    }

    void finish(double* tables) const {
        const std::size_t n = size(t_.table_offsets[t_.n_tables]);
        for (std::size_t k = 0; k < n; ++k)
            if (tables[k] != 0.0) tables[k] *= E_[k];
    }

private:
    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    double* beta(std::int64_t v) { return beta_.data() + (t_.state_offsets[v] - base_); }
    const double* table(const TreeEdge& edge) const { return E_.data() + t_.table_offsets[edge.table]; }

    void rescale(double* b, std::size_t n) {
        const double most = largest(b, n), inverse = 1.0 / most;
        for (std::size_t j = 0; j < n; ++j) b[j] *= inverse;
        count(most);
    }

    // Scales are multiplied before their logarithm is taken.
    void count(double scale) {
        scale_ *= scale;
        if (scale_ > 1e-20 && scale_ < 1e20) return;
        log_z_.add(std::log(scale_));
        scale_ = 1.0;
    }

    const TreeBatch& t_;
    Patience patience_;
    Scratch E_, top_, range_, spread_, beta_, message_, q_;
    std::int64_t base_ = 0;
    Sum log_z_;
    double scale_ = 1.0;
};

}  // namespace

void tree_sums(const TreeBatch& t, bool (*interrupted)(), const double* weight, double* log_partition,
               std::uint8_t* done, double* unary, double* tables) {
    TreeSums sums(t, interrupted);
    for (std::size_t e = 0; e < t.examples; ++e) {
        done[e] = sums.allows(e);
        if (!done[e]) continue;
        log_partition[e] = sums.up(e);
        const double w = weight ? weight[e] : 1.0;
        if (unary && w != 0.0 && log_partition[e] > -kInfinity) sums.down(e, w, unary, tables);
    }
    if (unary) sums.finish(tables);
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <optional>

#include "tree_plan.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "tree_log_partition",
        [](const BoundScores& scores, const TreePlan& plan, Output<double> log_partition,
           Output<std::uint8_t> done) {
            GilReleased release;
            CHORDAL_DISPATCH(tree_sums(plan.on(scores), interrupted, nullptr, log_partition.data(),
                                       done.data(), nullptr, nullptr));
        },
        nb::arg("scores"), nb::arg("plan"), nb::arg("log_partition"), nb::arg("done"));
    m.def(
        "tree_marginals",
        [](const BoundScores& scores, const TreePlan& plan, const BoundParts& parts,
           Output<std::uint8_t> done, Weight weight, Output<double> log_partition) {
            GilReleased release;
            CHORDAL_DISPATCH(tree_sums(plan.on(scores), interrupted, data_of(weight),
                                       log_partition.data(), done.data(), parts.unary,
                                       parts.tables));
        },
        nb::arg("scores"), nb::arg("plan"), nb::arg("parts"), nb::arg("done"), nb::kw_only(),
        nb::arg("weight").none(), nb::arg("log_partition"));
});

}  // namespace chordal
#endif
