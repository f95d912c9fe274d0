// αβ-swap: for one pair of labels after another, the variables that have α or β share them out anew.
//
// The choices are 0, label α, and 1, label β, found by a cut (cut_moves.hpp) that leaves all other
// variables as they are. Rounds over all pairs go on until none of them raises the score. With two
// labels and submodular scores the first cut is the best labelling.
//
// Reference: Boykov, Veksler and Zabih (2001), Fast approximate energy minimization via graph cuts.
#include "cut_moves.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    bind_moves(m, "alpha_beta_swap_labels", [](CutMoves& moves, auto run) {
        for (std::int32_t beta = 1; beta < moves.most_labels(); ++beta)
            for (std::int32_t alpha = 0; alpha < beta; ++alpha) {
                for (std::int32_t v = 0; v < moves.nodes(); ++v) {
                    const std::int32_t l = moves.label(v);
                    if ((l == alpha || l == beta) && beta < moves.count(v)) moves.offer(v, alpha, beta);
                }
                if (!run()) return;
            }
    });
});

}  // namespace chordal
