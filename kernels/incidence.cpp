// Variables and cliques as a graph: whether it has a loop, and which cliques hold each variable.
//
// Components are kept as trees of representatives, and paths to them halved on the way (union–find).
// A clique of k variables closes no loop if they lie in k components when it is added.
//
// Reference: Tarjan and van Leeuwen (1984), Worst-case analysis of set union algorithms.
#include <vector>

#include "binding.hpp"

namespace chordal {

static std::int64_t representative(std::vector<std::int64_t>& parent, std::int64_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

static bool without_loops(std::int64_t variables, const Input<std::int64_t>& offsets,
                          const std::int64_t* scopes) {
    std::vector<std::int64_t> parent(variables);
    for (std::int64_t v = 0; v < variables; ++v) parent[v] = v;
    for (std::size_t c = 0; c + 1 < offsets.size(); ++c)
        for (auto k = offsets.data()[c] + 1; k < offsets.data()[c + 1]; ++k) {
            const auto a = representative(parent, scopes[k - 1]), b = representative(parent, scopes[k]);
            if (a == b) return false;
            parent[a < b ? b : a] = a < b ? a : b;
        }
    return true;
}

static const Binding binding([](nb::module_& m) {
    m.def("is_forest", [](std::int64_t variables, Input<std::int64_t> scope_offsets,
                          Input<std::int64_t> scopes) {
        nb::gil_scoped_release release;
        return without_loops(variables, scope_offsets, scopes.data());
    });
    // offsets [variables + 1] and cliques [scopes]: a counting sort.
    m.def("cliques_of_variable", [](Input<std::int64_t> scope_offsets, Input<std::int64_t> scopes,
                                    Output<std::int64_t> offsets, Output<std::int64_t> cliques) {
        nb::gil_scoped_release release;
        const std::size_t variables = offsets.size() - 1;
        std::vector<std::int64_t> next(variables + 1, 0);
        for (std::size_t k = 0; k < scopes.size(); ++k) ++next[scopes.data()[k] + 1];
        for (std::size_t v = 0; v < variables; ++v) next[v + 1] += next[v];
        for (std::size_t v = 0; v <= variables; ++v) offsets.data()[v] = next[v];
        for (std::size_t c = 0; c + 1 < scope_offsets.size(); ++c)
            for (auto k = scope_offsets.data()[c]; k < scope_offsets.data()[c + 1]; ++k)
                cliques.data()[next[scopes.data()[k]]++] = static_cast<std::int64_t>(c);
    });
});

}  // namespace chordal
