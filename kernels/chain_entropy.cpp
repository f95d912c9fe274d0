// The entropy of chains, with the symbols of chain.hpp:
//
//   Σ_t H(y_t | y_{t-1}) = − Σ_t Σ_ij P(i,j) log (P(i,j) / P(i)),   P(i,j) = A_{t-1}(i) M_t(i,j) V_t(j)
#include "chain_passes.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(
    Outcome entropy(const ChainBatch&, Domain, bool (*interrupted)(), double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

Outcome entropy(const ChainBatch& batch, Domain domain, bool (*interrupted)(), double* out) {
    Patience patience(interrupted);
    Scratch rows;
    auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        out[example] = 0.0;
        if (sweep.log_partition == -kInfinity || chain.length == 0) return true;
        // V_t stays in e(t); what is left of B after the loop is not needed.
        double first = 0.0;
        Scratch node(sweep.stride * chain.length);
        const bool go_on = backward(chain, sweep, rows, patience, [&](std::size_t t, const double* B) {
            for (std::size_t j = 0; j < chain.labels(t); ++j)
                node[t * sweep.stride + j] = S::probability(S::times(sweep.a(t)[j], B[j]));
        });
        if (!go_on) return false;
        for (std::size_t j = 0; j < chain.labels(0); ++j)
            if (node[j] > 0.0) first -= node[j] * std::log(node[j]);
        double conditional = 0.0;
        for (std::size_t t = 1; t < chain.length; ++t) {
            for (std::size_t i = 0; i < chain.labels(t - 1); ++i)
                for (std::size_t j = 0; j < chain.labels(t); ++j) {
                    const double m = sweep.tables.forward(t)[i * sweep.stride + j];
                    const double p = S::probability(
                        S::times(S::times(sweep.a(t - 1)[i], m), sweep.e(t)[j]));
                    if (p > 0.0)
                        conditional -= p * std::log(p / node[(t - 1) * sweep.stride + i]);
                }
            if (patience.spent(4 * sweep.stride * sweep.stride)) return false;
        }
        const double total = first + conditional;
        out[example] = total > 0.0 ? total : 0.0;  // rounding may leave −1e-17
        return true;
    };
    return each_chain(batch, domain, patience, body);
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "chain_binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "chain_entropy",
        [](const BoundScores& scores, const char* domain, Output<double> out) {
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(
                    entropy(batch, domain_of(domain), interrupted, out.data()));
            });
        },
        nb::arg("scores"), nb::arg("domain"), nb::arg("out"));
});

}  // namespace chordal
#endif
