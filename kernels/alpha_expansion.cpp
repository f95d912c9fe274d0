// α-expansion: for one label α after another, any set of variables takes it at once.
//
// The choices are 0, keep the label, and 1, take α. The best set is found by a cut (cut_moves.hpp).
// Rounds over all α go on until none of them raises the score. Where the negative scores of all
// cliques are metrics of the labels, the result is within a known factor of the best (2 for Potts
// models); in practice it is much nearer.
//
// Reference: Boykov, Veksler and Zabih (2001), Fast approximate energy minimization via graph cuts.
#include "cut_moves.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    bind_moves(m, "alpha_expansion_labels", [](CutMoves& moves, auto run) {
        for (std::int32_t alpha = 0; alpha < moves.most_labels(); ++alpha) {
            for (std::int32_t v = 0; v < moves.nodes(); ++v)
                if (moves.label(v) != alpha && alpha < moves.count(v))
                    moves.offer(v, moves.label(v), alpha);
            if (!run()) return;
        }
    });
});

}  // namespace chordal
