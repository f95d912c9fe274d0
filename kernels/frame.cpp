// The bound classes of a batch of models; frame.hpp says what they hold.
#include "frame_binding.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

// Whether offsets [n + 1] begin at 0 and do not fall.
bool rising(const std::int64_t* offsets, std::size_t n) {
    bool good = offsets[0] == 0;
    for (std::size_t k = 0; k < n; ++k) good &= offsets[k] <= offsets[k + 1];
    return good;
}

// Whether a clique's labellings, counted without wrapping around, are as many as its table's cells.
bool table_fits(const Frame& f, std::size_t clique) {
    const std::int32_t table = f.table_of_clique[clique];
    if (table < 0 || static_cast<std::size_t>(table) >= f.n_tables) return false;
    const std::int64_t cells = f.table_offsets[table + 1] - f.table_offsets[table];
    double count = 1.0;  // does not wrap around, and is exact where a table fits in memory
    for (auto k = f.scope_offsets[clique]; k < f.scope_offsets[clique + 1]; ++k)
        count *= static_cast<double>(f.labels(f.scopes[k]));
    return count == static_cast<double>(cells);
}

void make_topology(BoundTopology* self, Input<std::int64_t> state_offsets,
                   Input<std::int64_t> variable_offsets, Input<std::int64_t> clique_offsets,
                   Input<std::int64_t> scope_offsets, Input<std::int64_t> scopes) {
    require(state_offsets.size() && scope_offsets.size() && variable_offsets.size() &&
                variable_offsets.size() == clique_offsets.size(),
            "offsets of a structure do not fit together");
    const Topology view{state_offsets.data(),        variable_offsets.data(),
                        clique_offsets.data(),       scope_offsets.data(),
                        scopes.data(),               variable_offsets.size() - 1,
                        state_offsets.size() - 1,    scope_offsets.size() - 1};
    require(view.variable_offsets[view.examples] == static_cast<std::int64_t>(view.variables) &&
                view.clique_offsets[view.examples] == static_cast<std::int64_t>(view.cliques) &&
                view.places() == static_cast<std::int64_t>(scopes.size()),
            "offsets of a structure do not fit together");
    bool good = rising(view.state_offsets, view.variables) &&
                rising(view.variable_offsets, view.examples) &&
                rising(view.clique_offsets, view.examples) &&
                rising(view.scope_offsets, view.cliques);
    const auto variables = static_cast<std::uint64_t>(view.variables);
    for (std::size_t k = 0; k < scopes.size(); ++k)
        good &= static_cast<std::uint64_t>(view.scopes[k]) < variables;  // negative ones are huge
    require(good, "a structure names variables or cliques that it does not have");
    new (self) BoundTopology{
        view, {state_offsets, variable_offsets, clique_offsets, scope_offsets, scopes}};
}

void make_frame(BoundFrame* self, nb::handle_t<BoundTopology> topology,
                Input<std::int64_t> table_offsets, Input<std::int32_t> table_of_clique) {
    const auto& t = nb::cast<const BoundTopology&>(topology);
    require(table_offsets.size() && table_of_clique.size() == t.cliques,
            "tables do not fit the structure");
    const Frame view{t, table_offsets.data(), table_of_clique.data(), table_offsets.size() - 1};
    bool good = rising(view.table_offsets, view.n_tables);
    for (std::size_t c = 0; c < t.cliques && good; ++c) good = table_fits(view, c);
    require(good, "tables do not fit the structure");
    new (self) BoundFrame{view, nb::borrow(topology), table_offsets, table_of_clique};
}

// Scores and Parts alike.
template <class Bound, class View, class Array>
void make_numbers(Bound* self, nb::handle_t<BoundFrame> frame, const Array& unary,
                  const Array& tables) {
    const auto& f = nb::cast<const BoundFrame&>(frame);
    require(static_cast<std::int64_t>(unary.size()) == f.states() &&
                static_cast<std::int64_t>(tables.size()) == f.cells(),
            "scores do not fit the structure");
    new (self) Bound{View{f, unary.data(), tables.data()}, nb::borrow(frame), {unary, tables}};
}

// The counting sort of all scopes.
Incidence incidence_of(const Topology& t) {
    Incidence found;
    Indices next;
    CHORDAL_ISA::Listening listening;
    enlarge(next, t.variables + 1, listening);
    enlarge(found.cliques, static_cast<std::size_t>(t.places()), listening);
    for (std::int64_t k = 0; k < t.places(); ++k, listening.spend(8)) ++next[t.scopes[k] + 1];
    for (std::size_t v = 0; v < t.variables; ++v) next[v + 1] += next[v];
    found.offsets = next;
    for (std::size_t c = 0; c < t.cliques; ++c)
        for (auto k = t.scope_offsets[c]; k < t.scope_offsets[c + 1]; ++k, listening.spend(16))
            found.cliques[next[t.scopes[k]]++] = static_cast<std::int64_t>(c);
    return found;
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<BoundTopology>(m, "Topology", "Variables and cliques of a batch of examples.")
        .def("__init__", &make_topology, nb::kw_only(), nb::arg("state_offsets"),
             nb::arg("variable_offsets"), nb::arg("clique_offsets"), nb::arg("scope_offsets"),
             nb::arg("scopes"));
    nb::class_<BoundFrame>(m, "Frame", "A structure, and the table of each of its cliques.")
        .def("__init__", &make_frame, nb::arg("topology"), nb::arg("table_offsets"),
             nb::arg("table_of_clique"));
    nb::class_<BoundScores>(m, "Scores", "Scores on a frame, to be read.")
        .def("__init__", &make_numbers<BoundScores, Scores, Input<double>>, nb::arg("frame"),
             nb::kw_only(), nb::arg("unary"), nb::arg("tables"));
    nb::class_<BoundParts>(m, "Parts", "Numbers in the shape of scores, to be written.")
        .def("__init__", &make_numbers<BoundParts, Parts, Output<double>>, nb::arg("frame"),
             nb::kw_only(), nb::arg("unary"), nb::arg("tables"));
    nb::class_<Incidence>(m, "Incidence", "The cliques that hold each variable, in order.")
        .def("__init__",
             [](Incidence* self, const BoundTopology& topology) {
                 GilReleased release;
                 new (self) Incidence(incidence_of(topology));
             },
             nb::arg("topology"))
        .def_prop_ro("offsets", [](const Incidence& self) { return inside(self.offsets); },
                     "Where the cliques of each variable begin.")
        .def_prop_ro("cliques", [](const Incidence& self) { return inside(self.cliques); });
    nb::class_<Iterations>(m, "Iterations", "How the iterations of each example ended.")
        .def_prop_ro("n_iter", [](const Iterations& self) { return inside(self.n_iter); })
        .def_ro("late", &Iterations::late, "Whether the time limit ended them.")
        .def_prop_ro("change", [](const Iterations& self) { return inside(self.change); },
                     "What was to fall below the tolerance.");
}, /*first=*/true);

}  // namespace chordal
