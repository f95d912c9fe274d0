// The oracle of dual and of cutting-plane methods on chains: best labellings with their costs, what
// the features of two labellings differ by, and the products of an example's positions.
//
//   ŷ_i = argmax_y [cost_i(y) + ⟨w, φ(y)⟩]        lead_i = cost_i(ŷ_i) + ⟨w, φ(ŷ_i) − φ(y_i)⟩
//   gram: x_t·x_u for u <= t, where every attribute has a weight for every label
#include "chain_dual.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(
    Outcome best_labellings(const OnlineChains&, const LabelCosts&, bool full, std::size_t begin,
                            std::size_t end, bool (*interrupted)(), const double* w, double* lead,
                            std::int32_t* labels);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// Of examples begin..end: the best labelling with its cost, and its lead over the gold one.
Outcome best_labellings(const OnlineChains& x, const LabelCosts& costs, bool full,
                        std::size_t begin, std::size_t end, bool (*interrupted)(), const double* w,
                        double* lead, std::int32_t* labels) {
    Patience patience(interrupted);
    Augmented example(x, costs, full);
    ScratchOf<std::int32_t> best;
    example.enter_table(w);
    for (std::size_t n = begin; n < end; ++n) {
        example.open(n);
        example.score(w);
        best.resize(example.T + 1);
        lead[n] = example.best(best.data()) - example.score_of(example.gold);
        if (!std::isfinite(lead[n])) return Outcome::range;
        if (labels)
            std::memcpy(labels + example.first_row, best.data(), example.T * sizeof(std::int32_t));
        if (patience.spent(example.T * x.labels * (x.labels + 64) + 64)) return Outcome::stopped;
    }
    return Outcome::done;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "chain_online_binding.hpp"

namespace chordal {
namespace {

void run_best(const ChainArrays& chains, const CostArrays& prices, bool full, std::size_t begin,
              std::size_t end, Input<double> w, Output<double> lead,
              std::optional<Output<std::int32_t>> labels) {
    chains.require_range(begin, end, w.size(), lead.size());
    require(fits(labels, chains.gold.size()), "arrays do not fit the chains");
    const ChainView view(chains);
    const LabelCosts costs = prices.view(chains);
    Outcome outcome;
    {
        GilReleased release;
        outcome = CHORDAL_DISPATCH(best_labellings(view.chains, costs, full, begin, end, interrupted,
                                                   w.data(), lead.data(),
                                                   pointer(labels)));
    }
    raise_outcome(outcome);
}

// φ(labels) − φ(gold) of every example: offsets into cells and values. A cell may come twice.
auto differences(const ChainArrays& chains, Input<std::int32_t> labels) {
    require(labels.size() == chains.gold.size(), "labels do not fit the chains");
    const ChainView view(chains);
    const OnlineChains& x = view.chains;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint32_t> cell;
    std::vector<double> value;
    for (std::size_t n = 0; n < x.examples; ++n) {
        const auto first = static_cast<std::size_t>(x.node_offsets[n]);
        const auto first_edge = static_cast<std::size_t>(x.edge_offsets[n]);
        const std::size_t T = static_cast<std::size_t>(x.node_offsets[n + 1]) - first;
        const std::int32_t *y = labels.data() + first, *gold = x.gold + first;
        for (double sign = 1.0; sign >= -1.0; sign -= 2.0) {
            const auto add = [&](std::size_t c, double a) {
                cell.push_back(static_cast<std::uint32_t>(c));
                value.push_back(sign * a);
            };
            const std::int32_t* z = sign > 0.0 ? y : gold;
            for (std::size_t t = 0; t < T; ++t) {
                const bool same = y[t] == gold[t];
                if (!same)
                    isa_baseline::each_entry(x, *x.node, first + t, isa_baseline::index(z[t]), add);
                if (t == 0 || (same && y[t - 1] == gold[t - 1])) continue;
                const std::size_t pair =
                    isa_baseline::index(z[t - 1]) * x.labels + isa_baseline::index(z[t]);
                if (x.edge)
                    isa_baseline::each_entry(x, *x.edge, first_edge + t - 1, pair, add);
                else if (isa_baseline::is_live(x, x.table + pair))
                    add(x.table + pair, 1.0);
            }
        }
        offsets.push_back(static_cast<std::int64_t>(cell.size()));
    }
    return std::make_tuple(array_of(std::move(offsets)), array_of(std::move(cell)),
                           array_of(std::move(value)));
}

// Whether every attribute of nodes has a weight for every label.
bool is_full(const ChainArrays& chains) {
    const ChainView view(chains);
    const OnlineChains& x = view.chains;
    const OnlineRows& rows = *x.node;
    const auto n = static_cast<std::size_t>(x.node_offsets[x.examples]);
    if (rows.narrow_offsets[n] > 0) return false;
    for (std::uint32_t e = 0; e < rows.wide_offsets[n]; ++e) {
        const std::size_t cell = rows.base + (rows.wide_codes[e] >> 5) * rows.unit;
        if ((rows.wide_codes[e] & 31) * rows.unit < x.labels) return false;
        for (std::size_t j = 0; j < x.labels; ++j)
            if (!isa_baseline::is_live(x, cell + j)) return false;
    }
    return true;
}

// x_t·x_u for u <= t, example after example; the chains are full.
auto gram(const ChainArrays& chains) {
    const ChainView view(chains);
    const OnlineChains& x = view.chains;
    const OnlineRows& rows = *x.node;
    std::vector<double> products, row(x.cells / rows.unit + 1, 0.0);
    const auto value = [&](std::uint32_t e) { return rows.wide_values ? rows.wide_values[e] : 1.0; };
    for (std::size_t n = 0; n < x.examples; ++n) {
        const auto first = static_cast<std::size_t>(x.node_offsets[n]);
        const auto last = static_cast<std::size_t>(x.node_offsets[n + 1]);
        for (std::size_t t = first; t < last; ++t) {
            for (auto e = rows.wide_offsets[t]; e < rows.wide_offsets[t + 1]; ++e)
                row[rows.wide_codes[e] >> 5] += value(e);
            for (std::size_t u = first; u <= t; ++u) {
                double sum = 0.0;
                for (auto e = rows.wide_offsets[u]; e < rows.wide_offsets[u + 1]; ++e)
                    sum += value(e) * row[rows.wide_codes[e] >> 5];
                products.push_back(sum);
            }
            for (auto e = rows.wide_offsets[t]; e < rows.wide_offsets[t + 1]; ++e)
                row[rows.wide_codes[e] >> 5] = 0.0;
        }
    }
    return array_of(std::move(products));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<CostArrays>(m, "LabelCosts", "Costs of a position's labels: distinct rows of them.")
        .def(nb::init<Input<double>, Input<std::int32_t>>(), nb::arg("rows"), nb::arg("row_of"));
    m.def("chain_best_with_cost", &run_best, nb::arg("chains"), nb::arg("costs"), nb::arg("full"),
          nb::arg("begin"), nb::arg("end"), nb::kw_only(), nb::arg("w"), nb::arg("lead"),
          nb::arg("labels").none());
    m.def("chain_differences", &differences, nb::arg("chains"), nb::arg("labels"));
    m.def("chain_is_full", &is_full, nb::arg("chains"));
    m.def("chain_gram", &gram, nb::arg("chains"));
});

}  // namespace chordal
#endif
