// Labellings from beliefs, as rounding.hpp makes them, for a batch.
#include "rounding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // beliefs [states]; labels [variables] is written.
    m.def(
        "round_beliefs",
        [](const BoundScores& g, Input<double> beliefs, Output<std::int32_t> labels) {
            GilReleased release;
            const Members members(g);
            Rounding rounding(g, members, g.unary, g.tables);
            for (std::size_t e = 0; e < g.examples; ++e)
                rounding.round(g.variable_offsets[e], g.variable_offsets[e + 1], beliefs.data(),
                               labels.data());
        },
        nb::arg("scores"), nb::arg("beliefs"), nb::arg("labels"));
});

}  // namespace chordal
