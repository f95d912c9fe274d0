// How a batch of chains comes from Python, and how a kernel runs on it.
#pragma once

#include <stdexcept>
#include <string_view>

#include "chain_batch.hpp"
#include "frame_binding.hpp"

namespace chordal {

inline Domain domain_of(std::string_view name) {
    if (name == "auto") return Domain::automatic;
    if (name == "scaled") return Domain::scaled;
    if (name == "log") return Domain::logarithm;
    throw std::invalid_argument("domain must be 'auto', 'scaled' or 'log'");
}

inline ChainBatch chains_of(const Scores& x) {
    return {x.unary,         x.state_offsets,   x.variable_offsets, x.tables,
            x.table_offsets, x.table_of_clique, x.clique_offsets,   x.examples};
}

// Runs a kernel without the GIL and turns its outcome into Python's errors.
template <class Kernel>
void run_chain(const Scores& scores, Kernel kernel) {
    const ChainBatch batch = chains_of(scores);
    Outcome outcome;
    {
        GilReleased release;
        outcome = kernel(batch);
    }
    if (outcome == Outcome::stopped) throw Stopped{};
    if (outcome == Outcome::range)
        throw std::overflow_error("the scores' range is too wide for domain 'scaled'");
}

}  // namespace chordal
