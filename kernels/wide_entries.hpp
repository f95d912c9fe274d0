// Rows that hold attributes, and where their weights are; attributes.cpp says how they are coded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chordal {

// Wide entries of row t: code[begin[t] .. end[t]); value may be null (all ones).
struct WideEntries {
    const std::uint32_t* begin;
    const std::uint32_t* end;
    const std::uint32_t* code;
    const double* value;
    std::size_t rows, outputs, unit;

    std::size_t offset(std::uint32_t e) const { return (code[e] >> 5) * unit; }
    std::size_t size(std::uint32_t e) const { return (code[e] & 31) * unit; }
};

// Where an attribute's weights are: its wide code, or 0 and its narrow pairs.
struct Place {
    std::uint32_t wide_code, first_weight, pairs_begin, pairs;
};

}  // namespace chordal
