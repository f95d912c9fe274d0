// The expected score of independent labels, and its derivative, on cliques of any order.
//
//   E_q[score] = Σ_v Σ_l q_v(l) u_v(l) + Σ_c Σ_{y_c} Π_{v in c} q_v(y_v) table_c(y_c)   per example
//   derivative: q_v(l) at every (v, l), and Π q_v(y_v) at every cell, times the example's weight
//
// Cells of probability 0 are skipped: there, a score of -inf counts nothing.
#include "frame_binding.hpp"

namespace chordal {
namespace {

struct Soft : Frame {
    const double* q;  // [states]

    // visit(k, q) for every state and then every cell with q > 0 of an example.
    template <class VisitState, class VisitCell>
    void each(std::size_t example, VisitState state, VisitCell cell) const {
        const auto first = state_offsets[variable_offsets[example]];
        const auto last = state_offsets[variable_offsets[example + 1]];
        for (auto s = first; s < last; ++s)
            if (q[s] > 0.0) state(s, q[s]);
        for (auto c = clique_offsets[example]; c < clique_offsets[example + 1]; ++c)
            cells(scope_offsets[c], scope_offsets[c + 1], 0, 1.0,
                  table(c), cell);
    }

    // The labels of one variable of a clique after another, as digits of the cell.
    template <class VisitCell>
    void cells(std::int64_t at, std::int64_t end, std::int64_t digits, double chance,
               std::int64_t table, VisitCell& visit) const {
        if (at == end) {
            visit(table + digits, chance);
            return;
        }
        const std::int64_t first = state_offsets[scopes[at]];
        const std::int64_t count = state_offsets[scopes[at] + 1] - first;
        for (std::int64_t l = 0; l < count; ++l)
            if (q[first + l] > 0.0)
                cells(at + 1, end, digits * count + l, chance * q[first + l], table, visit);
    }
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "soft_score",
        [](const BoundScores& scores, Input<double> probability, Output<double> out) {
            GilReleased release;
            const Soft soft{scores, probability.data()};
            for (std::size_t e = 0; e < soft.examples; ++e) {
                double score = 0.0;
                auto state = [&](std::int64_t k, double q) { score += q * scores.unary[k]; };
                auto cell = [&](std::int64_t k, double q) { score += q * scores.tables[k]; };
                soft.each(e, state, cell);
                out.data()[e] = score;
            }
        },
        nb::arg("scores"), nb::kw_only(), nb::arg("probability"), nb::arg("out"));
    m.def(
        "soft_add_indicators",
        [](const BoundParts& parts, Input<double> probability, Weight weight, double scale) {
            GilReleased release;
            const Soft soft{parts, probability.data()};
            for (std::size_t e = 0; e < soft.examples; ++e) {
                const double w = weight ? scale * weight->data()[e] : scale;
                auto state = [&](std::int64_t k, double q) { parts.unary[k] += w * q; };
                auto cell = [&](std::int64_t k, double q) { parts.tables[k] += w * q; };
                soft.each(e, state, cell);
            }
        },
        nb::arg("parts"), nb::kw_only(), nb::arg("probability"), nb::arg("weight").none(),
        nb::arg("scale"));
});

}  // namespace chordal
