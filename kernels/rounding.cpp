// Labellings from beliefs, as rounding.hpp makes them, for a batch.
#include "rounding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // beliefs [states]; labels [variables] is written.
    m.def("round_beliefs", [](CHORDAL_CLIQUE_ARGUMENTS, Input<double> unary, Input<double> tables,
                              Input<double> beliefs, Output<std::int32_t> labels) {
        bool stopped = false;
        {
            nb::gil_scoped_release release;
            const Cliques g = CHORDAL_CLIQUES;
            const Members members(g);
            Rounding rounding(g, members, unary.data(), tables.data());
            for (std::size_t e = 0; e < g.examples && !stopped; ++e) {
                rounding.round(g.variable_offsets[e], g.variable_offsets[e + 1], beliefs.data(),
                               labels.data());
                if (e % 64 == 63) stopped = interrupted();
            }
        }
        if (stopped) throw nb::python_error();
    });
});

}  // namespace chordal
