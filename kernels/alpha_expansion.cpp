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
    m.def("alpha_expansion_labels",
          [](CHORDAL_CLIQUE_ARGUMENTS, Input<std::int64_t> clique_offsets, Input<double> unary,
             Input<double> tables, std::int64_t max_iter, Output<std::int32_t> labels,
             Output<std::int64_t> iterations, Output<double> change) {
              bool finished = true;
              {
                  nb::gil_scoped_release release;
                  const Cliques g = CHORDAL_CLIQUES;
                  finished = rounds_of_moves(
                      g, clique_offsets.data(), unary.data(), tables.data(), max_iter, labels.data(),
                      iterations.data(), change.data(), [](CutMoves& moves, auto run) {
                          for (std::int32_t alpha = 0; alpha < moves.most_labels(); ++alpha) {
                              for (std::int32_t v = 0; v < moves.nodes(); ++v)
                                  if (moves.label(v) != alpha && alpha < moves.count(v))
                                      moves.offer(v, moves.label(v), alpha);
                              run();
                          }
                      });
              }
              if (!finished) throw nb::python_error();
          });
});

}  // namespace chordal
