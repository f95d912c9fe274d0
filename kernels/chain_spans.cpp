// Probabilities of spans of chains: that all labels from position s to e lie in given sets.
//
//   P(y_s ∈ S_s, …, y_e ∈ S_e) = Σ over labels of the sets, A_s into the span, B_e out
//
// with A and B of chain.hpp; sums within a span are scaled at every step.
#include "chain_passes.hpp"

namespace chordal {

// Spans to be asked for, by example in ascending order; span k holds `length[k]` positions from
// `start[k]` on, and `allowed` lists, position by position, which labels it may have.
struct Spans {
    const std::int64_t* example;
    const std::int64_t* start;
    const std::int64_t* length;
    const std::uint8_t* allowed;
    std::size_t count;
};

CHORDAL_BOTH_ISAS(
    Outcome span_log_probability(const ChainBatch&, Domain, bool (*interrupted)(), const Spans&,
                                 double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

Outcome span_log_probability(const ChainBatch& batch, Domain domain, bool (*interrupted)(),
                             const Spans& spans, double* out) {
    Patience patience(interrupted);
    Scratch rows;
    std::size_t k = 0;
    const std::uint8_t* allowed = spans.allowed;
    auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        if (k == spans.count || spans.example[k] != static_cast<std::int64_t>(example)) return true;
        const std::size_t stride = sweep.stride;
        Scratch B(stride * chain.length), E(stride * chain.length), x(2 * stride);
        const bool possible = sweep.log_partition != -kInfinity;
        if (possible) {
            std::memcpy(E.data(), sweep.e(0), stride * chain.length * sizeof(double));
            const bool go_on =
                backward(chain, sweep, rows, patience, [&](std::size_t t, const double* b) {
                    std::memcpy(B.data() + t * stride, b, stride * sizeof(double));
                });
            if (!go_on) return false;
        }
        for (; k < spans.count && spans.example[k] == static_cast<std::int64_t>(example); ++k) {
            const auto start = static_cast<std::size_t>(spans.start[k]);
            const auto end = start + static_cast<std::size_t>(spans.length[k]);
            double* now = x.data();
            double* next = now + stride;
            double log_probability = possible ? 0.0 : -kInfinity;
            for (std::size_t t = start; t < end; ++t) {
                const std::size_t n = chain.labels(t), width = padded(n);
                const std::uint8_t* mask = allowed;
                allowed += n;
                if (log_probability == -kInfinity) continue;
                if (t == start) {
                    std::memcpy(now, sweep.a(t), width * sizeof(double));
                } else {
                    S::product(now, sweep.tables.forward(t), next, chain.labels(t - 1), n, stride,
                               TimesRow{&E[t * stride], sweep.inverse[t]});
                    double* swap = now;
                    now = next;
                    next = swap;
                }
                for (std::size_t j = 0; j < n; ++j)
                    if (!mask[j]) now[j] = S::kZero;
                if (t + 1 == end)
                    for (std::size_t j = 0; j < n; ++j)
                        now[j] = S::times(now[j], B[t * stride + j]);
                const double total = S::total(now, width);
                if (total == S::kZero) {
                    log_probability = -kInfinity;
                    continue;
                }
                log_probability += S::logarithm(total);
                for (std::size_t j = 0; j < n; ++j) now[j] = S::divide(now[j], total);
                if (patience.spent(stride * stride)) return false;
            }
            out[k] = log_probability < 0.0 ? log_probability : 0.0;
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
        "chain_span_log_probability",
        [](const BoundScores& scores, const char* domain, Input<std::int64_t> example,
           Input<std::int64_t> start, Input<std::int64_t> length, Input<std::uint8_t> allowed,
           Output<double> out) {
            const Spans spans{example.data(), start.data(), length.data(), allowed.data(),
                              example.size()};
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(span_log_probability(batch, domain_of(domain), interrupted,
                                                             spans, out.data()));
            });
        },
        nb::arg("scores"), nb::arg("domain"), nb::kw_only(), nb::arg("example"), nb::arg("start"),
        nb::arg("length"), nb::arg("allowed"), nb::arg("out"));
});

}  // namespace chordal
#endif
