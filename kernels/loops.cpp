// Variables and cliques as a graph: whether it has a loop.
//
// Components are kept as trees of representatives, and paths to them halved on the way (union–find).
// A clique of k variables closes no loop if they lie in k components when it is added.
//
// Reference: Tarjan and van Leeuwen (1984), Worst-case analysis of set union algorithms.
#include "frame_binding.hpp"
#include "patience.hpp"

namespace chordal {

static std::int64_t representative(Indices& parent, std::int64_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

static bool without_loops(const Topology& t) {
    Indices parent(t.variables);
    for (std::size_t v = 0; v < t.variables; ++v) parent[v] = static_cast<std::int64_t>(v);
    CHORDAL_ISA::Listening listening;
    for (std::size_t c = 0; c < t.cliques; ++c)
        for (auto k = t.scope_offsets[c] + 1; k < t.scope_offsets[c + 1]; ++k) {
            listening.spend(32);
            const auto a = representative(parent, t.scopes[k - 1]);
            const auto b = representative(parent, t.scopes[k]);
            if (a == b) return false;
            parent[a < b ? b : a] = a < b ? a : b;
        }
    return true;
}

static const Binding binding([](nb::module_& m) {
    m.def(
        "is_forest",
        [](const BoundTopology& topology) {
            nb::gil_scoped_release release;
            return without_loops(topology);
        },
        nb::arg("topology"), "Whether variables and cliques form no loop.");
});

}  // namespace chordal
