// Scores of rows that are seen once: what attribute_scores.cpp computes, for other kernels too.
#pragma once

#include "simd.hpp"
#include "wide_entries.hpp"

namespace chordal {

// Rows as they were read; value may be null (all ones).
struct AttributeEntries {
    const std::int64_t* offset;  // [rows + 1]
    const std::int32_t* id;
    const double* value;
    std::size_t rows;
};

struct ExpandedWeights {
    const Place* place;  // [attributes]
    const std::int32_t* pair_outputs;
    const double *wide, *narrow;
    std::size_t outputs, unit;
};

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// Sets out [rows * outputs].
void attribute_scores(const AttributeEntries& x, const ExpandedWeights& w, double* out);

}  // namespace chordal::CHORDAL_ISA
