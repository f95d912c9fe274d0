// Forests of edges, from the roots down.
//
// The first variable of each piece is its root. Breadth first: an edge comes after the edge that
// leads to its parent, so that a pass in this order goes from the roots to the leaves, and one in the
// other direction back.
#include <vector>

#include "binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // edge_offsets [variables + 1] and edges list the edges at each variable. order [edges], and
    // parent_edge [variables], −1 for a root.
    m.def("tree_plan", [](Input<std::int64_t> scopes, Input<std::int64_t> edge_offsets,
                          Input<std::int64_t> edges, Output<std::int64_t> order,
                          Output<std::int64_t> parent_edge) {
        nb::gil_scoped_release release;
        const auto variables = static_cast<std::int64_t>(parent_edge.size());
        std::vector<char> seen(parent_edge.size());
        std::vector<std::int64_t> waiting;
        std::int64_t* next = order.data();
        for (std::int64_t root = 0; root < variables; ++root) {
            if (seen[root]) continue;
            seen[root] = true;
            parent_edge.data()[root] = -1;
            waiting.assign(1, root);
            for (std::size_t k = 0; k < waiting.size(); ++k) {
                const std::int64_t v = waiting[k];
                for (auto e = edge_offsets.data()[v]; e < edge_offsets.data()[v + 1]; ++e) {
                    const std::int64_t edge = edges.data()[e];
                    if (edge == parent_edge.data()[v]) continue;
                    const std::int64_t* ends = scopes.data() + 2 * edge;
                    const std::int64_t child = ends[0] == v ? ends[1] : ends[0];
                    seen[child] = true;
                    parent_edge.data()[child] = edge;
                    *next++ = edge;
                    waiting.push_back(child);
                }
            }
        }
    });
});

}  // namespace chordal
