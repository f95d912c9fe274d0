// Viterbi: the best labelling of each chain, and its score.
#include "chain_best.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(Outcome best_labelling(const ChainBatch&, bool (*interrupted)(), double* score,
                                         std::int32_t* labels);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

Outcome best_labelling(const ChainBatch& batch, bool (*interrupted)(), double* score,
                       std::int32_t* labels) {
    Patience patience(interrupted);
    Sweep<Max> sweep;
    for (std::size_t example = 0; example < batch.examples; ++example) {
        const Chain chain = batch.chain(example);
        const Outcome outcome = sweep.forward(batch, chain, patience);
        if (outcome != Outcome::done) return outcome;
        score[example] = sweep.log_partition;
        if (sweep.log_partition == -kInfinity) continue;
        trace_back(chain, sweep, labels + batch.variable_offsets[example]);
    }
    return Outcome::done;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "chain_binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "chain_best_labelling",
        [](const BoundScores& scores, Output<double> score, Output<std::int32_t> labels) {
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(
                    best_labelling(batch, interrupted, score.data(), labels.data()));
            });
        },
        nb::arg("scores"), nb::arg("score"), nb::arg("labels"));
});

}  // namespace chordal
#endif
