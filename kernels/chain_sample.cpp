// Exact samples of chains, backwards, with the symbols of chain.hpp:
//
//   y_{T-1} ~ A_{T-1},   then y_{t-1} | y_t ∝ A_{t-1}(i) M_t(i, y_t)
//
// One uniform number per position and sample decides.
#include "chain_passes.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(
    Outcome sample(const ChainBatch&, Domain, bool (*interrupted)(), const double* uniform,
                   std::size_t samples, std::size_t variables, std::int32_t* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

Outcome sample(const ChainBatch& batch, Domain domain, bool (*interrupted)(),
               const double* uniform, std::size_t samples, std::size_t variables,
               std::int32_t* out) {
    Patience patience(interrupted);
    Scratch chances;
    auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        const auto first = static_cast<std::size_t>(batch.variable_offsets[example]);
        if (sweep.log_partition == -kInfinity) return true;
        chances.resize(sweep.stride);
        double* chance = chances.data();
        for (std::size_t s = 0; s < samples; ++s) {
            const double* u = uniform + s * variables + first;
            std::int32_t* y = out + s * variables + first;
            for (std::size_t t = chain.length; t-- > 0;) {
                const std::size_t n = chain.labels(t), width = padded(n);
                std::memcpy(chance, sweep.a(t), width * sizeof(double));
                if (t + 1 < chain.length) {
                    const double* m = sweep.tables.forward(t + 1) + y[t + 1];
                    for (std::size_t i = 0; i < n; ++i)
                        chance[i] = S::times(chance[i], m[i * sweep.stride]);
                }
                const double total = S::total(chance, width);
                double rest = u[t];
                std::size_t pick = n;
                for (std::size_t i = 0; i < n; ++i) {
                    const double p = S::probability(S::divide(chance[i], total));
                    if (p > 0.0) {
                        pick = i;  // rounding may leave `rest` above the last one's share
                        rest -= p;
                        if (rest < 0.0) break;
                    }
                }
                y[t] = static_cast<std::int32_t>(pick);
                if (patience.spent(8 * sweep.stride)) return false;
            }
        }
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
        "chain_sample",
        [](const BoundScores& scores, const char* domain, Input<double> uniform,
           Output<std::int32_t> out) {
            const std::size_t samples = scores.variables ? uniform.size() / scores.variables : 0;
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(sample(batch, domain_of(domain), interrupted, uniform.data(),
                                               samples, scores.variables, out.data()));
            });
        },
        nb::arg("scores"), nb::arg("domain"), nb::arg("uniform"), nb::arg("out"));
});

}  // namespace chordal
#endif
