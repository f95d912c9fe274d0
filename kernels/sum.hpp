// A sum of very many numbers whose rounding errors do not add up.
//
// The error of each addition is kept apart and added in the end (Neumaier 1974). A million equal
// terms, such as the largest score of a tied table, would else be rounded alike.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace chordal::CHORDAL_ISA {

class Sum {
public:
    void add(double x) {
        const double total = sum_ + x;
        dropped_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - total) + x : (x - total) + sum_;
        sum_ = total;
    }
    double value() const { return sum_ + dropped_; }

private:
    double sum_ = 0.0, dropped_ = 0.0;
};

}  // namespace chordal::CHORDAL_ISA
