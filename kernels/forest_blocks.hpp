// Blocks of variables that form forests, each variable in at least one.
#pragma once

#include "frame_binding.hpp"

namespace chordal {

// In Python: ForestBlocks.
struct ForestBlocks {
    Indices order;       // block by block, parents before children
    Indices parent;      // [order] a variable, -1 for a root
    Indices offsets{0};  // [blocks + 1] into order

    std::size_t blocks() const { return offsets.size() - 1; }
};

}  // namespace chordal
