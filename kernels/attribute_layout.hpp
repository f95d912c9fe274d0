// Where the weights of attributes are, as Python hands it to the kernels of attributes.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>

#include "binding.hpp"
#include "wide_entries.hpp"

namespace chordal {

// In Python: AttributeLayout.
struct AttributeLayout {
    Input<std::uint32_t> places;         // [attributes], each a Place
    Input<std::int32_t> pair_outputs;
    Input<std::int64_t> segment_limits;  // [segments + 1] of narrow weights
    std::size_t outputs;
    std::size_t wide;                    // how many attributes are
    std::size_t unit;                    // doubles that a row of wide weights is counted in

    const Place* place() const { return reinterpret_cast<const Place*>(places.data()); }
};

}  // namespace chordal
