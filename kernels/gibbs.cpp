// Gibbs sampling on cliques of any order: sweeps that draw each variable given all others.
//
//   P(y_v = l | y_{\v}) = exp(β s_v(l)) / Σ_k exp(β s_v(k)),   s_v as in conditionals.hpp
//
// Variables are visited in the order given. Each takes one uniform number from the caller, so that a
// seed decides everything. The label is the first whose cumulated share passes the number. β is 1 for
// sampling and rises in simulated annealing. Variables of one colour, which share no clique, may be
// visited by several calls at once: none of them writes a label that another one reads.
//
// Reference: Geman and Geman (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian
// restoration of images; Gonzalez, Low, Gretton and Guestrin (2011), Parallel Gibbs sampling: from
// colored fields to thin junction trees.
#include "label_scores.hpp"
#include "patience.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // order: variables; beta [sweeps]; uniform [sweeps * chains * order]; labels [chains * variables]:
    // where the chains are.
    m.def(
        "gibbs_sweeps",
        [](const BoundScores& g, const Incidence& incidence, Input<std::int64_t> order,
           Output<std::int32_t> labels, Input<double> beta, Input<double> uniform) {
            GilReleased release;
            LabelScores scores(g, incidence, g.unary, g.tables);
            const std::size_t chains = g.variables ? labels.size() / g.variables : 0;
            const double* u = uniform.data();
            CHORDAL_ISA::Patience patience(interrupted);
            for (std::size_t sweep = 0; sweep < beta.size(); ++sweep)
                for (std::size_t chain = 0; chain < chains; ++chain) {
                    std::int32_t* y = labels.data() + chain * g.variables;
                    for (std::size_t k = 0; k < order.size(); ++k) {
                        const std::int64_t v = order.data()[k];
                        scores.draw(v, *u++, beta.data()[sweep], y);
                        patience.spend(scores.work(v));
                    }
                }
        },
        nb::arg("scores"), nb::arg("incidence"), nb::arg("order"), nb::arg("labels"), nb::kw_only(),
        nb::arg("beta"), nb::arg("uniform"));
});

}  // namespace chordal
