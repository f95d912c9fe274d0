// How Python hands the cliques of a batch, example by example, to kernels of labellings.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>

#include "binding.hpp"

#define CHORDAL_EXAMPLE_ARGUMENTS                                                               \
    Input<std::int64_t> state_offsets, Input<std::int64_t> variable_offsets,                    \
        Input<std::int64_t> clique_offsets, Input<std::int64_t> clique_scope_offsets,           \
        Input<std::int64_t> scopes, Input<std::int64_t> table_offsets,                          \
        Input<std::int32_t> table_of_clique
#define CHORDAL_EXAMPLES                                                                        \
    ExampleCliques {                                                                            \
        state_offsets.data(), variable_offsets.data(), clique_offsets.data(),                   \
            clique_scope_offsets.data(), scopes.data(), table_offsets.data(),                   \
            table_of_clique.data()                                                              \
    }

namespace chordal {

// The cell of a clique's table is its labels read as digits, the last variable fastest.
struct ExampleCliques {
    const std::int64_t* state_offsets;         // [variables + 1]
    const std::int64_t* variable_offsets;      // [examples + 1] into variables
    const std::int64_t* clique_offsets;        // [examples + 1] into cliques
    const std::int64_t* clique_scope_offsets;  // [cliques + 1] into scopes
    const std::int64_t* scopes;                // variables of each clique
    const std::int64_t* table_offsets;         // [tables + 1]
    const std::int32_t* table_of_clique;       // [cliques]
};

}  // namespace chordal
