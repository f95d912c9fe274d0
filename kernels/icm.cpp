// Iterated conditional modes: each variable takes its best label given all others, until none gains.
//
//   y_v ← argmax_l s_v(l),   s_v as in conditionals.hpp
//
// A variable is looked at again only after one that shares a clique with it has changed. Blocks of
// variables that form forests take their best labels together (forest_block.hpp).
//
// Reference: Besag (1986), On the statistical analysis of dirty pictures.
#include "forest_block.hpp"
#include "forest_blocks.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // labels [variables] is the start, and becomes the result; `change` is what the last sweep gained.
    m.def(
        "icm_labels",
        [](const BoundScores& g, const Incidence& incidence, std::int64_t max_iter,
           Output<std::int32_t> labels) {
            Iterations done(g.examples);
            ended_by_time(done, [&] {
                GilReleased release;
                const CliquesOf of = incidence;
                LabelScores scores(g, of, g.unary, g.tables);
                std::vector<std::uint8_t> unsettled(g.variables, 1);
                CHORDAL_ISA::Patience patience(interrupted);
                for (std::size_t e = 0; e < g.examples; ++e) {
                    std::int64_t& sweeps = done.n_iter[e];
                    double& gain = done.change[e];
                    do {
                        gain = 0.0;
                        ++sweeps;
                        for (auto v = g.variable_offsets[e]; v < g.variable_offsets[e + 1]; ++v) {
                            if (!unsettled[v]) continue;
                            unsettled[v] = 0;
                            patience.spend(scores.work(v));
                            const double more = scores.improve(v, labels.data());
                            if (more == 0.0) continue;
                            gain += more;
                            for (auto c = of.begin(v); c != of.end(v); ++c)
                                for (auto s = g.scope_offsets[*c]; s < g.scope_offsets[*c + 1]; ++s)
                                    unsettled[g.scopes[s]] |= g.scopes[s] != v;
                        }
                        patience.spend(g.variables);
                    } while (gain > 0.0 && sweeps < max_iter);
                }
            });
            return done;
        },
        nb::arg("scores"), nb::arg("incidence"), nb::arg("max_iter"), nb::arg("labels"));
    // One round of the blocks (gibbs_blocks.cpp): all labels of a block at once.
    m.def(
        "icm_forests",
        [](const BoundScores& scores, const Incidence& incidence, const ForestBlocks& blocks,
           Output<std::int32_t> labels) {
            GilReleased release;
            ForestBlock forest(scores, incidence, scores.unary, scores.tables);
            for_blocks(blocks.offsets.data(), blocks.blocks(), [&](std::int64_t at, std::size_t n) {
                forest.maximise(blocks.order.data() + at, blocks.parent.data() + at, n, labels.data());
            });
        },
        nb::arg("scores"), nb::arg("incidence"), nb::arg("blocks"), nb::arg("labels"));
});

}  // namespace chordal
