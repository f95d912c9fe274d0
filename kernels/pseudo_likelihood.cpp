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

// A table [rows, columns] and its copies: straight [rows, across], turned [columns, down].
struct TwoWays {
    std::size_t rows, columns, across, down;
    double *straight, *turned;
};

// A variable on its way: n labels of scores u + a + b, whose derivative goes to out, to_a and to_b.
struct Visit {
    const double *u, *a, *b;
    double *out, *to_a, *to_b;
    double* s;  // [n, padded to a multiple of four]
    std::size_t n, y;
    double gold, highest, total;  // s(y), max s and Σ exp(s - highest), which is 0 if all is -inf
};

// The three steps of `count` variables; none waits for the sums of its neighbours.
// add_scores: s = u + a + b, gold and highest. exponentiate: s = exp(s - highest), total.
// spread: p = w (s / total - [y]), out = p, to_a += p, to_b += p; to_a may be to_b.
// copy_table: both copies from the table. add_table: table += straight + turned.
CHORDAL_BOTH_ISAS(void add_scores(Visit*, std::size_t count);
                  void exponentiate(Visit*, std::size_t count);
                  void spread(const Visit*, std::size_t count, double w);
                  void copy_table(const double* table, const TwoWays&);
                  void add_table(const TwoWays&, double* table);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

void add_scores(Visit* visits, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
        const Visit x = visits[k];  // a copy: stores of packs may alias all else
        Pack top = broadcast(-kInfinity);
        std::size_t j = 0;
        for (; j + kLanes <= x.n; j += kLanes) {
            const Pack score = load(x.u + j) + load(x.a + j) + load(x.b + j);
            store(x.s + j, score);
            top = maximum(top, score);
        }
        double highest = lane_max(top);
        for (; j < x.n; ++j) {
            x.s[j] = x.u[j] + x.a[j] + x.b[j];
            highest = x.s[j] > highest ? x.s[j] : highest;
        }
        for (; j < padded(x.n); ++j) x.s[j] = -kInfinity;
        visits[k].gold = x.s[x.y];
        visits[k].highest = highest;
    }
}

void exponentiate(Visit* visits, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
        double* s = visits[k].s;
        const std::size_t width = padded(visits[k].n);
        const bool none = visits[k].highest == -kInfinity;  // -inf - -inf would be NaN
        const Pack shift = broadcast(none ? 0.0 : visits[k].highest);
        Pack sum = broadcast(0.0);
        for (std::size_t j = 0; j < width; j += kLanes) {
            const Pack e = exp_nonpositive(load(s + j) - shift);
            sum += e;
            store(s + j, e);
        }
        visits[k].total = lane_sum(sum);
    }
}

void spread(const Visit* visits, std::size_t count, double w) {
    for (std::size_t k = 0; k < count; ++k) {
        const Visit x = visits[k];
        const double f = x.total > 0.0 ? w / x.total : 0.0;
        std::size_t j = 0;
        for (; j + kLanes <= x.n; j += kLanes) {
            const Pack p = load(x.s + j) * broadcast(f);
            store(x.out + j, p);
            store(x.to_a + j, load(x.to_a + j) + p);
            store(x.to_b + j, load(x.to_b + j) + p);
        }
        for (; j < x.n; ++j) {
            const double p = x.s[j] * f;
            x.out[j] = p;
            x.to_a[j] += p;
            x.to_b[j] += p;
        }
        x.out[x.y] -= w;
        x.to_a[x.y] -= w;
        x.to_b[x.y] -= w;
    }
}

// Visits a table in squares of packs, and what is left of it in single cells (row, column).
template <class Square, class Cell>
CHORDAL_INLINE void in_squares(const TwoWays& t, Square square, Cell cell) {
    for (std::size_t i = 0; i < t.rows; i += kLanes) {
        const bool whole = i + kLanes <= t.rows;
        std::size_t j = 0;
        for (; whole && j + kLanes <= t.columns; j += kLanes) square(i, j);
        for (; j < t.columns; ++j)
            for (std::size_t k = i; k < i + kLanes && k < t.rows; ++k) cell(k, j);
    }
}

void copy_table(const double* table, const TwoWays& t) {
    in_squares(
        t,
        [&](std::size_t i, std::size_t j) {
            Pack x[kLanes];
            for (std::size_t k = 0; k < kLanes; ++k) {
                x[k] = load(table + (i + k) * t.columns + j);
                store(t.straight + (i + k) * t.across + j, x[k]);
            }
            transpose(x);
            for (std::size_t k = 0; k < kLanes; ++k) store(t.turned + (j + k) * t.down + i, x[k]);
        },
        [&](std::size_t i, std::size_t j) {
            t.straight[i * t.across + j] = t.turned[j * t.down + i] = table[i * t.columns + j];
        });
}

void add_table(const TwoWays& t, double* table) {
    in_squares(
        t,
        [&](std::size_t i, std::size_t j) {
            Pack x[kLanes];
            for (std::size_t k = 0; k < kLanes; ++k) x[k] = load(t.turned + (j + k) * t.down + i);
            transpose(x);
            for (std::size_t k = 0; k < kLanes; ++k) {
                double* to = table + (i + k) * t.columns + j;
                store(to, load(to) + (load(t.straight + (i + k) * t.across + j) + x[k]));
            }
        },
        [&](std::size_t i, std::size_t j) {
            table[i * t.columns + j] += t.straight[i * t.across + j] + t.turned[j * t.down + i];
        });
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "conditionals.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

// Tables of two variables that are used often: where each begins in `straight`, by rows, and in
// `turned`, by columns; -1: it is not one of them.
struct Copies {
    struct Place {
        std::int64_t straight = -1, turned = -1, rows = 0, columns = 0, across = 0, down = 0;
    };
    std::vector<Place> place;  // [tables]
    isa_baseline::Scratch scores, sums;

    explicit Copies(const Scores& g) : place(g.n_tables) {
        std::vector<std::int64_t> uses(g.n_tables, 0);
        std::int64_t size = 0;
        for (std::size_t c = 0; c < g.cliques; ++c) {
            const std::int32_t k = g.table_of_clique[c];
            const auto first = g.scope_offsets[c];
            if (g.scope_offsets[c + 1] - first != 2) continue;
            const std::int64_t rows = g.labels(g.scopes[first]), columns = g.labels(g.scopes[first + 1]);
            if (++uses[k] != rows) continue;
            const std::int64_t across = whole_lines(columns), down = whole_lines(rows);
            place[k] = {size, size + rows * across, rows, columns, across, down};
            size += rows * across + columns * down;
        }
        const auto count = static_cast<std::size_t>(size);
        scores.resize(count);
        sums.resize(count);
        std::fill_n(sums.data(), count, 0.0);
        for (std::size_t k = 0; k < g.n_tables; ++k)
            if (place[k].straight >= 0)
                CHORDAL_DISPATCH(copy_table(g.tables + g.table_offsets[k], ways(place[k], scores)));
    }

    void add_to(const Frame& g, double* out) const {
        for (std::size_t k = 0; k < place.size(); ++k)
            if (place[k].straight >= 0)
                CHORDAL_DISPATCH(add_table(ways(place[k], sums), out + g.table_offsets[k]));
    }

private:
    static std::int64_t whole_lines(std::int64_t n) { return (n + 7) / 8 * 8; }
    static TwoWays ways(const Place& p, const isa_baseline::Scratch& in) {
        const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
        return {size(p.rows),           size(p.columns),      size(p.across), size(p.down),
                in.data() + p.straight, in.data() + p.turned};
    }
};

// Where a variable's labels are scored by one clique.
struct Row {
    const double* scores;
    double* sums;
    std::size_t stride;
};

class PseudoLikelihood {
public:
    PseudoLikelihood(const Scores& g, const std::int32_t* y, const Parts& out)
        : g_(g), copies_(g), unary_(g.unary), scores_(g.tables), y_(y), out_unary_(out.unary),
          out_tables_(out.tables) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        width_ = static_cast<std::size_t>(most + 3) / 4 * 4;
        s_.resize(2 * kAtOnce * width_);
        zeros_.resize(width_);
        nowhere_.resize(width_);
        std::fill_n(zeros_.data(), width_, 0.0);
        std::fill_n(nowhere_.data(), width_, 0.0);
        find_rows();
    }

    // The loss of variables begin .. end; adds their derivative times w. out_unary may be unary.
    double visit(std::int64_t begin, std::int64_t end, double w) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        double value = 0.0;
        Visit visits[kAtOnce];
        for (; begin < end; begin += kAtOnce) {
            const auto count = static_cast<std::size_t>(std::min(kAtOnce, end - begin));
            patience_.spend(8 * static_cast<std::size_t>(kAtOnce) * width_);
            const std::size_t first_slow = next_slow_;
            for (std::size_t k = 0; k < count; ++k)
                visits[k] = visit_of(begin + static_cast<std::int64_t>(k), s_.data() + 2 * k * width_);
            CHORDAL_DISPATCH(add_scores(visits, count));
            CHORDAL_DISPATCH(exponentiate(visits, count));
            CHORDAL_DISPATCH(spread(visits, count, w));
            for (std::size_t k = 0; k < count; ++k) {
                const Visit& x = visits[k];
                value += x.gold > -kInfinity ? x.highest + std::log(x.total) - x.gold : kInfinity;
            }
            for (std::size_t k = first_slow; k < next_slow_; ++k) {
                const Visit& x = visits[slow_[k].variable - begin];
                for (std::size_t l = 0; l < x.n; ++l) slow_[k].row.sums[l * slow_[k].row.stride] += x.out[l];
            }
        }
        return value;
    }

    void finish() { copies_.add_to(g_, out_tables_); }

private:
    static constexpr std::int64_t kAtOnce = 4;

    // Two rows in memory order, as in a chain with a tied table, go through registers alone.
    struct Pair {
        const double* scores[2];
        double* sums[2];
    };
    struct Slow {
        std::int64_t variable;
        Row row;
    };

    // A variable, its slow rows added to a copy of its scores; there is room for that beside s.
    Visit visit_of(std::int64_t v, double* s) {
        const Pair& pair = pairs_[v];
        const auto n = static_cast<std::size_t>(g_.labels(v));
        const double* u = unary_ + g_.state_offsets[v];
        for (; next_slow_ < slow_.size() && slow_[next_slow_].variable == v; ++next_slow_) {
            const Row& row = slow_[next_slow_].row;
            for (std::size_t l = 0; l < n; ++l) s[width_ + l] = u[l] + row.scores[l * row.stride];
            u = s + width_;
        }
        return {u, pair.scores[0], pair.scores[1], out_unary_ + g_.state_offsets[v], pair.sums[0],
                pair.sums[1], s, n, static_cast<std::size_t>(y_[v]), 0.0, 0.0, 0.0};
    }

    void find_rows() {
        pairs_.assign(g_.variables, Pair{{zeros_.data(), zeros_.data()},
                                         {nowhere_.data(), nowhere_.data()}});
        for (std::size_t c = 0; c < g_.cliques; ++c)
            for (auto s = g_.scope_offsets[c]; s < g_.scope_offsets[c + 1]; ++s) {
                const std::int64_t v = g_.scopes[s];
                const Row row = row_of({static_cast<std::int64_t>(c), s});
                Pair& pair = pairs_[v];
                const int place = pair.sums[0] == nowhere_.data() ? 0 : 1;
                if (row.stride != 1 || pair.sums[place] != nowhere_.data()) {
                    slow_.push_back({v, row});
                    continue;
                }
                pair.scores[place] = row.scores;
                pair.sums[place] = row.sums;
            }
        std::stable_sort(slow_.begin(), slow_.end(),
                         [](const Slow& a, const Slow& b) { return a.variable < b.variable; });
    }

    Row row_of(const Members::Member& member) {
        const std::int32_t k = g_.table_of_clique[member.clique];
        const Copies::Place& place = copies_.place[k];
        if (place.straight < 0) {
            const Axis axis = axis_of(g_, member, y_);
            return {scores_ + axis.base, out_tables_ + axis.base,
                    static_cast<std::size_t>(axis.stride)};
        }
        // The other label is the row of a copy: of that by columns for the first variable.
        const auto first = g_.scope_offsets[member.clique];
        const std::int64_t begin =
            member.place == first ? place.turned + y_[g_.scopes[first + 1]] * place.down
                                  : place.straight + y_[g_.scopes[first]] * place.across;
        return {copies_.scores.data() + begin, copies_.sums.data() + begin, 1};
    }

    const Frame& g_;
    Copies copies_;
    const double* unary_;
    const double* scores_;
    const std::int32_t* y_;
    double* out_unary_;
    double* out_tables_;
    std::size_t width_ = 0;
    isa_baseline::Scratch s_, zeros_, nowhere_;
    std::vector<Pair> pairs_;  // [variables]
    std::vector<Slow> slow_;   // the other rows, by variable
    std::size_t next_slow_ = 0;
    isa_baseline::Patience patience_{interrupted};
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // The parts' unary may be the memory of the scores'; their tables hold zeros.
    m.def(
        "pseudo_likelihood",
        [](const BoundScores& g, const BoundParts& parts, Input<std::int32_t> labels, Weight weight,
           Output<double> values) {
            GilReleased release;
            PseudoLikelihood loss(g, labels.data(), parts);
            for (std::size_t e = 0; e < g.examples; ++e) {
                const double w = weight ? weight->data()[e] : 1.0;
                values.data()[e] = loss.visit(g.variable_offsets[e], g.variable_offsets[e + 1], w);
            }
            loss.finish();
        },
        nb::arg("scores"), nb::arg("parts"), nb::arg("labels"), nb::kw_only(),
        nb::arg("weight").none(), nb::arg("values"));
});

}  // namespace chordal
#endif
