// The semirings of chains, and how scores enter them: chain.hpp says what each is for.
#pragma once

#include "chain_product.hpp"

namespace chordal::CHORDAL_ISA {

// The range of a row or table of scores: largest, smallest finite, and whether −inf occurs.
struct Range {
    double highest = -kInfinity;
    double lowest = kInfinity;
    bool forbidden = false;

    CHORDAL_INLINE void include(const double* score, std::size_t n) {
        double top = -kInfinity, bottom = kInfinity;
        if (n >= kLanes) {
            Pack high = load(score + n - kLanes), low = high;  // the end overlaps the rest
            for (std::size_t j = 0; j + kLanes < n; j += kLanes) {
                const Pack x = load(score + j);
                high = maximum(high, x);
                low = minimum(low, x);
            }
            top = lane_max(high);
            bottom = lane_min(low);
        } else {
            for (std::size_t j = 0; j < n; ++j) {
                top = score[j] > top ? score[j] : top;
                bottom = score[j] < bottom ? score[j] : bottom;
            }
        }
        if (top > highest) highest = top;
        if (bottom == -kInfinity) {  // rare: look again for the smallest finite score
            forbidden = true;
            for (std::size_t j = 0; j < n; ++j)
                if (score[j] != -kInfinity && score[j] < lowest) lowest = score[j];
        } else if (bottom < lowest) {
            lowest = bottom;
        }
    }
    // Finite even when every score is −inf.
    double shift() const { return highest == -kInfinity ? 0.0 : highest; }
    double width() const { return highest == -kInfinity ? 0.0 : highest - lowest; }
};

struct Scaled {
    static constexpr bool kProbabilities = true;
    static CHORDAL_INLINE Pack zero() { return broadcast(0.0); }
    static constexpr double kZero = 0.0, kOne = 1.0;
    static CHORDAL_INLINE Pack accumulate(Pack sum, Pack x, Pack m) { return x * m + sum; }
    static CHORDAL_INLINE Pack combine(Pack a, Pack b) { return a + b; }
    static CHORDAL_INLINE Pack times(Pack a, Pack b) { return a * b; }
    static CHORDAL_INLINE double times(double a, double b) { return a * b; }
    static CHORDAL_INLINE double divide(double a, double b) { return a / b; }
    static CHORDAL_INLINE double inverse(double c) { return 1.0 / c; }
    static CHORDAL_INLINE double probability(double x) { return x; }
    static CHORDAL_INLINE Pack probability(Pack x) { return x; }
    static CHORDAL_INLINE double logarithm(double x) { return std::log(x); }

    // n padded entries
    static CHORDAL_INLINE double total(const double* x, std::size_t n) {
        Pack sum = zero();
        for (std::size_t j = 0; j < n; j += kLanes) sum += load(x + j);
        return lane_sum(sum);
    }
    template <class End>
    static inline void product(const double* x, const double* table, double* y, std::size_t rows,
                               std::size_t columns, std::size_t stride, End end) {
        product_by_panels<Scaled>(x, table, y, rows, columns, stride, end);
    }
    // Scores from[j], j < n, into the semiring, padded with zeros. `bounded` promises that none is
    // below shift - 708.
    static CHORDAL_INLINE void enter(const double* from, double shift, double* to, std::size_t n,
                                     bool bounded) {
        const Pack high = broadcast(shift);
        if (bounded && n >= kLanes) {
            const std::size_t last = n - kLanes;  // the end overlaps the rest
            for (std::size_t j = 0; j < last; j += kLanes)
                store(to + j, exp_bounded(load(from + j) - high));
            store(to + last, exp_bounded(load(from + last) - high));
            for (std::size_t j = n; j < padded(n); ++j) to[j] = 0.0;
            return;
        }
        for (std::size_t j = 0; j < padded(n); j += kLanes) {
            double part[kLanes];
            for (std::size_t k = 0; k < kLanes; ++k)
                part[k] = j + k < n ? from[j + k] : -kInfinity;
            store(to + j, exp_nonpositive(load(part) - high));
        }
    }
};

// What Log and Max share: scores enter as they are.
struct Scores {
    static constexpr bool kProbabilities = false;
    static constexpr double kZero = -kInfinity, kOne = 0.0;
    static CHORDAL_INLINE Pack zero() { return broadcast(-kInfinity); }
    static CHORDAL_INLINE Pack times(Pack a, Pack b) { return a + b; }
    static CHORDAL_INLINE double times(double a, double b) { return a + b; }
    static CHORDAL_INLINE double divide(double a, double b) { return a - b; }
    static CHORDAL_INLINE double inverse(double c) { return -c; }
    static CHORDAL_INLINE double logarithm(double x) { return x; }
    static CHORDAL_INLINE void enter(const double* from, double shift, double* to, std::size_t n,
                                     bool) {
        for (std::size_t j = 0; j < n; ++j) to[j] = from[j] - shift;
        for (std::size_t j = n; j < padded(n); ++j) to[j] = -kInfinity;
    }
};

struct Max : Scores {
    static CHORDAL_INLINE Pack accumulate(Pack best, Pack x, Pack m) {
        return maximum(best, x + m);
    }
    static CHORDAL_INLINE Pack combine(Pack a, Pack b) { return maximum(a, b); }
    static CHORDAL_INLINE double total(const double* x, std::size_t n) {
        Pack best = zero();
        for (std::size_t j = 0; j < n; j += kLanes) best = maximum(best, load(x + j));
        return lane_max(best);
    }
    template <class End>
    static inline void product(const double* x, const double* table, double* y, std::size_t rows,
                               std::size_t columns, std::size_t stride, End end) {
        product_by_panels<Max>(x, table, y, rows, columns, stride, end);
    }
};

struct Log : Scores {
    static CHORDAL_INLINE double probability(double x) { return std::exp(x); }
    static CHORDAL_INLINE Pack probability(Pack x) {
        return exp_nonpositive(minimum(x, broadcast(0.0)));  // rounding may leave 1e-16
    }
    static CHORDAL_INLINE double total(const double* x, std::size_t n) {
        const double top = Max::total(x, n);
        if (top == -kInfinity) return top;
        Pack sum = broadcast(0.0);
        for (std::size_t j = 0; j < n; j += kLanes)
            sum += exp_nonpositive(load(x + j) - broadcast(top));
        return top + std::log(lane_sum(sum));
    }
    // Two passes: the largest term of each column, then the sum of exponentials below it.
    template <class End>
    static inline void product(const double* x, const double* table, double* y, std::size_t rows,
                               std::size_t columns, std::size_t stride, End end) {
        Max::product(x, table, y, rows, columns, stride, Plain());
        for (std::size_t j = 0; j < columns; j += kLanes) {
            const Pack best = load(y + j);
            const Pack top = maximum(best, broadcast(kLowest));  // −inf − −inf would be NaN
            Pack sum = broadcast(0.0);
            for (std::size_t i = 0; i < rows; ++i)
                sum += exp_nonpositive(broadcast(x[i]) + load(table + i * stride + j) - top);
            for (std::size_t k = 0; k < kLanes; ++k)
                y[j + k] = best[k] == -kInfinity ? -kInfinity : best[k] + std::log(sum[k]);
            store(y + j, end.template finish<Log>(load(y + j), j));
        }
    }
};

}  // namespace chordal::CHORDAL_ISA
