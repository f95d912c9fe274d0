// A batch of chains as flat arrays, shared by both copies of the chain kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chordal {

struct Chain;

struct ChainBatch {
    const double* unary;                   // [states] u, variable by variable
    const std::int64_t* state_offsets;     // [variables + 1] into unary
    const std::int64_t* variable_offsets;  // [examples + 1] into variables
    const double* tables;                  // flat tables, C order (i, j)
    const std::int64_t* table_offsets;     // [tables + 1] into tables
    const std::int32_t* table_of_clique;   // [cliques]
    const std::int64_t* clique_offsets;    // [examples + 1] into cliques
    std::size_t examples;

    inline Chain chain(std::size_t example) const;
};

struct Chain {
    const double* scores;
    const std::int64_t* offsets;  // [length + 1]
    const std::int32_t* table;    // [length - 1]
    std::size_t length;

    std::size_t labels(std::size_t t) const {
        return static_cast<std::size_t>(offsets[t + 1] - offsets[t]);
    }
    const double* unary(std::size_t t) const { return scores + offsets[t]; }
    bool tied() const {  // one table for every edge
        for (std::size_t t = 1; t + 1 < length; ++t)
            if (table[t] != table[0]) return false;
        return length > 1;
    }
};

inline Chain ChainBatch::chain(std::size_t example) const {
    const std::int64_t first = variable_offsets[example];
    return Chain{unary, state_offsets + first, table_of_clique + clique_offsets[example],
                 static_cast<std::size_t>(variable_offsets[example + 1] - first)};
}

enum class Domain { automatic, scaled, logarithm };

// done; the scores' range is too wide for Domain::scaled; or the user pressed Ctrl-C.
enum class Outcome { done, range, stopped };

}  // namespace chordal
