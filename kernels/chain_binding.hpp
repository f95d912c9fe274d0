// How Python hands a batch of chains to a kernel: seven flat arrays, checked beforehand.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <string_view>

#include "binding.hpp"
#include "chain_batch.hpp"

#define CHORDAL_CHAIN_ARGUMENTS                                                             \
    Input<double> unary, Input<std::int64_t> state_offsets,                                 \
        Input<std::int64_t> variable_offsets, Input<double> tables,                         \
        Input<std::int64_t> table_offsets, Input<std::int32_t> table_of_clique,             \
        Input<std::int64_t> clique_offsets
#define CHORDAL_CHAIN_VALUES                                                                \
    ChainBatch {                                                                            \
        unary.data(), state_offsets.data(), variable_offsets.data(), tables.data(),         \
            table_offsets.data(), table_of_clique.data(), clique_offsets.data(),            \
            variable_offsets.size() - 1                                                     \
    }
#define CHORDAL_CHAIN_NAMES                                                                 \
    nb::arg("unary"), nb::arg("state_offsets"), nb::arg("variable_offsets"),                \
        nb::arg("tables"), nb::arg("table_offsets"), nb::arg("table_of_clique"),            \
        nb::arg("clique_offsets")

namespace chordal {

inline Domain domain_of(std::string_view name) {
    if (name == "auto") return Domain::automatic;
    if (name == "scaled") return Domain::scaled;
    if (name == "log") return Domain::logarithm;
    throw std::invalid_argument("domain must be 'auto', 'scaled' or 'log'");
}

// Runs a kernel without the GIL and turns its outcome into Python's errors.
template <class Kernel>
void run_chain(Kernel kernel, const ChainBatch& batch) {
    Outcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = kernel(batch);
    }
    if (outcome == Outcome::stopped) throw nb::python_error();
    if (outcome == Outcome::range)
        throw std::overflow_error("the scores' range is too wide for domain 'scaled'");
}

}  // namespace chordal
