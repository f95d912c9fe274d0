// What messages are made of: a product ⊗ that adds scores, and a sum ⊕ over labels.
//
//   Sum      probabilities          ⊗ is ·   ⊕ is +      entries are 0 or in [kSmallest, 1]
//   LogSum   logarithms             ⊗ is +   ⊕ is log Σ exp
//   MaxSum   logarithms             ⊗ is +   ⊕ is max
//
// All rows have a multiple of four entries, filled up with ⊕'s zero. No ring divides, so that a zero
// (a label that is impossible) stays one and never becomes NaN.
//
// Hazard: products of probabilities underflow. `normalise` makes the largest entry 1 and reports an
// entry between 0 and kSmallest as `wide`; what is not wide has no product of five that underflows.
#pragma once

#include "simd.hpp"

namespace chordal::CHORDAL_ISA {

constexpr double kSmallest = 1e-50, kLogSmallest = -115.12925464970229;

CHORDAL_INLINE double row_max(const double* x, std::size_t width) {
    Pack highest = load(x);
    for (std::size_t j = kLanes; j < width; j += kLanes) highest = maximum(highest, load(x + j));
    return lane_max(highest);
}

struct Sum {
    static constexpr double kZero = 0.0, kOne = 1.0;
    static constexpr bool kLogarithms = false, kSideBySide = true;

    static double from_score(double score, double highest) { return std::exp(score - highest); }
    // Several packs at a time: the exponential is one long chain of operations.
    template <std::size_t N>
    static CHORDAL_INLINE void from_scores(Pack (&score)[N]) {
        exp_nonpositive(score);
    }
    static double to_log(double x) { return std::log(x); }

    static CHORDAL_INLINE Pack times(Pack x, Pack y) { return x * y; }
    static CHORDAL_INLINE Pack plus(Pack total, Pack x, Pack y) { return total + x * y; }
    static void times(double* x, const double* by, std::size_t width) {
        for (std::size_t j = 0; j < width; j += kLanes) store(x + j, load(x + j) * load(by + j));
    }
    // ⊕_i table(i, ·) ⊗ n(i)
    static void across(const double* table, std::size_t stride, const double* n, std::size_t count,
                       std::size_t width, double, double* out) {
        for (std::size_t j = 0; j < width; j += kLanes) {
            Pack total = load(table + j) * broadcast(n[0]);
            for (std::size_t i = 1; i < count; ++i)
                total += load(table + i * stride + j) * broadcast(n[i]);
            store(out + j, total);
        }
    }
    // ⊕_j row(j) ⊗ n(j)
    static double along(const double* row, const double* n, std::size_t width, double) {
        Pack total = load(row) * load(n);
        for (std::size_t j = kLanes; j < width; j += kLanes) total += load(row + j) * load(n + j);
        return lane_sum(total);
    }
    static double total(const double* x, std::size_t width) {
        double sum = 0.0;
        for (std::size_t j = 0; j < width; ++j) sum += x[j];
        return sum;
    }
    static void to_probabilities(double* x, std::size_t width) {
        const double sum = total(x, width);
        for (std::size_t j = 0; j < width; ++j) x[j] /= sum;
    }
    // False if nothing is left.
    static bool normalise(double* x, std::size_t width, bool& wide) {
        const double highest = row_max(x, width);
        if (!(highest > 0.0)) return false;
        const Pack factor = broadcast(1.0 / highest), smallest = broadcast(kSmallest);
        Pack lost = broadcast(0.0);
        for (std::size_t j = 0; j < width; j += kLanes) {
            const Pack value = load(x + j) * factor;
            lost = maximum(lost, value - zero_below(value, smallest, value));
            store(x + j, value);
        }
        wide |= lane_max(lost) > 0.0;
        return true;
    }
    // The same for several rows side by side, one per lane. Returns the least entry of each, NaN where
    // nothing is left; unless it is kSafe or more, what was made has to be inspected.
    static constexpr double kSafe = kSmallest;
    static CHORDAL_INLINE Pack normalise(Pack* x, std::size_t labels) {
        Pack highest = x[0];
        CHORDAL_UNROLL
        for (std::size_t j = 1; j < labels; ++j) highest = maximum(highest, x[j]);
        const Pack factor = broadcast(1.0) / highest;
        Pack least = x[0] = x[0] * factor;
        CHORDAL_UNROLL
        for (std::size_t j = 1; j < labels; ++j) {
            x[j] = x[j] * factor;
            least = minimum(least, x[j]);
        }
        return least;
    }
    static bool inspect(const Pack* x, std::size_t labels, bool& wide) {
        bool left = true;
        for (std::size_t j = 0; j < labels; ++j)
            for (std::size_t k = 0; k < kLanes; ++k) {
                left &= x[j][k] >= 0.0;
                wide |= x[j][k] > 0.0 && x[j][k] < kSmallest;
            }
        return left;
    }
    // Moves `old` to `made`, all the way but a share `damping`; `furthest` is how far they were apart.
    static CHORDAL_INLINE Pack move(double* old, Pack made, Pack damping, Pack& furthest) {
        const Pack step = made - load(old), now = made - damping * step;
        furthest = maximum(furthest, absolute(step));
        store(old, now);
        return now;
    }
};

// Both rings of logarithms. Steps are taken and measured in them, so that small entries count.
struct Logarithms {
    static constexpr double kZero = -kInfinity, kOne = 0.0;
    static constexpr bool kLogarithms = true;

    static double from_score(double score, double) { return score; }
    template <std::size_t N>
    static CHORDAL_INLINE void from_scores(Pack (&)[N]) {}
    static double to_log(double x) { return x; }
    static CHORDAL_INLINE Pack times(Pack x, Pack y) { return x + y; }
    static void times(double* x, const double* by, std::size_t width) {
        for (std::size_t j = 0; j < width; j += kLanes) store(x + j, load(x + j) + load(by + j));
    }
    static bool normalise(double* x, std::size_t width, bool&) {
        const double highest = row_max(x, width);
        if (highest == -kInfinity) return false;
        for (std::size_t j = 0; j < width; j += kLanes)
            store(x + j, load(x + j) - broadcast(highest));
        return true;
    }
    // Side by side; the highest entries were these.
    static constexpr double kSafe = kLowest;
    static CHORDAL_INLINE Pack normalise(Pack* x, std::size_t labels) {
        Pack highest = x[0];
        CHORDAL_UNROLL
        for (std::size_t j = 1; j < labels; ++j) highest = maximum(highest, x[j]);
        CHORDAL_UNROLL
        for (std::size_t j = 0; j < labels; ++j) x[j] = x[j] - highest;
        return highest;
    }
    static bool inspect(const Pack* x, std::size_t labels, bool&) {
        for (std::size_t j = 0; j < labels; ++j)
            for (std::size_t k = 0; k < kLanes; ++k)
                if (!(x[j][k] <= 0.0)) return false;  // -inf - -inf
        return true;
    }
    // What either side forbids stays forbidden.
    static CHORDAL_INLINE Pack move(double* old, Pack made, Pack damping, Pack& furthest) {
        const Pack lowest = broadcast(kLowest), none = broadcast(-kInfinity), a = load(old);
        const Pack from = maximum(a, lowest), to = maximum(made, lowest);
        furthest = maximum(furthest, absolute(to - from));
        const Pack now = where_equal(minimum(a, made), none, none, to - damping * (to - from));
        store(old, now);
        return now;
    }
};

// The same for a whole row; returns how far it was from `made`.
template <class Ring>
CHORDAL_INLINE double move_row(double* old, const double* made, std::size_t width, double damping) {
    Pack furthest = broadcast(0.0);
    for (std::size_t j = 0; j < width; j += kLanes)
        Ring::move(old + j, load(made + j), broadcast(damping), furthest);
    return lane_max(furthest);
}

struct MaxSum : Logarithms {
    static constexpr bool kSideBySide = true;
    static CHORDAL_INLINE Pack plus(Pack total, Pack x, Pack y) { return maximum(total, x + y); }
    static void across(const double* table, std::size_t stride, const double* n, std::size_t count,
                       std::size_t width, double, double* out) {
        for (std::size_t j = 0; j < width; j += kLanes) {
            Pack best = load(table + j) + broadcast(n[0]);
            for (std::size_t i = 1; i < count; ++i)
                best = maximum(best, load(table + i * stride + j) + broadcast(n[i]));
            store(out + j, best);
        }
    }
    static double along(const double* row, const double* n, std::size_t width, double) {
        Pack best = load(row) + load(n);
        for (std::size_t j = kLanes; j < width; j += kLanes)
            best = maximum(best, load(row + j) + load(n + j));
        return lane_max(best);
    }
    static double total(const double* x, std::size_t width) { return row_max(x, width); }
};

// log Σ exp, with tables to a power: cells enter as power · score.
struct LogSum : Logarithms {
    static constexpr bool kSideBySide = false;
    static void across(const double* table, std::size_t stride, const double* n, std::size_t count,
                       std::size_t width, double power, double* out) {
        const Pack p = broadcast(power);
        for (std::size_t j = 0; j < width; j += kLanes) {
            Pack best = broadcast(kLowest), total = broadcast(0.0);
            for (std::size_t i = 0; i < count; ++i)
                best = maximum(best, load(table + i * stride + j) * p + broadcast(n[i]));
            for (std::size_t i = 0; i < count; ++i)
                total += exp_nonpositive(load(table + i * stride + j) * p + broadcast(n[i]) - best);
            for (std::size_t k = 0; k < kLanes; ++k) out[j + k] = best[k] + std::log(total[k]);
        }
    }
    static double along(const double* row, const double* n, std::size_t width, double power) {
        const Pack p = broadcast(power);
        Pack best = broadcast(kLowest), total = broadcast(0.0);
        for (std::size_t j = 0; j < width; j += kLanes)
            best = maximum(best, load(row + j) * p + load(n + j));
        const double highest = lane_max(best);
        for (std::size_t j = 0; j < width; j += kLanes)
            total += exp_nonpositive(load(row + j) * p + load(n + j) - broadcast(highest));
        return highest + std::log(lane_sum(total));
    }
    static double total(const double* x, std::size_t width) {
        const double highest = row_max(x, width);
        if (highest == -kInfinity) return highest;
        double sum = 0.0;
        for (std::size_t j = 0; j < width; ++j) sum += std::exp(x[j] - highest);
        return highest + std::log(sum);
    }
    // Relative to the largest: of large scores, log(sum) is lost in the rounding of a total.
    static void to_probabilities(double* x, std::size_t width) {
        const double highest = row_max(x, width);
        double sum = 0.0;
        for (std::size_t j = 0; j < width; ++j) {
            x[j] = highest == -kInfinity ? 0.0 : std::exp(x[j] - highest);
            sum += x[j];
        }
        for (std::size_t j = 0; j < width && sum > 0.0; ++j) x[j] /= sum;
    }
};

}  // namespace chordal::CHORDAL_ISA
