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
// lowest finite number, which leaves -inf.
//
// Tables of label distances (distance_tables.hpp) take time in proportion to the labels.
//
// Reference: Kolmogorov (2006), Convergent tree-reweighted message passing for energy minimization.
#include "messages.hpp"

namespace chordal {

// The messages of a run, from which a run on other scores of the same structure may begin.
class TrwSMessages {
public:
    TrwSMessages();
    ~TrwSMessages();
    // The messages of an example: zeros at first, and after a change of their number.
    double* room(std::size_t example, std::size_t cells);
    struct Rows;
    Rows& rows() const { return *rows_; }

private:
    Rows* rows_;
};

struct ReweightedResults {
    std::int32_t* labels;      // [variables]
    double* bound;             // [examples]
    std::int64_t* iterations;  // [examples]
    double* change;            // [examples] of the bound, relative; 0 if it is reached
    bool* late;
    TrwSMessages* kept;        // where messages begin, and where they end; or null
};

// When iterations end.
struct ReweightedLimits {
    double tolerance;  // of the bound's change, relative
    double progress;   // what an iteration of a long run has to close of the gap
    std::int64_t most_iterations;
};

CHORDAL_BOTH_ISAS(bool reweighted_labels(const Scores&, const ReweightedLimits&, bool (*interrupted)(),
                                         const ReweightedResults&);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

class TrwS {
public:
    bool impossible = false;
    double bound = 0.0, best = -kInfinity;

    // Messages begin where those that are kept ended, if there are any.
    void open(const Scores& g, const FactorExample& ex, const RingTables<MaxSum>& tables,
              std::int32_t* labels, TrwSMessages* kept, std::size_t example) {
        ex_ = &ex;
        tables_ = &tables;
        best_labels_ = labels;
        impossible = false;
        best = -kInfinity;
        bound = kInfinity;
        phi_.resize(ex.state_cells);
        Listening listening;
        for (Int v = 0; v < ex.variables; ++v) {
            listening.spend(64 * ex.width(v));
            double* phi = phi_.data() + ex.state_at(v);
            const double* score = g.unary + ex.first_state(v);
            for (std::size_t x = 0; x < ex.width(v); ++x)
                phi[x] = x < ex.labels(v) ? score[x] : -kInfinity;
            labels[v] = 0;
        }
        for (Int c = 0; c < ex.cliques; ++c) {
            const Int v = ex.variable(ex.places_of(c));
            if (ex.order_of(c) == 1)
                MaxSum::times(phi_.data() + ex.state_at(v), tables.cells(ex.table(c)), ex.width(v));
        }
        const std::size_t cells = list_edges(listening);
        own_.resize(kept ? 0 : cells);
        rows_ = kept ? kept->room(example, cells) : own_.data();
        start(kept != nullptr, listening);
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
            fetch(edge_at_[s] + kAhead, edge_at_[s + 1] + kAhead);
            score += take_label(s);
            if (patience.late) continue;
            const double gamma = reparametrise(s);
            for_edges(s, [&](const Edge& e) {
                if (e.other > s) send(e, s, gamma);
            });
            patience.now(work(s));
        }
        if (!impossible && !patience.stopped && score > best) keep(score);
    }

    void backwards(Interruption& patience) {
        double sum = 0.0;
        for (Int s = ex_->variables; s-- > 0 && !impossible && !patience.over();) {
            fetch(edge_at_[s] - kAhead, edge_at_[s + 1] - kAhead);
            const double gamma = reparametrise(s);
            Int in = 0;
            for_edges(s, [&](const Edge& e) {
                if (e.other > s) return;
                ++in;
                sum += send(e, s, gamma);
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
                for_edges(s, [&](const Edge& e) { unsettled_[e.other] = 1; });
            }
        }
    }

    // What an iteration takes, in nanoseconds or so.
    double steps() const {
        double sum = 0.0;
        for (Int c = 0; c < ex_->cliques; ++c) {
            if (ex_->order_of(c) != 2) continue;
            const Int first = ex_->places_of(c);
            const auto a = static_cast<double>(ex_->labels(ex_->variable(first)));
            const auto b = static_cast<double>(ex_->labels(ex_->variable(first + 1)));
            sum += tables_->distances(ex_->table(c)).reach > 0 ? 2.0 * (a + b) : 0.5 * a * b;
        }
        return sum;
    }

private:
    // An edge as one of its ends sees it. On large graphs the way to an edge through the arrays of
    // its clique is one cache miss after another; here all is in one place, and fetched ahead.
    struct Edge {
        Int row;             // where its message lies
        std::int32_t other;  // its other end
        std::int32_t table : 31;
        bool first : 1;  // whether this end is the table's first
    };
    static constexpr Int kAhead = 16;  // edges

    // Edges of each variable in the order of its slots; rows in the order of the way forwards. Returns
    // the cells of all rows.
    std::size_t list_edges(Listening& listening) {
        const FactorExample& ex = *ex_;
        edge_at_.resize(static_cast<std::size_t>(ex.variables) + 1);
        Int count = 0;
        for (Int s = 0; s < ex.variables; ++s) {
            edge_at_[s] = count;
            for_slots(s, [&](Int, Int, Int) { ++count; });
        }
        edge_at_[ex.variables] = count;
        edges_.resize(static_cast<std::size_t>(count));
        row_at_.resize(static_cast<std::size_t>(ex.cliques));
        Int cells = 0;
        for (Int s = 0; s < ex.variables; ++s) {
            listening.spend(work(s));
            Edge* e = edges_.data() + edge_at_[s];
            for_slots(s, [&](Int c, Int p, Int t) {
                if (t > s) {
                    row_at_[c] = cells;
                    cells += static_cast<Int>(ex.width(s) > ex.width(t) ? ex.width(s) : ex.width(t));
                }
                *e++ = {row_at_[c], static_cast<std::int32_t>(t), static_cast<std::int32_t>(ex.table(c)),
                        p == ex.places_of(c)};
            });
        }
        return static_cast<std::size_t>(cells);
    }
    // Towards the earlier end, as after a way back. Any finite numbers will do.
    void start(bool warm, Listening& listening) {
        for (Int s = 0; s < ex_->variables; ++s) {
            listening.spend(work(s) * ex_->width(s));
            for_edges(s, [&](const Edge& e) {
                double* m = row(e);
                if (e.other > s)
                    for (std::size_t x = 0; x < ex_->width(s); ++x) {
                        const double before = warm && m[x] > -kInfinity ? m[x] : 0.0;
                        m[x] = x < ex_->labels(s) ? before : -kInfinity;
                    }
            });
        }
    }
    std::size_t work(Int s) const { return static_cast<std::size_t>(64 * (1 + ex_->degree(s))); }
    double* row(const Edge& e) const { return rows_ + e.row; }

    template <class F>
    CHORDAL_INLINE void for_edges(Int s, F f) const {
        for (Int k = edge_at_[s]; k < edge_at_[s + 1]; ++k) f(edges_[k]);
    }
    // Edges that come next.
    CHORDAL_INLINE void fetch(Int from, Int to) const {
        const Int last = edge_at_[ex_->variables];
        for (Int k = from < 0 ? 0 : from; k < (to < last ? to : last); ++k) {
            __builtin_prefetch(row(edges_[k]), 1);
            __builtin_prefetch(tables_->cells(edges_[k].table));
        }
    }
    // Calls f(edge, the place of s, the other end).
    template <class F>
    void for_slots(Int s, F f) const {
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
        for_edges(s, [&](const Edge& e) {
            name_term(row(e));
            ++(e.other < s ? in : out);
        });
        add_terms(phi_.data() + ex_->state_at(s), ex_->width(s), a_.data());
        const Int chains = in > out ? in : out;
        highest_ = row_max(a_.data(), ex_->width(s));
        impossible |= highest_ == -kInfinity;
        return 1.0 / static_cast<double>(chains > 0 ? chains : 1);
    }

    // The message from s along edge e; returns δ.
    double send(const Edge& e, Int s, double gamma) {
        const Int t = e.other;
        const double* table = tables_->cells(e.table);
        const Distances& distances = tables_->distances(e.table);
        double* m = row(e);
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
        if (e.first)
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
        for_edges(s, [&](const Edge& e) {
            const Int t = e.other;
            if (!all && t > s) return;
            const double* table = tables_->cells(e.table);
            const auto other = static_cast<std::size_t>(y[t]);
            if (!e.first || tables_->distances(e.table).reach > 0)
                return name_term(table + other * ex_->width(s));
            add_terms(from, ex_->width(s), to);
            from = to;
            const std::size_t stride = ex_->width(t);
            for (std::size_t x = 0; x < ex_->labels(s); ++x) to[x] += table[x * stride + other];
        });
        add_terms(from, ex_->width(s), to);
    }
    std::size_t argmax(Int s) const { return first_largest(a_.data(), ex_->labels(s)); }
    // The score of s's label and of its edges to earlier variables.
    double take_label(Int s) {
        condition(s, y_.data(), false, n_.data());
        for_edges(s, [&](const Edge& e) {
            if (e.other > s) name_term(row(e));
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
    double* rows_ = nullptr;
    Scratch phi_, own_, a_, n_;
    ScratchOf<Int> edge_at_;
    ScratchOf<Edge> edges_;
    DistanceRows distance_rows_;
    ScratchOf<const double*> term_;
    std::size_t terms_ = 0;
    double highest_ = 0.0;  // of a_
    ScratchOf<Int> row_at_;
    ScratchOf<std::int32_t> y_;
    ScratchOf<std::uint8_t> unsettled_;
};

bool reweighted_labels(const Scores& g, const ReweightedLimits& limits, bool (*interrupted)(),
                       const ReweightedResults& results) {
    constexpr double kLong = 1e9;  // about a second
    constexpr Int kFirst = 10;     // iterations, in which messages may have far to go
    Interruption patience(interrupted);
    FactorExample ex;
    RingTables<MaxSum> tables;
    tables.fill(g);
    TrwS method;
    for (std::size_t e = 0; e < g.examples && !patience.stopped; ++e) {
        ex.open(g, e);
        method.open(g, ex, tables, results.labels + g.variable_offsets[e], results.kept, e);
        double before = kInfinity, change = kInfinity, steps = 0.0;
        const double more = method.steps();
        Int iterations = 0;
        while (iterations < limits.most_iterations && !method.impossible) {
            method.forwards(patience);
            method.backwards(patience);
            if (method.impossible || patience.over()) break;
            ++iterations;
            const double size = 1.0 + std::abs(method.bound);
            const double closed = before - method.bound, gap = method.bound - method.best;
            change = closed / size;
            change = change > 0.0 ? change : 0.0;
            before = method.bound;
            if (gap <= 1e-12 * size) change = 0.0;
            if (change <= limits.tolerance) break;
            steps += more;
            if (steps > kLong && iterations >= kFirst && gap < kInfinity && closed < limits.progress * gap) break;
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
#include <nanobind/stl/vector.h>

#include "frame_binding.hpp"

namespace chordal {

struct TrwSMessages::Rows {
    std::vector<std::vector<double>> of_example;
};
TrwSMessages::TrwSMessages() : rows_(new Rows) {}
TrwSMessages::~TrwSMessages() { delete rows_; }
double* TrwSMessages::room(std::size_t example, std::size_t cells) {
    auto& all = rows_->of_example;
    if (all.size() <= example) all.resize(example + 1);
    if (all[example].size() != cells) all[example].assign(cells, 0.0);
    return all[example].data();
}

static const Binding binding([](nb::module_& m) {
    nb::class_<TrwSMessages>(m, "TRWSMessages", "Where the messages of `trw_s_labels` ended.")
        .def(nb::init<>())
        .def(
            "arrays",
            [](const TrwSMessages& kept) {
                std::vector<nb::ndarray<nb::numpy, double, nb::ndim<1>>> found;
                for (const auto& row : kept.rows().of_example)
                    found.push_back(array_of(std::vector<double>(row)));
                return found;
            },
            "A copy of the messages of each example.")
        .def(
            "append",
            [](TrwSMessages& kept, const Input<double>& row) {
                kept.rows().of_example.emplace_back(row.data(), row.data() + row.size());
            },
            nb::arg("row"), "The messages of one more example; zeros where their number is wrong.");
    // With `kept`, messages begin where they ended before.
    m.def(
        "trw_s_labels",
        [](const BoundScores& scores, double tolerance, double progress, std::int64_t max_iter,
           Output<std::int32_t> labels, Output<double> bound, TrwSMessages* kept) {
            const ReweightedLimits limits{tolerance, progress, max_iter};
            Iterations ended(scores.examples);
            const ReweightedResults results{labels.data(), bound.data(), ended.n_iter.data(),
                                            ended.change.data(), &ended.late, kept};
            bool done;
            {
                GilReleased release;
                done = CHORDAL_DISPATCH(
                    reweighted_labels(scores, limits, interrupted, results));
            }
            if (!done) throw Stopped{};
            return ended;
        },
        nb::arg("scores"), nb::kw_only(), nb::arg("tolerance"), nb::arg("progress"),
        nb::arg("max_iter"), nb::arg("labels"), nb::arg("bound"), nb::arg("kept").none() = nb::none());
});

}  // namespace chordal
#endif
