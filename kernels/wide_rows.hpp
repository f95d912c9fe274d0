// Rows of weights in units of four doubles, for the kernels that add them.
#pragma once

#include "simd.hpp"

namespace chordal::CHORDAL_ISA {

// Up to kSmall units of four doubles are kept in registers; a switch that falls through adds as
// many of them as a row has, without a loop.
constexpr std::size_t kSmall = 8;
constexpr std::size_t kPacks = 4 / kLanes;  // of a unit

#define CHORDAL_FOR_UNITS(count, visit) \
    switch (count) {                    \
        case 8: visit(7); [[fallthrough]]; \
        case 7: visit(6); [[fallthrough]]; \
        case 6: visit(5); [[fallthrough]]; \
        case 5: visit(4); [[fallthrough]]; \
        case 4: visit(3); [[fallthrough]]; \
        case 3: visit(2); [[fallthrough]]; \
        case 2: visit(1); [[fallthrough]]; \
        case 1: visit(0); [[fallthrough]]; \
        default: break;                 \
    }

// to += a * from, n a multiple of the unit
CHORDAL_INLINE void add_scaled(double a, const double* from, double* to, std::size_t n) {
    const Pack scale = broadcast(a);
    for (std::size_t k = 0; k < n; k += kLanes)
        store(to + k, scale * load(from + k) + load(to + k));
}

}  // namespace chordal::CHORDAL_ISA
