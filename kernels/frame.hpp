// The index arrays of a batch of models as kernels see them: a structure, how its tables are tied, and
// scores on both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chordal {

// Variables and cliques of a batch of examples.
struct Topology {
    const std::int64_t* state_offsets;     // [variables + 1] into unary scores
    const std::int64_t* variable_offsets;  // [examples + 1] into variables
    const std::int64_t* clique_offsets;    // [examples + 1] into cliques
    const std::int64_t* scope_offsets;     // [cliques + 1] into scopes
    const std::int64_t* scopes;            // variables of each clique
    std::size_t examples, variables, cliques;

    std::int64_t labels(std::int64_t v) const { return state_offsets[v + 1] - state_offsets[v]; }
    std::int64_t states() const { return state_offsets[variables]; }
    std::int64_t places() const { return scope_offsets[cliques]; }
};

// A structure and the table of each clique. The cell of a table is the clique's labels read as digits,
// the last variable fastest.
struct Frame : Topology {
    const std::int64_t* table_offsets;    // [n_tables + 1]
    const std::int32_t* table_of_clique;  // [cliques]
    std::size_t n_tables;

    std::int64_t table(std::int64_t clique) const { return table_offsets[table_of_clique[clique]]; }
    std::int64_t cells() const { return table_offsets[n_tables]; }
};

// Scores that are read; those of a tied table are stored once.
struct Scores : Frame {
    const double* unary;   // [states]
    const double* tables;  // [cells]
};

// Derivatives, marginals or counts that are written; those of a tied table are summed.
struct Parts : Frame {
    double* unary;   // [states]
    double* tables;  // [cells]
};

// The cliques that hold each variable, in order.
struct CliquesOf {
    const std::int64_t* offsets;  // [variables + 1]
    const std::int64_t* cliques;

    const std::int64_t* begin(std::int64_t v) const { return cliques + offsets[v]; }
    const std::int64_t* end(std::int64_t v) const { return cliques + offsets[v + 1]; }
};

}  // namespace chordal
