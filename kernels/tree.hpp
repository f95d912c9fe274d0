// Forests of edges as flat arrays, shared by both copies of the tree kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chordal {

// An edge from the variable nearer to the root to its child.
struct TreeEdge {
    std::int64_t parent, child;
    std::int64_t table;   // which
    bool child_last;      // the table has a row per label of the parent, not of the child
};

struct TreeBatch {
    const std::int64_t* state_offsets;     // [variables + 1] into unary
    const std::int64_t* variable_offsets;  // [examples + 1] into variables
    const std::int64_t* clique_offsets;    // [examples + 1] into edges
    const std::int64_t* scopes;            // [2 edges] both ends
    const std::int64_t* table_offsets;     // [tables + 1] into tables
    const std::int32_t* table_of_clique;   // [edges]
    const std::int64_t* order;             // [edges] of each example, parents first
    const std::int64_t* parent_edge;       // [variables], −1 for a root
    const double* unary;                   // [states]
    const double* tables;
    std::size_t examples, variables, n_tables;

    std::int64_t labels(std::int64_t v) const { return state_offsets[v + 1] - state_offsets[v]; }
    TreeEdge edge(std::int64_t place) const {
        const std::int64_t c = order[place], a = scopes[2 * c], b = scopes[2 * c + 1];
        const bool child_last = parent_edge[b] == c;
        return {child_last ? a : b, child_last ? b : a, table_of_clique[c], child_last};
    }
};

#define CHORDAL_TREE_ARGUMENTS                                                                  \
    Input<std::int64_t> state_offsets, Input<std::int64_t> variable_offsets,                    \
        Input<std::int64_t> clique_offsets, Input<std::int64_t> scopes,                         \
        Input<std::int64_t> table_offsets, Input<std::int32_t> table_of_clique,                 \
        Input<std::int64_t> order, Input<std::int64_t> parent_edge, Input<double> unary,        \
        Input<double> tables
#define CHORDAL_TREE_NAMES                                                                      \
    nb::arg("state_offsets"), nb::arg("variable_offsets"), nb::arg("clique_offsets"),           \
        nb::arg("scopes"), nb::arg("table_offsets"), nb::arg("table_of_clique"),                \
        nb::arg("order"), nb::arg("parent_edge"), nb::arg("unary"), nb::arg("tables")
#define CHORDAL_TREE                                                                            \
    TreeBatch {                                                                                 \
        state_offsets.data(), variable_offsets.data(), clique_offsets.data(), scopes.data(),    \
            table_offsets.data(), table_of_clique.data(), order.data(), parent_edge.data(),     \
            unary.data(), tables.data(), variable_offsets.size() - 1, state_offsets.size() - 1, \
            table_offsets.size() - 1                                                            \
    }

}  // namespace chordal
