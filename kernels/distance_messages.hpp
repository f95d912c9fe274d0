// Messages through tables of label distances (distance_tables.hpp) in each ring of rings.hpp, in time in
// proportion to the labels.
//
// Best messages are those of distance_tables.hpp. Sums, with g(d) = exp f(d) and f(d) = f(L - 1) from d = R on:
//
//   m(j) = Σ_i g(|i - j|) n(i) = g(L - 1) Σ_i n(i) + Σ_{|i - j| < R} (g(|i - j|) - g(L - 1)) n(i)
//
// which is one scaled term for Potts tables (R = 1) and a short window elsewhere. Where f falls evenly,
// g(d) = q^d for d < R, two recursions are enough: with F(j) = n(j) + q F(j - 1), P(j) = n(j) + P(j - 1) and
// U = g(L - 1) P - q^R F, and B, V the same from the other end,
//
//   m(j) = F(j) + B(j) - n(j) + U(j - R) + V(j + R)
//
// A pack of labels goes on from the pack before it: F(j) = Σ_{k < lanes} q^k n(j - k) + q^lanes F(j - lanes).
//
// Hazard: U and V are differences. They lose at most some rounding of g(L - 1) Σ n, and m(j) is no smaller than
// that. This needs g(L - 1) >= q^R, so a table that falls further behind its even part is not treated so.
// Logarithms are taken relative to the largest n: what underflows there is lost in rounding, as long as
// g(L - 1) is far from underflow. Elsewhere the caller takes the whole table.
#pragma once

#include "distance_tables.hpp"
#include "rings.hpp"

namespace chordal::CHORDAL_ISA {

// How many labels make the way by distances the quicker one (measured on grids), and how much the blocks of
// edge_blocks.hpp gain on whole tables.
constexpr std::size_t kManyForPotts = 12, kManyForOthers = 24, kManyForLogarithms = 6, kGainOfBlocks = 2;

inline bool enough(const Distances& distances, std::size_t labels) {
    return distances.reach > 0 && labels >= (distances.reach == 1 ? kManyForPotts : kManyForOthers);
}

// Rows of probabilities with zeros on both sides.
class DistanceSums {
public:
    void open(std::size_t labels) {
        if (labels == labels_) return;
        labels_ = labels;
        width_ = padded(labels);
        cells_.resize(12 * width_);
        for (std::size_t j = 0; j < 12 * width_; ++j) cells_[j] = 0.0;
    }
    // To be filled before a message is made; beyond the labels there are zeros.
    double* n() const { return row(0); }

    // Whether sums by these distances are quicker than by the table, and as good. g has the first row of the table.
    static bool possible(const double* g, std::size_t reach, double q, std::size_t labels) {
        return reach == 1 || even(g, reach, q, labels) || 2 * reach <= labels;
    }
    // m [padded labels] through a table whose first row is g; q > 0 if it falls evenly before the reach.
    void message(const double* g, std::size_t reach, double q, double* m) {
        if (reach == 1)
            by_window<1>(g, reach, m);
        else if (even(g, reach, q, labels_))
            by_recursion(g, reach, q, m);
        else
            by_window<0>(g, reach, m);
        for (std::size_t j = labels_; j < width_; ++j) m[j] = 0.0;
    }

private:
    static bool even(const double* g, std::size_t reach, double q, std::size_t labels) {
        constexpr double kRounding = 1.0 + 1e-12;
        return q > 0.0 && reach >= kLanes && g[labels - 1] * kRounding >= g[reach - 1] * q;
    }
    double* row(std::size_t k) const { return cells_.data() + (3 * k + 1) * width_; }

    template <std::size_t kReach>
    void by_window(const double* g, std::size_t reach, double* m) {
        const double* x = n();
        Pack sum = broadcast(0.0);
        for (std::size_t j = 0; j < width_; j += kLanes) sum += load(x + j);
        const double last = g[labels_ - 1];
        const Pack floor = broadcast(last * lane_sum(sum));
        for (std::size_t j = 0; j < width_; j += kLanes) {
            Pack total = floor + load(x + j) * broadcast(g[0] - last);
            for (std::size_t d = 1; d < (kReach > 0 ? kReach : reach); ++d)
                total += (load(x + j - d) + load(x + j + d)) * broadcast(g[d] - last);
            store(m + j, total);
        }
    }

    // A pack of labels and those before it (or after it), as they are and weighted by powers of q.
    struct Near {
        Pack sum, weighted;
    };
    template <bool kBefore>
    static CHORDAL_INLINE Near near(const double* x, Pack q) {
        Pack sum = load(x), weighted = sum, power = q;
        CHORDAL_UNROLL
        for (std::size_t k = 1; k < kLanes; ++k, power = power * q) {
            const Pack other = load(kBefore ? x - k : x + k);
            sum += other;
            weighted += power * other;
        }
        return {sum, weighted};
    }
    void by_recursion(const double* g, std::size_t reach, double decay, double* m) {
        const double *x = n(), last = g[labels_ - 1];
        double *before = row(1), *far_before = row(2), *far_after = row(3);
        const Pack q = broadcast(decay), floor = broadcast(last), cut = broadcast(g[reach - 1] * decay);
        Pack lanes = q;
        for (std::size_t k = 1; k < kLanes; ++k) lanes = lanes * q;
        Pack f = broadcast(0.0), p = f;
        for (std::size_t j = 0; j < width_; j += kLanes) {
            const Near here = near<true>(x + j, q);
            f = here.weighted + lanes * f;
            p += here.sum;
            store(before + j, f);
            store(far_before + j, floor * p - cut * f);
        }
        f = p = broadcast(0.0);
        for (std::size_t j = width_; j > 0;) {
            j -= kLanes;
            const Near here = near<false>(x + j, q);
            f = here.weighted + lanes * f;
            p += here.sum;
            store(far_after + j, floor * p - cut * f);
            const Pack within = load(before + j) + (f - load(x + j));
            store(m + j, within + (load(far_before + j - reach) + load(far_after + j + reach)));
        }
    }

    std::size_t labels_ = 0, width_ = 0;
    Scratch cells_;  // n, F, U, V
};

// The message through a table that begins with `first`, in the ring's numbers and to a power; false if the
// whole table has to be taken. n and m have padded rows. `pays` says for which tables it is quicker.
template <class Ring>
class DistanceMessages;

template <>
class DistanceMessages<MaxSum> {
public:
    static bool pays(const Distances& distances, std::size_t labels) { return enough(distances, labels); }
    bool through(const double* first, const Distances& distances, double, const double* n, std::size_t labels,
                 double* m) {
        rows_.open(labels);
        for (std::size_t j = 0; j < padded(labels); j += kLanes) store(rows_.n() + j, load(n + j));
        distance_message(first, distances, rows_.n(), rows_.spare(), labels, row_max(n, padded(labels)), 0.0, m);
        return true;
    }

private:
    DistanceRows rows_;
};

template <>
class DistanceMessages<Sum> {
public:
    static bool pays(const Distances& distances, std::size_t labels) { return enough(distances, labels); }
    bool through(const double* first, const Distances& distances, double, const double* n, std::size_t labels,
                 double* m) {
        const auto reach = static_cast<std::size_t>(distances.reach);
        if (!DistanceSums::possible(first, reach, distances.decay, labels)) return false;
        sums_.open(labels);
        for (std::size_t j = 0; j < padded(labels); j += kLanes) store(sums_.n() + j, load(n + j));
        sums_.message(first, reach, distances.decay, m);
        return true;
    }

private:
    DistanceSums sums_;
};

template <>
class DistanceMessages<LogSum> {
public:
    static bool pays(const Distances& distances, std::size_t labels) {
        return distances.reach > 0 && labels >= kManyForLogarithms;
    }
    bool through(const double* first, const Distances& distances, double power, const double* n, std::size_t labels,
                 double* m) {
        constexpr double kWidest = 600.0;
        if (!(power * (first[0] - first[labels - 1]) <= kWidest)) return false;
        const auto reach = static_cast<std::size_t>(distances.reach);
        const std::size_t width = padded(labels);
        const double decay = distances.decay > 0.0 ? std::exp(-power * distances.slope) : 0.0;
        row_.resize(width);
        for (std::size_t d = 0; d < reach; ++d) row_[d] = std::exp(power * (first[d] - first[0]));
        row_[labels - 1] = std::exp(power * (first[labels - 1] - first[0]));
        if (!DistanceSums::possible(row_.data(), reach, decay, labels)) return false;
        const double highest = row_max(n, width);
        if (highest == -kInfinity) {
            for (std::size_t j = 0; j < width; ++j) m[j] = -kInfinity;
            return true;
        }
        sums_.open(labels);
        for (std::size_t j = 0; j < width; j += kLanes)
            store(sums_.n() + j, exp_nonpositive(load(n + j) - broadcast(highest)));
        sums_.message(row_.data(), reach, decay, m);
        const double shift = highest + power * first[0];
        for (std::size_t j = 0; j < labels; ++j) m[j] = shift + std::log(m[j]);
        for (std::size_t j = labels; j < width; ++j) m[j] = -kInfinity;
        return true;
    }

private:
    DistanceSums sums_;
    Scratch row_;
};

}  // namespace chordal::CHORDAL_ISA
