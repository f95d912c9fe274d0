// Variables and cliques as a graph: whether it has a loop.
//
// Components are kept as trees of representatives, and paths to them halved on the way (union–find).
// A clique of k variables closes no loop if they lie in k components when it is added.
//
// Reference: Tarjan and van Leeuwen (1984), Worst-case analysis of set union algorithms.
#include <algorithm>

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

// Where the first clique that names a variable twice names the least such variable; -1: none does.
static std::int64_t named_twice(const std::int64_t* scopes, const std::int64_t* offsets, std::size_t cliques) {
    CHORDAL_ISA::Listening listening;
    Indices sorted;
    for (std::size_t c = 0; c < cliques; ++c) {
        const std::int64_t *first = scopes + offsets[c], *last = scopes + offsets[c + 1];
        listening.spend(16 * static_cast<std::size_t>(1 + (last - first)));
        if (last - first == 2 && first[0] != first[1]) continue;
        sorted.assign(first, last);
        std::sort(sorted.begin(), sorted.end());
        const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
        if (twice != sorted.end()) return std::find(first, last, *twice) - scopes;
    }
    return -1;
}

static const Binding binding([](nb::module_& m) {
    m.def(
        "named_twice",
        [](Input<std::int64_t> scopes, Input<std::int64_t> scope_offsets) {
            GilReleased release;
            return named_twice(scopes.data(), scope_offsets.data(), scope_offsets.size() - 1);
        },
        nb::kw_only(), nb::arg("scopes"), nb::arg("scope_offsets"),
        "The place of a variable that a clique names twice, or -1.");
    m.def(
        "is_forest",
        [](const BoundTopology& topology) {
            GilReleased release;
            return without_loops(topology);
        },
        nb::arg("topology"), "Whether variables and cliques form no loop.");
});

}  // namespace chordal
