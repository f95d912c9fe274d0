// Rows that hold attributes, and where their weights are; attributes.cpp says how they are coded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chordal {

// Wide entries of row t: code[begin[t] .. begin[t + 1]); value may be null (all ones).
struct WideEntries {
    const std::uint32_t* begin;  // [rows + 1]
    const std::uint32_t* code;
    const double* value;
    std::size_t rows, outputs, unit;

    std::size_t offset(std::uint32_t e) const { return (code[e] >> 5) * unit; }
    std::size_t size(std::uint32_t e) const { return (code[e] & 31) * unit; }
};

// The same by column: of that with weights at code[c], row[begin[c] .. begin[c + 1]).
struct WideColumns {
    const std::uint32_t* begin;  // [columns + 1]
    const std::uint32_t* code;   // [columns]
    const std::uint32_t* row;
    const double* value;
    std::size_t columns, outputs, unit;
};

// Where an attribute's weights are: its wide code, or 0 and its narrow pairs. `first` is its number
// among the wide ones, or its first narrow weight.
struct Place {
    std::uint32_t wide_code, first, pairs_begin, pairs;
};

}  // namespace chordal
