// Columns of scores turned into conditional probabilities, with their log-sums.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace chordal {

// table [rows, columns]: P(r | s) = exp(ψ(r, s) − m(s)), m(s) = log Σ_r exp ψ(r, s). A column of −inf
// becomes zeros, its m −inf. Throws Stopped after Ctrl-C.
CHORDAL_BOTH_ISAS(void condition(double* table, std::int64_t rows, std::int64_t columns,
                                 double* message, bool (*interrupted)());)

}  // namespace chordal
