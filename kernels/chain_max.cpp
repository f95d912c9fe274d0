// Viterbi: the best labelling of each chain, and its score.
//
// δ_t(j) = max_i [δ_{t-1}(i) + M_t(i,j)] + u_t(j) is the forward pass of chain.hpp with ⊕ = max.
// No back pointers are kept: going back, y_{t-1} = argmax_i δ_{t-1}(i) + M_t(i, y_t) costs L per
// position, against L² on the way forward. Ties go to the smallest label, at the last position
// where the tied labellings differ.
#include "chain.hpp"

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
        std::int32_t* y = labels + batch.variable_offsets[example];
        for (std::size_t t = chain.length; t-- > 0;) {
            const double* delta = sweep.a(t);
            const double* into =
                t + 1 < chain.length ? sweep.tables.forward(t + 1) + y[t + 1] : nullptr;
            std::int32_t best = 0;
            double highest = -kInfinity;
            for (std::size_t i = 0; i < chain.labels(t); ++i) {
                const double value = into ? delta[i] + into[i * sweep.stride] : delta[i];
                if (value > highest) {
                    highest = value;
                    best = static_cast<std::int32_t>(i);
                }
            }
            y[t] = best;
        }
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
