// Pseudo-likelihood: each variable's label given the gold labels y of all others.
//
//   value_e = Σ_{v in e} log Σ_l exp s_v(l) - s_v(y_v),   s_v as in conditionals.hpp
//   p_v(l)  = exp s_v(l) / Σ_k exp s_v(k)
//   d/du_v(l) = p_v(l) - [l = y_v];   d/dtable_c(l, y_{c \ v}) = p_v(l) - [l = y_v] for each v in c
//
// A clique of k variables costs the sum of their label counts, not their product: on chains
// O(T L). Tables of two variables are read along both axes. Where a table serves at least as many
// cliques as it has rows, two copies of it, by rows and by columns, make both axes contiguous, for
// scores and for the derivative, whose two halves are added at the end. Rows of the copies begin cache
// lines: a vector that lies across two costs twice as much.
//
// Reference: Besag (1975), Statistical analysis of non-lattice data.
#include "simd.hpp"

namespace chordal {

// exponentiate: s = exp(u + a + b - highest), padded with 0; the result is Σ s, or 0 if all is -inf.
// spread: out = f s, to_a += f s, to_b += f s, in this order for each label (to_a may be to_b).
CHORDAL_BOTH_ISAS(double exponentiate(const double* u, const double* a, const double* b,
                                      std::size_t n, double* s, double* highest);
                  void spread(const double* s, double f, std::size_t n, double* out, double* to_a,
                              double* to_b);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kAtOnce = 4;

double exponentiate(const double* u, const double* a, const double* b, std::size_t n, double* s,
                    double* highest) {
    const std::size_t width = padded(n);
    Pack top = broadcast(-kInfinity);
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const Pack x = load(u + j) + load(a + j) + load(b + j);
        store(s + j, x);
        top = maximum(top, x);
    }
    double most = lane_max(top);
    for (; j < n; ++j) {
        s[j] = u[j] + a[j] + b[j];
        most = s[j] > most ? s[j] : most;
    }
    for (; j < width; ++j) s[j] = -kInfinity;
    *highest = most;
    if (most == -kInfinity) {
        for (j = 0; j < width; ++j) s[j] = 0.0;
        return 0.0;
    }
    // kAtOnce packs side by side: one alone would wait for its own polynomial.
    const Pack shift = broadcast(most);
    Pack sum = broadcast(0.0);
    for (j = 0; j + kAtOnce * kLanes <= width; j += kAtOnce * kLanes) {
        Pack e[kAtOnce];
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kAtOnce; ++k) e[k] = load(s + j + k * kLanes) - shift;
        exp_nonpositive(e);
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kAtOnce; ++k) {
            sum += e[k];
            store(s + j + k * kLanes, e[k]);
        }
    }
    for (; j < width; j += kLanes) {
        const Pack e = exp_nonpositive(load(s + j) - shift);
        sum += e;
        store(s + j, e);
    }
    return lane_sum(sum);
}

void spread(const double* s, double f, std::size_t n, double* out, double* to_a, double* to_b) {
    const Pack factor = broadcast(f);
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const Pack p = load(s + j) * factor;
        store(out + j, p);
        store(to_a + j, load(to_a + j) + p);
        store(to_b + j, load(to_b + j) + p);
    }
    for (; j < n; ++j) {
        const double p = s[j] * f;
        out[j] = p;
        to_a[j] += p;
        to_b[j] += p;
    }
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "conditionals.hpp"

namespace chordal {
namespace {

// Tables of two variables that are used often: where each begins in `straight`, by rows, and in
// `turned`, by columns; -1: it is not one of them.
struct Copies {
    struct Place {
        std::int64_t straight = -1, turned = -1, rows = 0, columns = 0;
    };
    std::vector<Place> place;                     // [tables]
    isa_baseline::Scratch scores, sums;

    static std::int64_t padded(std::int64_t n) { return (n + kPerLine - 1) / kPerLine * kPerLine; }

    Copies(const Cliques& g, std::size_t tables, const double* of) : place(tables) {
        std::vector<std::int64_t> uses(tables, 0);
        std::int64_t size = 0;
        for (std::size_t c = 0; c < g.cliques; ++c) {
            const std::int32_t k = g.table_of_clique[c];
            const auto first = g.scope_offsets[c];
            if (g.scope_offsets[c + 1] - first != 2) continue;
            const std::int64_t rows = g.labels(g.scopes[first]), columns = g.labels(g.scopes[first + 1]);
            if (++uses[k] != rows) continue;
            place[k] = {size, size + rows * padded(columns), rows, columns};
            size += rows * padded(columns) + columns * padded(rows);
        }
        const auto count = static_cast<std::size_t>(size);
        scores.resize(count);
        sums.resize(count);
        std::fill_n(sums.data(), count, 0.0);
        each(g, [&](std::int64_t cell, std::int64_t straight, std::int64_t turned) {
            scores[straight] = scores[turned] = of[cell];
        });
    }

    void add_to(const Cliques& g, double* out) const {
        each(g, [&](std::int64_t cell, std::int64_t straight, std::int64_t turned) {
            out[cell] += sums[straight] + sums[turned];
        });
    }

private:
    static constexpr std::int64_t kPerLine = 8;

    // In squares, so that neither copy strides through all its lines for a row of the other.
    template <class F>
    void each(const Cliques& g, F f) const {
        for (std::size_t k = 0; k < place.size(); ++k) {
            const Place& p = place[k];
            if (p.straight < 0) continue;
            const std::int64_t across = padded(p.columns), down = padded(p.rows);
            for (std::int64_t i0 = 0; i0 < p.rows; i0 += kPerLine)
                for (std::int64_t j0 = 0; j0 < p.columns; j0 += kPerLine)
                    for (auto i = i0; i < std::min(i0 + kPerLine, p.rows); ++i)
                        for (auto j = j0; j < std::min(j0 + kPerLine, p.columns); ++j)
                            f(g.table_offsets[k] + i * p.columns + j, p.straight + i * across + j,
                              p.turned + j * down + i);
        }
    }
};

struct Row {
    const double* scores;
    double* sums;
    std::size_t stride;
};

// Two rows in memory order, as in a chain with a tied table, go through registers alone.
struct Plan {
    const double* scores[2];
    double* sums[2];
    std::vector<Row> slow;  // the other ones
};

class PseudoLikelihood {
public:
    PseudoLikelihood(const Cliques& g, std::size_t tables, const double* unary,
                     const double* scores, const std::int32_t* y, double* out_unary,
                     double* out_tables)
        : g_(g), members_(g), copies_(g, tables, scores), unary_(unary), scores_(scores), y_(y),
          out_unary_(out_unary), out_tables_(out_tables) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        const auto width = static_cast<std::size_t>(most + 3) / 4 * 4;
        s_.resize(width);
        base_.resize(width);
        zeros_.resize(width);
        nowhere_.resize(width);
        std::fill_n(zeros_.data(), width, 0.0);
        std::fill_n(nowhere_.data(), width, 0.0);
    }

    // Finds the rows of the variable that is visited next, and fetches them ahead.
    void prepare(std::int64_t v) {
        Plan& plan = plans_[v & 1];
        plan = Plan{{zeros_.data(), zeros_.data()}, {nowhere_.data(), nowhere_.data()}, {}};
        const auto n = static_cast<std::size_t>(g_.labels(v));
        std::size_t fast = 0;
        for (auto m = members_.begin(v); m != members_.end(v); ++m) {
            const Row row = row_of(*m);
            if (row.stride != 1 || fast == 2) {
                plan.slow.push_back(row);
                continue;
            }
            plan.scores[fast] = row.scores;
            plan.sums[fast++] = row.sums;
            for (std::size_t l = 0; l < n; l += 8) {
                CHORDAL_PREFETCH(row.scores + l);
                CHORDAL_PREFETCH(row.sums + l);
            }
        }
    }

    // The loss of one variable; adds its derivative times w. May be called where out_unary is unary.
    double visit(std::int64_t v, double w) {
        constexpr double kNone = -std::numeric_limits<double>::infinity();
        const Plan& plan = plans_[v & 1];
        const auto n = static_cast<std::size_t>(g_.labels(v));
        const double* u = unary_ + g_.state_offsets[v];
        if (!plan.slow.empty()) {
            std::copy(u, u + n, base_.data());
            for (const Row& row : plan.slow)
                for (std::size_t l = 0; l < n; ++l) base_[l] += row.scores[l * row.stride];
            u = base_.data();
        }
        const std::int32_t y = y_[v];
        const double gold = u[y] + plan.scores[0][y] + plan.scores[1][y];
        double highest = 0.0;
        const double total = CHORDAL_DISPATCH(
            exponentiate(u, plan.scores[0], plan.scores[1], n, s_.data(), &highest));
        const double f = total > 0.0 ? w / total : 0.0;
        double* out = out_unary_ + g_.state_offsets[v];
        CHORDAL_DISPATCH(spread(s_.data(), f, n, out, plan.sums[0], plan.sums[1]));
        for (const Row& row : plan.slow) {
            for (std::size_t l = 0; l < n; ++l) row.sums[l * row.stride] += out[l];
            row.sums[y * row.stride] -= w;
        }
        out[y] -= w;
        plan.sums[0][y] -= w;
        plan.sums[1][y] -= w;
        return gold > kNone ? highest + std::log(total) - gold : -kNone;
    }

    void finish() { copies_.add_to(g_, out_tables_); }

private:
    Row row_of(const Members::Member& member) {
        const Axis axis = axis_of(g_, member, y_);
        const std::int32_t k = g_.table_of_clique[member.clique];
        const Copies::Place& place = copies_.place[k];
        if (place.straight < 0)
            return {scores_ + axis.base, out_tables_ + axis.base,
                    static_cast<std::size_t>(axis.stride)};
        const std::int64_t at = axis.base - g_.table_offsets[k];
        // The first of two variables: the second one's label is the row of the copy by columns.
        const bool first = member.place == g_.scope_offsets[member.clique];
        const std::int64_t begin =
            first ? place.turned + at * Copies::padded(place.rows)
                  : place.straight + at / place.columns * Copies::padded(place.columns);
        return {copies_.scores.data() + begin, copies_.sums.data() + begin, 1};
    }

    const Cliques& g_;
    Members members_;
    Copies copies_;
    const double* unary_;
    const double* scores_;
    const std::int32_t* y_;
    double* out_unary_;
    double* out_tables_;
    isa_baseline::Scratch s_, base_, zeros_, nowhere_;
    Plan plans_[2];
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
                const auto last = static_cast<std::int64_t>(g.variables) - 1;
                if (last >= 0) loss.prepare(0);
                for (std::size_t e = 0; e < g.examples && !stopped; ++e) {
                    const double w = weight ? weight->data()[e] : 1.0;
                    double value = 0.0;
                    for (auto v = g.variable_offsets[e]; v < g.variable_offsets[e + 1]; ++v) {
                        if (v < last) loss.prepare(v + 1);
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
