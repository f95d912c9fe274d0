// Iterated conditional modes: each variable takes its best label given all others, until none gains.
//
//   y_v ← argmax_l s_v(l),   s_v as in conditionals.hpp
//
// A variable is looked at again only after one that shares a clique with it has changed. Blocks of
// variables that form forests take their best labels together (forest_block.hpp).
//
// Reference: Besag (1986), On the statistical analysis of dirty pictures.
#include "forest_block.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // labels [variables] is the start, and becomes the result; iterations and change are [examples]:
    // how many sweeps there were, and what the last one gained.
    m.def("icm_labels", [](Input<std::int64_t> cliques_offsets, Input<std::int64_t> cliques_of,
                           CHORDAL_CLIQUE_ARGUMENTS, Input<std::int64_t> clique_offsets,
                           Input<double> unary, Input<double> tables, std::int64_t max_iter,
                           Output<std::int32_t> labels, Output<std::int64_t> iterations,
                           Output<double> change) {
        (void)clique_offsets;
        bool stopped = false;
        {
            nb::gil_scoped_release release;
            const Cliques g = CHORDAL_CLIQUES;
            const CliquesOf of{cliques_offsets.data(), cliques_of.data()};
            LabelScores scores(g, of, unary.data(), tables.data());
            std::vector<std::uint8_t> unsettled(g.variables, 1);
            std::size_t work = 0;
            for (std::size_t e = 0; e < g.examples && !stopped; ++e) {
                std::int64_t& sweeps = iterations.data()[e] = 0;
                double& gain = change.data()[e] = 0.0;
                do {
                    gain = 0.0;
                    ++sweeps;
                    for (auto v = g.variable_offsets[e]; v < g.variable_offsets[e + 1]; ++v) {
                        if (!unsettled[v]) continue;
                        unsettled[v] = 0;
                        work += scores.work(v);
                        const double more = scores.improve(v, labels.data());
                        if (more == 0.0) continue;
                        gain += more;
                        for (auto c = of.begin(v); c != of.end(v); ++c)
                            for (auto s = g.scope_offsets[*c]; s < g.scope_offsets[*c + 1]; ++s)
                                unsettled[g.scopes[s]] |= g.scopes[s] != v;
                    }
                    if (work > (std::size_t{1} << 22)) {
                        work = 0;
                        stopped = interrupted();
                    }
                } while (gain > 0.0 && sweeps < max_iter && !stopped);
            }
        }
        if (stopped) throw nb::python_error();
    });
    // One round of the blocks (gibbs_blocks.cpp): all labels of a block at once.
    m.def("icm_forests", [](CHORDAL_CLIQUE_ARGUMENTS, Input<std::int64_t> cliques_offsets,
                            Input<std::int64_t> cliques_of, Input<std::int64_t> order,
                            Input<std::int64_t> parent, Input<std::int64_t> offsets,
                            Input<double> unary, Input<double> tables, Output<std::int32_t> labels) {
        bool done;
        {
            nb::gil_scoped_release release;
            const Cliques g = CHORDAL_CLIQUES;
            ForestBlock forest(g, {cliques_offsets.data(), cliques_of.data()}, unary.data(),
                               tables.data());
            done = for_blocks(offsets.data(), offsets.size() - 1, interrupted,
                              [&](std::int64_t at, std::size_t n) {
                                  forest.maximise(order.data() + at, parent.data() + at, n,
                                                  labels.data());
                              });
        }
        if (!done) throw nb::python_error();
    });
});

}  // namespace chordal
