// Sequential tree-reweighted message passing (TRW-S) for the best labelling of pairwise models.
//
// Variables are visited in their order, forwards and backwards in turn. With earlier neighbours
// in_s, later ones out_s and n_s = max(in_s, out_s, 1) chains through s, γ_s = 1 / n_s,
//
//   a_s(x)     = φ_s(x) + Σ_{t ~ s} M_{ts}(x)
//   M_{st}(x') = max_x [ψ_st(x, x') + γ_s a_s(x) - M_{ts}(x)] - δ_st      largest entry 0
//
// towards later neighbours on the way forwards, towards earlier ones on the way back. M_{ts} is not
// needed again before it is made anew: one row per edge holds whichever of the two is current.
//
// After a way back, max_x' [γ_t a_t(x') + ψ_st - M_st - M_ts] = δ_ts for every x. A chain of edges that
// goes up in the order then reaches at most Σ δ + γ max a of its first variable; n_s - in_s chains
// begin at s. Since all chains together are the model,
//
//   max_y score(y) <= Σ_edges δ_ts + Σ_s (n_s - in_s) γ_s max_x a_s(x)
//
// which never rises. Labels are taken on the way forwards: y_s is the best given the labels of
// earlier neighbours and the messages of later ones; the best labelling met is kept, and improved
// at the end one variable at a time.
//
// Hazard: -inf. Where a_s(x) = -inf the label is impossible whatever M says; M is then read as the
// lowest finite number, which leaves -inf. Potts tables (one score for equal, a lower one for unequal
// labels) take time linear in the labels.
//
// Reference: Kolmogorov (2006), Convergent tree-reweighted message passing for energy minimization.
#include "messages.hpp"

namespace chordal {

struct ReweightedResults {
    std::int32_t* labels;      // [variables]
    double* bound;             // [examples]
    std::int64_t* iterations;  // [examples]
    double* change;            // [examples] of the bound, relative; 0 if it is reached
    bool* late;
};

CHORDAL_BOTH_ISAS(bool reweighted_labels(const Scores&, double tolerance,
                                         std::int64_t most_iterations, bool (*interrupted)(),
                                         const ReweightedResults&);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

class TrwS {
public:
    bool impossible = false;
    double bound = 0.0, best = -kInfinity;

    void open(const Scores& g, const FactorExample& ex, const RingTables<MaxSum>& tables,
              std::int32_t* labels) {
        ex_ = &ex;
        tables_ = &tables;
        best_labels_ = labels;
        impossible = false;
        best = -kInfinity;
        bound = kInfinity;
        phi_.resize(ex.state_cells);
        for (Int v = 0; v < ex.variables; ++v) {
            double* phi = phi_.data() + ex.state_at(v);
            const double* score = g.unary + ex.first_state(v);
            for (std::size_t x = 0; x < ex.width(v); ++x)
                phi[x] = x < ex.labels(v) ? score[x] : -kInfinity;
            labels[v] = 0;
        }
        row_at_.resize(static_cast<std::size_t>(ex.cliques));
        std::size_t cells = 0;
        for (Int c = 0; c < ex.cliques; ++c) {
            const Int first = ex.places_of(c), a = ex.variable(first);
            if (ex.order_of(c) == 1) {
                MaxSum::times(phi_.data() + ex.state_at(a), tables.cells(ex.table(c)), ex.width(a));
                continue;
            }
            const std::size_t wa = ex.width(a), wb = ex.width(ex.variable(first + 1));
            row_at_[c] = static_cast<Int>(cells);
            cells += wa > wb ? wa : wb;
        }
        rows_.resize(cells);
        for (Int c = 0; c < ex.cliques; ++c)
            if (ex.order_of(c) == 2) start(c);
        const std::size_t row = padded_of(ex.most_labels);
        a_.resize(row);
        n_.resize(row);
        y_.resize(static_cast<std::size_t>(ex.variables));
        term_.resize(static_cast<std::size_t>(ex.largest_degree));
        terms_ = 0;
    }

    // Labels are taken on the way; keeps them if they are the best so far. Out of time, labels alone.
    void forwards(Interruption& patience) {
        double score = 0.0;
        for (Int s = 0; s < ex_->variables && !impossible && !patience.stopped; ++s) {
            score += take_label(s);
            if (patience.late) continue;
            const double gamma = reparametrise(s);
            for_edges(s, [&](Int c, Int p, Int t) {
                if (t > s) send(c, p, s, gamma);
            });
            patience.now(work(s));
        }
        if (!impossible && !patience.stopped && score > best) keep(score);
    }

    void backwards(Interruption& patience) {
        double sum = 0.0;
        for (Int s = ex_->variables; s-- > 0 && !impossible && !patience.over();) {
            const double gamma = reparametrise(s);
            Int in = 0;
            for_edges(s, [&](Int c, Int p, Int t) {
                if (t > s) return;
                ++in;
                sum += send(c, p, s, gamma);
            });
            sum += (1.0 - static_cast<double>(in) * gamma) * highest_;
            patience.now(work(s));
        }
        if (!patience.over()) bound = sum;
    }

    // One variable at a time takes its best label given all others, until none changes.
    void improve(Interruption& patience) {
        if (best == -kInfinity) return;
        unsettled_.resize(static_cast<std::size_t>(ex_->variables));
        for (Int s = 0; s < ex_->variables; ++s) unsettled_[s] = 1;
        for (bool moved = true; moved && !patience.over();) {
            moved = false;
            for (Int s = 0; s < ex_->variables && !patience.over(); ++s) {
                if (!unsettled_[s]) continue;
                unsettled_[s] = 0;
                condition(s, best_labels_, true, a_.data());
                const std::size_t x = argmax(s), now = static_cast<std::size_t>(best_labels_[s]);
                patience.now(work(s));
                // A difference that rounding can make is none: two labels must not take turns for ever.
                if (!(a_[x] - a_[now] > 1e-13 * (std::abs(a_[x]) + std::abs(a_[now])))) continue;
                best_labels_[s] = static_cast<std::int32_t>(x);
                moved = true;
                for_edges(s, [&](Int, Int, Int t) { unsettled_[t] = 1; });
            }
        }
    }

private:
    void start(Int c) {
        // Towards the earlier end, as after a way back.
        const Int a = ex_->variable(ex_->places_of(c)), b = ex_->variable(ex_->places_of(c) + 1);
        const Int to = a < b ? a : b;
        double* row = rows_.data() + row_at_[c];
        for (std::size_t x = 0; x < ex_->width(to); ++x) row[x] = x < ex_->labels(to) ? 0.0 : -kInfinity;
    }
    std::size_t work(Int s) const { return static_cast<std::size_t>(64 * (1 + ex_->degree(s))); }
    double* row(Int c) const { return rows_.data() + row_at_[c]; }

    // Calls f(edge, the place of s, the other end).
    template <class F>
    void for_edges(Int s, F f) const {
        for (Int slot = ex_->slots(s); slot < ex_->slots(s) + ex_->degree(s); ++slot) {
            const Int p = ex_->place_of(slot), c = ex_->clique(p), first = ex_->places_of(c);
            if (ex_->order_of(c) == 2) f(c, p, ex_->variable(p == first ? first + 1 : first));
        }
    }
    // Rows are added in the order in which they were named, and only then.
    void name_term(const double* row) { term_[terms_++] = row; }
    void add_terms(const double* from, std::size_t width, double* to) {
        constexpr std::size_t kAtOnce = 4;
        std::size_t j = 0;
        for (; j + kAtOnce * kLanes <= width; j += kAtOnce * kLanes) {
            Pack x[kAtOnce];
            for (std::size_t i = 0; i < kAtOnce; ++i) x[i] = load(from + j + i * kLanes);
            for (std::size_t k = 0; k < terms_; ++k)
                for (std::size_t i = 0; i < kAtOnce; ++i) x[i] = x[i] + load(term_[k] + j + i * kLanes);
            for (std::size_t i = 0; i < kAtOnce; ++i) store(to + j + i * kLanes, x[i]);
        }
        for (; j < width; j += kLanes) {
            Pack x = load(from + j);
            for (std::size_t k = 0; k < terms_; ++k) x = x + load(term_[k] + j);
            store(to + j, x);
        }
        terms_ = 0;
    }
    // a_s, and γ_s.
    double reparametrise(Int s) {
        Int in = 0, out = 0;
        for_edges(s, [&](Int c, Int, Int t) {
            name_term(row(c));
            ++(t < s ? in : out);
        });
        add_terms(phi_.data() + ex_->state_at(s), ex_->width(s), a_.data());
        const Int chains = in > out ? in : out;
        highest_ = row_max(a_.data(), ex_->width(s));
        impossible |= highest_ == -kInfinity;
        return 1.0 / static_cast<double>(chains > 0 ? chains : 1);
    }

    // The message from s along edge c; returns δ.
    double send(Int c, Int p, Int s, double gamma) {
        const Int first = ex_->places_of(c);
        const Int t = ex_->variable(p == first ? first + 1 : first);
        const double* table = tables_->cells(ex_->table(c));
        const Distances& distances = tables_->distances(ex_->table(c));
        double* m = row(c);
        if (distances.reach > 0) {
            distance_rows_.open(ex_->labels(s));
            const double highest = leave_out(m, ex_->width(s), gamma, distance_rows_.n());
            const double delta = highest + table[0];
            impossible |= delta == -kInfinity;
            if (!impossible)
                distance_message(table, distances, distance_rows_.n(), distance_rows_.spare(), ex_->labels(s), highest,
                                 delta, m);
            return delta;
        }
        leave_out(m, ex_->width(s), gamma, n_.data());
        if (p == first)
            MaxSum::across(table, ex_->width(t), n_.data(), ex_->labels(s), ex_->width(t), 1.0, m);
        else
            along(table, m, ex_->labels(t), ex_->width(s));
        const double delta = row_max(m, ex_->width(t));
        impossible |= delta == -kInfinity;
        if (impossible) return delta;
        for (std::size_t j = 0; j < ex_->width(t); j += kLanes)
            store(m + j, load(m + j) - broadcast(delta));
        return delta;
    }
    // γ a without m, into n; returns the largest.
    double leave_out(const double* m, std::size_t width, double gamma, double* n) const {
        Pack highest = broadcast(-kInfinity);
        for (std::size_t j = 0; j < width; j += kLanes) {
            const Pack x = load(a_.data() + j) * broadcast(gamma) - maximum(load(m + j), broadcast(kLowest));
            highest = maximum(highest, x);
            store(n + j, x);
        }
        return lane_max(highest);
    }
    void along(const double* table, double* m, std::size_t rows, std::size_t width) const {
        for (std::size_t i = 0; i < rows; ++i)
            m[i] = MaxSum::along(table + i * width, n_.data(), width, 1.0);
        for (std::size_t i = rows; i < padded(rows); ++i) m[i] = -kInfinity;
    }
    // Adds to φ_s the tables of its edges, those to earlier variables or all, where the other ends have labels y.
    void condition(Int s, const std::int32_t* y, bool all, double* to) {
        const double* from = phi_.data() + ex_->state_at(s);
        for_edges(s, [&](Int c, Int p, Int t) {
            if (!all && t > s) return;
            const double* table = tables_->cells(ex_->table(c));
            const auto other = static_cast<std::size_t>(y[t]);
            if (p != ex_->places_of(c) || tables_->distances(ex_->table(c)).reach > 0)
                return name_term(table + other * ex_->width(s));
            add_terms(from, ex_->width(s), to);
            from = to;
            const std::size_t stride = ex_->width(t);
            for (std::size_t x = 0; x < ex_->labels(s); ++x) to[x] += table[x * stride + other];
        });
        add_terms(from, ex_->width(s), to);
    }
    std::size_t argmax(Int s) const {
        return first_largest(a_.data(), ex_->labels(s));
    }
    // The score of s's label and of its edges to earlier variables.
    double take_label(Int s) {
        condition(s, y_.data(), false, n_.data());
        for_edges(s, [&](Int c, Int, Int t) {
            if (t > s) name_term(row(c));
        });
        add_terms(n_.data(), ex_->width(s), a_.data());
        const std::size_t x = argmax(s);
        y_[s] = static_cast<std::int32_t>(x);
        return n_[x];
    }
    void keep(double score) {
        best = score;
        for (Int s = 0; s < ex_->variables; ++s) best_labels_[s] = y_[s];
    }

    const FactorExample* ex_ = nullptr;
    const RingTables<MaxSum>* tables_ = nullptr;
    std::int32_t* best_labels_ = nullptr;
    Scratch phi_, rows_, a_, n_;
    DistanceRows distance_rows_;
    ScratchOf<const double*> term_;
    std::size_t terms_ = 0;
    double highest_ = 0.0;  // of a_
    ScratchOf<Int> row_at_;
    ScratchOf<std::int32_t> y_;
    ScratchOf<std::uint8_t> unsettled_;
};

bool reweighted_labels(const Scores& g, double tolerance, std::int64_t most_iterations,
                       bool (*interrupted)(), const ReweightedResults& results) {
    Interruption patience(interrupted);
    FactorExample ex;
    RingTables<MaxSum> tables;
    tables.fill(g);
    TrwS method;
    for (std::size_t e = 0; e < g.examples && !patience.stopped; ++e) {
        ex.open(g, e);
        method.open(g, ex, tables, results.labels + g.variable_offsets[e]);
        double before = kInfinity, change = kInfinity;
        Int iterations = 0;
        while (iterations < most_iterations && !method.impossible) {
            method.forwards(patience);
            method.backwards(patience);
            if (method.impossible || patience.over()) break;
            ++iterations;
            const double size = 1.0 + std::abs(method.bound);
            change = (before - method.bound) / size;
            change = change > 0.0 ? change : 0.0;
            before = method.bound;
            if (method.bound - method.best <= 1e-12 * size) change = 0.0;
            if (change <= tolerance) break;
        }
        if (!method.impossible) method.improve(patience);
        results.bound[e] = method.impossible ? -kInfinity : method.bound;
        results.iterations[e] = iterations;
        results.change[e] = change;
    }
    *results.late = patience.late;
    return !patience.stopped;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "frame_binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "trw_s_labels",
        [](const BoundScores& scores, double tolerance, std::int64_t max_iter,
           Output<std::int32_t> labels, Output<double> bound) {
            Iterations ended(scores.examples);
            const ReweightedResults results{labels.data(), bound.data(), ended.n_iter.data(),
                                            ended.change.data(), &ended.late};
            bool done;
            {
                nb::gil_scoped_release release;
                done = CHORDAL_DISPATCH(
                    reweighted_labels(scores, tolerance, max_iter, interrupted, results));
            }
            if (!done) throw Stopped{};
            return ended;
        },
        nb::arg("scores"), nb::arg("tolerance"), nb::arg("max_iter"), nb::arg("labels"),
        nb::arg("bound"));
});

}  // namespace chordal
#endif
