// Tables whose scores depend on the distance of two labels alone, and quick best messages through them.
//
//   ψ(i, j) = f(|i - j|),   f(0) >= f(d) >= f(L - 1) for all d,   f(d) = f(L - 1) from d = reach on
//
//   m(j) = max_i n(i) + ψ(i, j) = max(f(L - 1) + max_i n(i), max_{|i - j| < reach} n(i) + f(|i - j|))
//
// takes L · reach steps; reach is 1 for Potts tables. Where f falls evenly up to the reach, f(d) = f(0) - d · slope,
// a distance d is the sum of shorter ones, and L · log(reach) steps are enough: after x(j) <- max(x(j), x(j ± h) -
// h · slope) for h = 1, 2, 4, ... all distances below 2h are covered.
//
// A table is taken for such a one only if it is the same cell by cell. Messages of L · reach steps are those of the
// table, bit for bit; even ones are the same but for rounding (of a few units in the last place of f).
//
// Reference: Felzenszwalb and Huttenlocher (2006), Efficient belief propagation for early vision.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace chordal {

struct Distances {
    std::int64_t reach = 0;  // 0: the table is not of this kind, or too wide to gain from it
    double slope = 0.0;      // 0: f does not fall evenly, or is so short that it does not matter
    double decay = 0.0;      // exp(-slope); 0 also where f is so large that its rounding matters in exp f
};

// Of a table [rows, columns].
Distances distances_of(const double* table, std::int64_t rows, std::int64_t columns);

// m [padded labels] from the row n, shifted by `shift` down and padded with -inf. f is the table's first row,
// `highest` the largest of n; the largest of m is then highest + f[0] - shift. n and `spare` are rows of DistanceRows.
CHORDAL_BOTH_ISAS(void distance_message(const double* f, const Distances& distances, double* n, double* spare,
                                        std::size_t labels, double highest, double shift, double* m);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// Two rows with -inf on both sides.
class DistanceRows {
public:
    void open(std::size_t labels) {
        if (labels == labels_) return;
        labels_ = labels;
        width_ = padded(labels);
        cells_.resize(6 * width_);
        for (std::size_t j = 0; j < 6 * width_; ++j) cells_[j] = -kInfinity;
    }
    double* n() const { return cells_.data() + width_; }
    double* spare() const { return cells_.data() + 4 * width_; }

private:
    std::size_t labels_ = 0, width_ = 0;
    Scratch cells_;
};

}  // namespace chordal::CHORDAL_ISA
