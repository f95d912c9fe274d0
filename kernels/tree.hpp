// Forests of edges as flat arrays, shared by both copies of the tree kernels.
#pragma once

#include "frame.hpp"

namespace chordal {

// An edge from the variable nearer to the root to its child.
struct TreeEdge {
    std::int64_t parent, child;
    std::int64_t table;   // which
    bool child_last;      // the table has a row per label of the parent, not of the child
};

struct TreeBatch : Scores {
    const std::int64_t* order;        // [edges] of each example, parents first
    const std::int64_t* parent_edge;  // [variables], −1 for a root

    TreeEdge edge(std::int64_t place) const {
        const std::int64_t c = order[place], a = scopes[2 * c], b = scopes[2 * c + 1];
        const bool child_last = parent_edge[b] == c;
        return {child_last ? a : b, child_last ? b : a, table_of_clique[c], child_last};
    }
};

}  // namespace chordal
