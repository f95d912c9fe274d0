// The score of a given labelling, its indicators, and what no score exceeds, on cliques of any order.
//
//   score(y) = Σ_v u_v(y_v) + Σ_c table_c(y_c)          per example
//   indicators: 1 at every (v, y_v) and (c, y_c), times the example's weight
//   score(y) <= Σ_{v in no clique} max u_v + Σ_c max [table_c(y_c) + Σ_{v in c} u_v(y_v) / n_v]
//
// where n_v cliques share the row of variable v: each does its best by itself.
#include <algorithm>
#include <limits>
#include <vector>

#include "frame_binding.hpp"
#include "max_message.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

struct Labelled : Frame {
    const std::int32_t* labels;  // [variables]

    std::int64_t state(std::int64_t variable) const {
        return state_offsets[variable] + labels[variable];
    }
    std::int64_t cell(std::int64_t clique) const {
        std::int64_t index = 0;
        for (auto s = scope_offsets[clique]; s < scope_offsets[clique + 1]; ++s) {
            const std::int64_t v = scopes[s];
            index = index * Topology::labels(v) + labels[v];
        }
        return table(clique) + index;
    }
};

struct Shares : Scores {
    std::vector<double> share;  // [variables] 1 / n_v; 0: in no clique

    explicit Shares(const Scores& g) : Scores(g), share(g.variables, 0.0) {
        for (std::int64_t s = 0; s < places(); ++s) share[scopes[s]] += 1.0;
        for (double& x : share) x = x > 0.0 ? 1.0 / x : 0.0;
    }
    double best_label(std::int64_t v) const {
        return *std::max_element(unary + state_offsets[v], unary + state_offsets[v + 1]);
    }
    double best_labels(std::int64_t clique) {
        const double* cell = tables + table(clique);
        if (by_distances(clique, cell)) return best_pair(clique, cell);
        double best = -std::numeric_limits<double>::infinity();
        from_place(scope_offsets[clique], scope_offsets[clique + 1], 0.0, cell, best);
        return best;
    }

private:
    std::size_t count(std::int64_t place) const { return static_cast<std::size_t>(labels(scopes[place])); }
    bool by_distances(std::int64_t clique, const double* cell) {
        const std::int64_t s = scope_offsets[clique];
        return scope_offsets[clique + 1] - s == 2 &&
               messages_.by_distances(table_of_clique[clique], cell, count(s), count(s + 1));
    }
    double best_pair(std::int64_t clique, const double* cell) {
        const std::int64_t a = scopes[scope_offsets[clique]], b = scopes[scope_offsets[clique] + 1];
        const auto n = static_cast<std::size_t>(labels(a));
        patience_.spend(8 * n);
        row_.resize(n);
        for (std::size_t x = 0; x < n; ++x) row_[x] = share[a] * unary[state_offsets[a] + static_cast<std::int64_t>(x)];
        const double* m = messages_.through(table_of_clique[clique], cell, true, row_.data(), n, n);
        double best = -std::numeric_limits<double>::infinity();
        for (std::size_t x = 0; x < n; ++x)
            best = std::max(best, m[x] + share[b] * unary[state_offsets[b] + static_cast<std::int64_t>(x)]);
        return best;
    }
    void from_place(std::int64_t s, std::int64_t end, double sum, const double*& cell, double& best) {
        if (s == end) {
            best = std::max(best, sum + *cell++);
            return;
        }
        const std::int64_t v = scopes[s];
        patience_.spend(static_cast<std::size_t>(labels(v)));
        for (auto x = state_offsets[v]; x < state_offsets[v + 1]; ++x)
            from_place(s + 1, end, sum + share[v] * unary[x], cell, best);
    }

    BestMessages messages_;
    std::vector<double> row_;
    CHORDAL_ISA::Patience patience_{interrupted};
    Grace grace_;  // one pass, which what is found when time is over needs too
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "labelling_score",
        [](const BoundScores& scores, Input<std::int32_t> labels, Output<double> out) {
            GilReleased release;
            const Labelled y{scores, labels.data()};
            for (std::size_t e = 0; e < y.examples; ++e) {
                double score = 0.0;
                for (auto v = y.variable_offsets[e]; v < y.variable_offsets[e + 1]; ++v)
                    score += scores.unary[y.state(v)];
                for (auto c = y.clique_offsets[e]; c < y.clique_offsets[e + 1]; ++c)
                    score += scores.tables[y.cell(c)];
                out.data()[e] = score;
            }
        },
        nb::arg("scores"), nb::arg("labels"), nb::arg("out"));
    m.def(
        "labelling_bound",
        [](const BoundScores& scores, Output<double> out) {
            GilReleased release;
            Shares g(scores);
            for (std::size_t e = 0; e < g.examples; ++e) {
                double bound = 0.0;
                for (auto v = g.variable_offsets[e]; v < g.variable_offsets[e + 1]; ++v)
                    if (g.share[v] == 0.0) bound += g.best_label(v);
                for (auto c = g.clique_offsets[e]; c < g.clique_offsets[e + 1]; ++c)
                    bound += g.best_labels(c);
                out.data()[e] = bound;
            }
        },
        nb::arg("scores"), nb::arg("out"));
    m.def(
        "labelling_add_indicators",
        [](const BoundParts& parts, Input<std::int32_t> labels, Weight weight, double scale) {
            GilReleased release;
            const Labelled y{parts, labels.data()};
            for (std::size_t e = 0; e < y.examples; ++e) {
                const double w = weight ? scale * weight->data()[e] : scale;
                for (auto v = y.variable_offsets[e]; v < y.variable_offsets[e + 1]; ++v)
                    parts.unary[y.state(v)] += w;
                for (auto c = y.clique_offsets[e]; c < y.clique_offsets[e + 1]; ++c)
                    parts.tables[y.cell(c)] += w;
            }
        },
        nb::arg("parts"), nb::arg("labels"), nb::arg("weight").none(), nb::arg("scale"));
});

}  // namespace chordal
