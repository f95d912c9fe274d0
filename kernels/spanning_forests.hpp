// Random spanning forests of each example that together contain every clique.
#pragma once

#include "frame_binding.hpp"

namespace chordal {

// In Python: SpanningForests.
struct SpanningForests {
    Indices n_forests;                // [examples]
    std::vector<double> appearance;   // [cliques] ρ, in which share of them each is
    std::vector<std::uint8_t> flags;  // for each example and forest, whether each clique is in it
};

}  // namespace chordal
