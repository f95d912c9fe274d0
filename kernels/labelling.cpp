// The score of a given labelling, and its indicators, on cliques of any order.
//
//   score(y) = Σ_v u_v(y_v) + Σ_c table_c(y_c)          per example
//   indicators: 1 at every (v, y_v) and (c, y_c), times the example's weight
#include "labelling.hpp"

namespace chordal {
namespace {

struct Labelled : ExampleCliques {
    const std::int32_t* labels;  // [variables]

    std::int64_t state(std::int64_t variable) const {
        return state_offsets[variable] + labels[variable];
    }
    std::int64_t cell(std::int64_t clique) const {
        std::int64_t index = 0;
        for (auto s = clique_scope_offsets[clique]; s < clique_scope_offsets[clique + 1]; ++s) {
            const std::int64_t v = scopes[s];
            index = index * (state_offsets[v + 1] - state_offsets[v]) + labels[v];
        }
        return table_offsets[table_of_clique[clique]] + index;
    }
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def("labelling_score", [](CHORDAL_EXAMPLE_ARGUMENTS, Input<std::int32_t> labels,
                                Input<double> unary, Input<double> tables, Output<double> out) {
        nb::gil_scoped_release release;
        const Labelled y{CHORDAL_EXAMPLES, labels.data()};
        for (std::size_t e = 0; e < out.size(); ++e) {
            double score = 0.0;
            for (auto v = y.variable_offsets[e]; v < y.variable_offsets[e + 1]; ++v)
                score += unary.data()[y.state(v)];
            for (auto c = y.clique_offsets[e]; c < y.clique_offsets[e + 1]; ++c)
                score += tables.data()[y.cell(c)];
            out.data()[e] = score;
        }
    });
    m.def(
        "labelling_add_indicators",
        [](CHORDAL_EXAMPLE_ARGUMENTS, Input<std::int32_t> labels,
           std::optional<Input<double>> weight, double scale, Output<double> unary,
           Output<double> tables) {
            nb::gil_scoped_release release;
            const Labelled y{CHORDAL_EXAMPLES, labels.data()};
            for (std::size_t e = 0; e + 1 < variable_offsets.size(); ++e) {
                const double w = weight ? scale * weight->data()[e] : scale;
                for (auto v = y.variable_offsets[e]; v < y.variable_offsets[e + 1]; ++v)
                    unary.data()[y.state(v)] += w;
                for (auto c = y.clique_offsets[e]; c < y.clique_offsets[e + 1]; ++c)
                    tables.data()[y.cell(c)] += w;
            }
        },
        nb::arg("state_offsets"), nb::arg("variable_offsets"), nb::arg("clique_offsets"),
        nb::arg("clique_scope_offsets"), nb::arg("scopes"), nb::arg("table_offsets"),
        nb::arg("table_of_clique"), nb::arg("labels"), nb::arg("weight").none(), nb::arg("scale"),
        nb::arg("unary"), nb::arg("tables"));
});

}  // namespace chordal
