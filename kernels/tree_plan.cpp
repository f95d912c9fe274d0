// Forests of edges, from the roots down.
//
// The first variable of each piece is its root. Breadth first: an edge comes after the edge that
// leads to its parent, so that a pass in this order goes from the roots to the leaves, and one in the
// other direction back.
#include "tree_plan.hpp"

namespace chordal {

static TreePlan plan_of(const Topology& t, const CliquesOf& edges) {
    TreePlan plan{{}, Indices(t.variables)};
    plan.order.reserve(t.cliques);
    std::vector<char> seen(t.variables);
    Indices waiting;
    for (std::size_t root = 0; root < t.variables; ++root) {
        if (seen[root]) continue;
        seen[root] = true;
        plan.parent_edge[root] = -1;
        waiting.assign(1, static_cast<std::int64_t>(root));
        for (std::size_t k = 0; k < waiting.size(); ++k) {
            const std::int64_t v = waiting[k];
            for (auto edge = edges.begin(v); edge != edges.end(v); ++edge) {
                if (*edge == plan.parent_edge[v]) continue;
                const std::int64_t* ends = t.scopes + 2 * *edge;
                const std::int64_t child = ends[0] == v ? ends[1] : ends[0];
                seen[child] = true;
                plan.parent_edge[child] = *edge;
                plan.order.push_back(*edge);
                waiting.push_back(child);
            }
        }
    }
    return plan;
}

static const Binding binding([](nb::module_& m) {
    nb::class_<TreePlan>(m, "TreePlan", "A forest of edges, from the roots down.")
        .def("__init__",
             [](TreePlan* self, const BoundTopology& topology, const Incidence& incidence) {
                 GilReleased release;
                 new (self) TreePlan(plan_of(topology, incidence));
             },
             nb::arg("topology"), nb::arg("incidence"))
        .def_prop_ro("order", [](const TreePlan& self) { return inside(self.order); },
                     "The edges of each example, parents first.")
        .def_prop_ro("parent_edge", [](const TreePlan& self) { return inside(self.parent_edge); },
                     "The edge to each variable's parent, -1 for a root.");
});

}  // namespace chordal
