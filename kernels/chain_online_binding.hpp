// How Python hands sequences that are learned one by one to a kernel.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>

#include "binding.hpp"
#include "chain_augmented.hpp"

namespace chordal {

using Maybe = std::optional<Input<double>>;

inline const double* pointer(const Maybe& array) { return array ? array->data() : nullptr; }

// The arrays of OnlineRows, kept alive.
struct RowArrays {
    Input<std::uint32_t> wide_offsets, wide_codes, narrow_offsets, narrow_outputs, narrow_cells;
    Maybe wide_values, narrow_values;
    std::size_t outputs, unit, base;

    OnlineRows view() const {
        return {wide_offsets.data(),   wide_codes.data(),   pointer(wide_values),
                narrow_offsets.data(), narrow_outputs.data(), narrow_cells.data(),
                pointer(narrow_values), outputs,            unit,
                base,                  narrow_cells.size() > 0};
    }
};

struct ChainArrays {
    Input<std::int64_t> node_offsets, edge_offsets;
    Input<std::int32_t> gold;
    Maybe weight;
    Input<std::uint8_t> live;
    RowArrays node;
    std::optional<RowArrays> edge;
    std::size_t table, labels;
};

// The arrays of LabelCosts, kept alive.
struct CostArrays {
    Input<double> rows;
    Input<std::int32_t> row_of;

    LabelCosts view() const { return {rows.data(), row_of.data()}; }
};

// Pointers to the arrays, for weights in so many cells.
struct ChainView {
    OnlineRows node, edge;
    OnlineChains chains;

    ChainView(const ChainArrays& x, std::size_t cells)
        : node(x.node.view()),
          edge(x.edge ? x.edge->view() : OnlineRows{}),
          chains{x.node_offsets.data(), x.edge_offsets.data(),
                 x.gold.data(),         pointer(x.weight),
                 x.live.data(),         &node,
                 x.edge ? &edge : nullptr, x.table,
                 x.labels,              cells,
                 x.node_offsets.size() - 1} {}
    ChainView(const ChainView&) = delete;
    ChainView& operator=(const ChainView&) = delete;
};

}  // namespace chordal
