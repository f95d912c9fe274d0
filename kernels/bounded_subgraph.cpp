// A large part of a graph whose tables are small: all variables but some, at random, without which an
// elimination order needs no table of more than 2^limit cells. What is left is solved exactly given the
// labels of those few.
//
// Reference: Hamze and de Freitas (2004), From fields to trees; Selby (2014), Efficient
// subgraph-based sampling of Ising-type models with frustration.
#include <cstdint>
#include <vector>

#include "elimination_order.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "bounded_subgraph",
        [](const BoundTopology& topology, Input<double> price, double limit, std::uint64_t seed) {
            const Topology& g = topology;
            require(price.size() == g.variables, "price must have a number for each variable");
            std::vector<std::uint8_t> kept(g.variables, 1);
            {
                GilReleased release;
                for (std::size_t i = 0; i < g.examples; ++i) {
                    const auto rule = (seed + i) % 2 ? Rule::weight : Rule::sweep;
                    Elimination elimination(g, i, rule, neighbours_of(g, i), seed + 1);
                    const std::int64_t first = g.variable_offsets[i];
                    for (const auto v : elimination.run_dropping(limit, price.data() + first))
                        kept[first + v] = 0;
                }
            }
            return array_of(std::move(kept));
        },
        nb::arg("topology"), nb::kw_only(), nb::arg("price"), nb::arg("limit"), nb::arg("seed"),
        "1 for each variable of a part of the graph whose tables have at most 2^limit cells; those of a low "
        "price stay rather than others.");
});

}  // namespace chordal
