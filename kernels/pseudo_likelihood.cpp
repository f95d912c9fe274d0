// Pseudo-likelihood: each variable's label given the gold labels y of all others.
//
//   value_e = Σ_{v in e} log Σ_l exp s_v(l) - s_v(y_v),   s_v as in conditionals.hpp
//   p_v(l)  = exp s_v(l) / Σ_k exp s_v(k)
//   d/du_v(l) = p_v(l) - [l = y_v];   d/dtable_c(l, y_{c \ v}) = p_v(l) - [l = y_v] for each v in c
//
// A clique of k variables costs the sum of their label counts, not their product: on chains
// O(T L). Tables of two variables are read along both axes. Where a table serves at least as many
// cliques as it has rows, a transposed copy makes the second axis contiguous too, for scores and for
// the derivative, whose two halves are added at the end.
//
// Reference: Besag (1975), Statistical analysis of non-lattice data.
#include "simd.hpp"

namespace chordal {

// normalise: s becomes exp s / Σ exp s, and the result is log Σ exp s. add_rows: to += scale * from.
CHORDAL_BOTH_ISAS(double normalise(double* s, std::size_t width);
                  void add_rows(double* to, const double* from, std::size_t n, double scale);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// s is padded with -inf to a multiple of four.
double normalise(double* s, std::size_t width) {
    Pack top = broadcast(-kInfinity);
    for (std::size_t j = 0; j < width; j += kLanes) top = maximum(top, load(s + j));
    const double highest = lane_max(top);
    if (highest == -kInfinity) {
        for (std::size_t j = 0; j < width; ++j) s[j] = 0.0;
        return -kInfinity;
    }
    const Pack shift = broadcast(highest);
    Pack sum = broadcast(0.0);
    for (std::size_t j = 0; j < width; j += kLanes) {
        const Pack e = exp_nonpositive(load(s + j) - shift);
        sum += e;
        store(s + j, e);
    }
    const double total = lane_sum(sum);
    const Pack inverse = broadcast(1.0 / total);
    for (std::size_t j = 0; j < width; j += kLanes) store(s + j, load(s + j) * inverse);
    return highest + std::log(total);
}

void add_rows(double* to, const double* from, std::size_t n, double scale) {
    const Pack factor = broadcast(scale);
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) store(to + j, load(to + j) + load(from + j) * factor);
    for (; j < n; ++j) to[j] += from[j] * scale;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "conditionals.hpp"

namespace chordal {
namespace {

// Tables of two variables that are used often, transposed: where each begins, or -1.
struct Transposed {
    std::vector<std::int64_t> begin;    // [tables]
    std::vector<std::int64_t> columns;  // [tables]
    std::vector<double> scores, sums;

    Transposed(const Cliques& g, std::size_t tables, const double* of)
        : begin(tables, -1), columns(tables, 0) {
        std::vector<std::int64_t> uses(tables, 0);
        for (std::size_t c = 0; c < g.cliques; ++c) {
            const std::int32_t k = g.table_of_clique[c];
            const auto first = g.scope_offsets[c];
            if (g.scope_offsets[c + 1] - first != 2) continue;
            columns[k] = g.labels(g.scopes[first + 1]);
            if (++uses[k] == g.labels(g.scopes[first])) begin[k] = 0;
        }
        std::int64_t size = 0;
        for (std::size_t k = 0; k < tables; ++k)
            if (begin[k] == 0) {
                begin[k] = size;
                size += g.table_offsets[k + 1] - g.table_offsets[k];
            }
        scores.resize(size);
        sums.assign(size, 0.0);
        each(g, [&](std::int64_t cell, std::int64_t turned) { scores[turned] = of[cell]; });
    }

    void add_to(const Cliques& g, double* out) const {
        each(g, [&](std::int64_t cell, std::int64_t turned) { out[cell] += sums[turned]; });
    }

    template <class F>
    void each(const Cliques& g, F f) const {
        for (std::size_t k = 0; k < begin.size(); ++k) {
            if (begin[k] < 0) continue;
            const std::int64_t n = columns[k], first = g.table_offsets[k];
            const std::int64_t rows = (g.table_offsets[k + 1] - first) / n;
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < n; ++j)
                    f(first + i * n + j, begin[k] + j * rows + i);
        }
    }
};

struct Row {
    const double* scores;
    double* sums;
    std::int64_t stride;
};

class PseudoLikelihood {
public:
    PseudoLikelihood(const Cliques& g, std::size_t tables, const double* unary,
                     const double* scores, const std::int32_t* y, double* out_unary,
                     double* out_tables)
        : g_(g), members_(g), turned_(g, tables, scores), unary_(unary), scores_(scores), y_(y),
          out_unary_(out_unary), out_tables_(out_tables) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        s_.resize(padded(static_cast<std::size_t>(most)));
    }

    // The loss of one variable; adds its derivative times w. May be called where out_unary is unary.
    double visit(std::int64_t v, double w) {
        const std::int64_t n = g_.labels(v);
        const std::size_t width = padded(static_cast<std::size_t>(n));
        double* s = s_.data();
        const double* u = unary_ + g_.state_offsets[v];
        std::copy(u, u + n, s);
        std::fill(s + n, s + width, -std::numeric_limits<double>::infinity());
        rows_.clear();
        for (auto m = members_.begin(v); m != members_.end(v); ++m) {
            const Row row = row_of(*m);
            rows_.push_back(row);
            if (row.stride == 1)
                CHORDAL_DISPATCH(add_rows(s, row.scores, static_cast<std::size_t>(n), 1.0));
            else
                for (std::int64_t l = 0; l < n; ++l) s[l] += row.scores[l * row.stride];
        }
        const double gold = s[y_[v]];
        const double log_sum = CHORDAL_DISPATCH(normalise(s, width));
        s[y_[v]] -= 1.0;
        for (const Row& row : rows_)
            if (row.stride == 1)
                CHORDAL_DISPATCH(add_rows(row.sums, s, static_cast<std::size_t>(n), w));
            else
                for (std::int64_t l = 0; l < n; ++l) row.sums[l * row.stride] += w * s[l];
        double* out = out_unary_ + g_.state_offsets[v];
        for (std::int64_t l = 0; l < n; ++l) out[l] = w * s[l];
        const bool possible = gold > -std::numeric_limits<double>::infinity();
        return possible ? log_sum - gold : std::numeric_limits<double>::infinity();
    }

    void finish() { turned_.add_to(g_, out_tables_); }

private:
    Row row_of(const Members::Member& member) {
        const Axis axis = axis_of(g_, member, y_);
        const std::int32_t k = g_.table_of_clique[member.clique];
        if (axis.stride == 1 || turned_.begin[k] < 0)
            return {scores_ + axis.base, out_tables_ + axis.base, axis.stride};
        // The first of two variables: the second one's label is the row of the transposed copy.
        const std::int64_t rows = (g_.table_offsets[k + 1] - g_.table_offsets[k]) / turned_.columns[k];
        const std::int64_t at = turned_.begin[k] + (axis.base - g_.table_offsets[k]) * rows;
        return {turned_.scores.data() + at, turned_.sums.data() + at, 1};
    }

    const Cliques& g_;
    Members members_;
    Transposed turned_;
    const double* unary_;
    const double* scores_;
    const std::int32_t* y_;
    double* out_unary_;
    double* out_tables_;
    std::vector<double> s_;
    std::vector<Row> rows_;

    static std::size_t padded(std::size_t n) { return (n + 3) / 4 * 4; }
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // out_unary may be the memory of unary; out_tables holds zeros.
    m.def(
        "pseudo_likelihood",
        [](CHORDAL_CLIQUE_ARGUMENTS, Input<double> unary, Input<double> tables,
           Input<std::int32_t> labels, std::optional<Input<double>> weight, Output<double> values,
           Output<double> out_unary, Output<double> out_tables) {
            bool stopped = false;
            {
                nb::gil_scoped_release release;
                const Cliques g = CHORDAL_CLIQUES;
                PseudoLikelihood loss(g, table_offsets.size() - 1, unary.data(), tables.data(),
                                      labels.data(), out_unary.data(), out_tables.data());
                std::int64_t work = 0;
                for (std::size_t e = 0; e < g.examples && !stopped; ++e) {
                    const double w = weight ? weight->data()[e] : 1.0;
                    double value = 0.0;
                    for (auto v = g.variable_offsets[e]; v < g.variable_offsets[e + 1]; ++v) {
                        value += loss.visit(v, w);
                        work += g.labels(v);
                    }
                    values.data()[e] = value;
                    if (work > (1 << 22)) {
                        work = 0;
                        stopped = interrupted();
                    }
                }
                loss.finish();
            }
            if (stopped) throw nb::python_error();
        },
        nb::arg("state_offsets"), nb::arg("variable_offsets"), nb::arg("scope_offsets"),
        nb::arg("scopes"), nb::arg("table_offsets"), nb::arg("table_of_clique"), nb::arg("unary"),
        nb::arg("tables"), nb::arg("labels"), nb::arg("weight").none(), nb::arg("values"),
        nb::arg("out_unary"), nb::arg("out_tables"));
});

}  // namespace chordal
#endif
