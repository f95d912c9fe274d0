// How Python hands sequences that are learned one by one to a kernel.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "binding.hpp"
#include "chain_augmented.hpp"

namespace chordal {

using Maybe = std::optional<Input<double>>;

template <class Array>
auto pointer(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

// Whether an array that may be missing has this size.
template <class Array>
bool fits(const std::optional<Array>& array, std::size_t size) {
    return !array || array->size() == size;
}

// Whether offsets end at this size.
template <class T>
bool ends_at(const Input<T>& offsets, std::size_t size) {
    return offsets.size() && static_cast<std::size_t>(offsets.data()[offsets.size() - 1]) == size;
}

// In Python: WideRows and NarrowRows, the two kinds of entries of OnlineRows.
struct WideArrays {
    Input<std::uint32_t> offsets, codes;
    Maybe values;
};
struct NarrowArrays {
    Input<std::uint32_t> offsets, outputs, cells;
    Maybe values;
};

// The arrays of OnlineRows, kept alive.
struct RowArrays {
    WideArrays wide;
    NarrowArrays narrow;
    std::size_t outputs, unit, base;

    std::size_t rows() const { return wide.offsets.size() - 1; }
    OnlineRows view() const {
        return {wide.offsets.data(),   wide.codes.data(),     pointer(wide.values),
                narrow.offsets.data(), narrow.outputs.data(), narrow.cells.data(),
                pointer(narrow.values), outputs,              unit,
                base,                  narrow.cells.size() > 0};
    }
};

struct ChainArrays {
    Input<std::int64_t> node_offsets;
    std::vector<std::int64_t> edge_offsets;  // one less than the nodes of each that has any
    Input<std::int32_t> gold;
    Maybe weight;
    Input<std::uint8_t> live;
    RowArrays node;
    std::optional<RowArrays> edge;
    std::size_t table, labels;

    std::size_t examples() const { return node_offsets.size() - 1; }
    std::size_t cells() const { return 4 * live.size(); }
    // Examples begin..end, weights in all cells, and a number for each example.
    void require_range(std::size_t begin, std::size_t end, std::size_t w, std::size_t lead) const {
        require(begin <= end && end <= examples() && w == cells() && lead == examples(),
                "arrays do not fit the chains");
    }
};

// The arrays of LabelCosts, kept alive.
struct CostArrays {
    Input<double> rows;
    Input<std::int32_t> row_of;

    LabelCosts view(const ChainArrays& chains) const {
        require(rows.size() % chains.labels == 0 && row_of.size() == chains.gold.size(),
                "costs do not fit the chains");
        return {rows.data(), row_of.data()};
    }
};

// Pointers to the arrays.
struct ChainView {
    OnlineRows node, edge;
    OnlineChains chains;

    explicit ChainView(const ChainArrays& x)
        : node(x.node.view()),
          edge(x.edge ? x.edge->view() : OnlineRows{}),
          chains{x.node_offsets.data(), x.edge_offsets.data(),
                 x.gold.data(),         pointer(x.weight),
                 x.live.data(),         &node,
                 x.edge ? &edge : nullptr, x.table,
                 x.labels,              x.cells(),
                 x.examples()} {}
    ChainView(const ChainView&) = delete;
    ChainView& operator=(const ChainView&) = delete;
};

// What a loop over chains ended with, as Python's error.
inline void raise_outcome(Outcome outcome) {
    if (outcome == Outcome::stopped) throw Stopped{};
    if (outcome == Outcome::range) throw std::overflow_error("the weights or scores overflow");
}

}  // namespace chordal
