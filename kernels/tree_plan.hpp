// A forest of edges from the roots down, made once for a structure.
#pragma once

#include "frame_binding.hpp"
#include "tree.hpp"

namespace chordal {

struct TreePlan {
    Indices order;        // [edges]
    Indices parent_edge;  // [variables], −1 for a root

    TreeBatch on(const Scores& scores) const { return {scores, order.data(), parent_edge.data()}; }
};

}  // namespace chordal
