// The entropy of chains, with the symbols of chain.hpp:
//
//   Σ_t H(y_t | y_{t-1}) = − Σ_t Σ_ij P(i,j) log (P(i,j) / P(i)),   P(i,j) = A_{t-1}(i) M_t(i,j) V_t(j)
//
// and in logarithms Σ_t H(y_{t-1} | y_t), by `Conditionals`.
#include "chain_passes.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(
    Outcome entropy(const ChainBatch&, Domain, bool (*interrupted)(), double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// In nats, after a forward pass; false if the user wants to stop.
bool entropy_of(const Chain& chain, Sweep<Log>& sweep, Patience& patience, double& total) {
    Scratch now(sweep.stride);  // P_t
    const auto node = [&](std::size_t t, const double* P) {
        std::memcpy(now.data(), P, sweep.stride * sizeof(double));
        if (t + 1 == chain.length)
            for (std::size_t j = 0; j < chain.labels(t); ++j)
                if (P[j] > 0.0) total -= P[j] * std::log(P[j]);
    };
    const auto edge = [&](std::size_t t, std::size_t, const double* P) {
        for (std::size_t j = 0; j < chain.labels(t); ++j)
            if (P[j] > 0.0) total -= P[j] * std::log(P[j] / now[j]);
    };
    return Conditionals(chain, sweep).run(patience, node, edge);
}

bool entropy_of(const Chain& chain, Sweep<Scaled>& sweep, Patience& patience, double& total) {
    Scratch rows, node(sweep.stride * chain.length);
    // V_t stays in e(t); what is left of B after the loop is not needed.
    const bool go_on = backward(chain, sweep, rows, patience, [&](std::size_t t, const double* B) {
        for (std::size_t j = 0; j < chain.labels(t); ++j)
            node[t * sweep.stride + j] = sweep.a(t)[j] * B[j];
    });
    if (!go_on) return false;
    for (std::size_t j = 0; j < chain.labels(0); ++j)
        if (node[j] > 0.0) total -= node[j] * std::log(node[j]);
    for (std::size_t t = 1; t < chain.length; ++t) {
        double conditional = 0.0;
        for (std::size_t i = 0; i < chain.labels(t - 1); ++i)
            for (std::size_t j = 0; j < chain.labels(t); ++j) {
                const double m = sweep.tables.forward(t)[i * sweep.stride + j];
                const double p = sweep.a(t - 1)[i] * m * sweep.e(t)[j];
                if (p > 0.0) conditional -= p * std::log(p / node[(t - 1) * sweep.stride + i]);
            }
        total += conditional;
        if (patience.spent(4 * sweep.stride * sweep.stride)) return false;
    }
    return true;
}

Outcome entropy(const ChainBatch& batch, Domain domain, bool (*interrupted)(), double* out) {
    Patience patience(interrupted);
    return each_chain(batch, domain, patience, [&](std::size_t example, const Chain& chain, auto& sweep) {
        double total = 0.0;
        const bool empty = sweep.log_partition == -kInfinity || chain.length == 0;
        if (!empty && !entropy_of(chain, sweep, patience, total)) return false;
        out[example] = total > 0.0 ? total : 0.0;  // rounding may leave −1e-17
        return true;
    });
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
