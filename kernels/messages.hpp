// Messages between the variables and the cliques of one example, in any ring of rings.hpp.
//
//   m_{c→v}(x_v) = ⊕_{x_{c \ v}} ψ_c(x_c) ⊗ ⊗_{u ∈ c \ v} n_{u→c}(x_u)        `update`
//   n_{v→c}(x_v) = φ_v(x_v) ⊗ ⊗_{c' ∋ v, c' ≠ c} m_{c'→v}(x_v)                `cavities`
//   b_v(x_v)     = φ_v(x_v) ⊗ ⊗_{c ∋ v} m_{c→v}(x_v)                          `belief`
//
// φ and ψ are the scores of labels and tables. The n of all cliques of a variable come from products
// of what is before and of what is after each: nothing is divided. m is kept by variable, n by clique.
// Each m is scaled to a largest entry of 1. A clique of k variables is summed out one axis at a time; an edge whose
// table is one of label distances takes a quicker way (distance_messages.hpp).
//
// Reweighted by ρ_c, tables enter to the power 1 / ρ_c, messages to the power ρ_c:
//   b_v = φ_v ⊗ ⊗_{c ∋ v} m_{c→v}^{ρ_c},   n_{v→c} = b_v ⊘ m_{c→v}
// That is a division, in logarithms, of something by one of its factors: -inf stays -inf.
//
// Hazard: round a loop, tables with -inf multiply the distance between two labels without end. Such an
// example has a floor (`reach_of`): no message to a label that φ allows falls below it. φ has to leave
// only labels that every table supports; then nothing vanishes, and nothing runs away.
#pragma once

#include "distance_messages.hpp"
#include "factors.hpp"

namespace chordal::CHORDAL_ISA {

// Tables in a ring's numbers, the last axis padded; a tied one is kept once, and only if it is asked for.
template <class Ring>
class RingTables {
public:
    void open(const Scores& g) {
        if (g_) return;
        g_ = &g;
        at_.resize(g.n_tables + 1);
        last_.resize(g.n_tables + 1);
        shift_.resize(g.n_tables + 1);
        distances_.resize(g.n_tables + 1);
        state_.resize(g.n_tables + 1);
        for (std::size_t t = 0; t < g.n_tables; ++t) last_[t] = state_[t] = 0;
        for (std::size_t c = 0; c < g.cliques; ++c)
            last_[g.table_of_clique[c]] = static_cast<Int>(g.labels(g.scopes[g.scope_offsets[c + 1] - 1]));
        std::size_t cells = 0;
        largest_ = 4;
        for (std::size_t t = 0; t < g.n_tables; ++t) {
            at_[t] = static_cast<Int>(cells);
            if (last_[t] == 0) continue;  // no clique has it
            const Int rows = (g.table_offsets[t + 1] - g.table_offsets[t]) / last_[t];
            const std::size_t size = static_cast<std::size_t>(rows) * padded_of(last_[t]);
            largest_ = size > largest_ ? size : largest_;
            cells += size;
        }
        cells_.resize(cells);
    }
    void fill(const Scores& g) {
        open(g);
        for (std::size_t t = 0; t < g.n_tables; ++t)
            if (last_[t] > 0) need(static_cast<Int>(t));
    }
    void need(Int t) {
        if (state_[t] & kFilled) return;
        if (!(state_[t] & kMeasured)) measure(t);
        fill_one(t);
        compare(t);
        state_[t] |= kFilled;
    }
    // Whether single messages by the distances of labels are quicker than blocks by the cells.
    bool quicker_than_blocks(Int t) {
        const std::size_t labels = static_cast<std::size_t>(last_[t]) / kGainOfBlocks;
        if (labels < kManyForPotts) return false;  // and most tables need not be looked at
        compare(t);
        return DistanceMessages<Ring>::pays(distances_[t], labels);
    }
    // Notes the highest and the lowest finite score of a table that is kept elsewhere.
    void note(Int t, double highest, double lowest) {
        shift_[t] = highest == -kInfinity || Ring::kLogarithms ? 0.0 : highest;
        const bool wide = !Ring::kLogarithms && lowest - highest < kLogSmallest;
        state_[t] |= kMeasured | (wide ? kWide : 0);
    }
    const double* cells(Int t) const { return cells_.data() + at_[t]; }
    double shift(Int t) const { return shift_[t]; }
    bool wide(Int t) const { return state_[t] & kWide; }
    const Distances& distances(Int t) const { return distances_[t]; }
    std::size_t largest() const { return largest_; }

private:
    static constexpr int kMeasured = 1, kFilled = 2, kWide = 4, kCompared = 8;

    void compare(Int t) {
        if (state_[t] & kCompared) return;
        const Int rows = (g_->table_offsets[t + 1] - g_->table_offsets[t]) / last_[t];
        distances_[t] = distances_of(g_->tables + g_->table_offsets[t], rows, last_[t]);
        listening_.spend(static_cast<std::size_t>(rows * last_[t]));
        state_[t] |= kCompared;
    }
    void measure(Int t) {
        double highest = -kInfinity, lowest = kInfinity;
        for (Int k = g_->table_offsets[t]; k < g_->table_offsets[t + 1]; ++k) {
            const double x = g_->tables[k];
            highest = x > highest ? x : highest;
            lowest = x < lowest && x > -kInfinity ? x : lowest;
        }
        note(t, highest, lowest);
    }
    void fill_one(Int t) {
        const double *from = g_->tables + g_->table_offsets[t], *end = g_->tables + g_->table_offsets[t + 1];
        double* to = cells_.data() + at_[t];
        const auto labels = static_cast<std::size_t>(last_[t]);
        for (; from < end; from += labels, to += padded(labels), listening_.spend(64 * labels))
            for (std::size_t j = 0; j < padded(labels); ++j)
                to[j] = j < labels ? Ring::from_score(from[j], shift_[t]) : Ring::kZero;
    }

    Listening listening_;
    const Scores* g_ = nullptr;
    std::size_t largest_ = 4;
    ScratchOf<Int> at_, last_;
    Scratch cells_, shift_;
    ScratchOf<Distances> distances_;
    ScratchOf<std::uint8_t> state_;
};

// How far apart, in logarithms, labellings that are allowed can be in this example, and some more; 0
// where no table has -inf.
inline double reach_of(const Scores& g, const FactorExample& ex) {
    double reach = 40.0;  // beyond which a share is lost in rounding
    Listening listening;
    bool hard = false;
    const auto add = [&](const double* from, const double* end) {
        double highest = -kInfinity, lowest = kInfinity;
        bool forbids = false;
        listening.spend(static_cast<std::size_t>(end - from) + 16);
        for (; from < end; ++from) {
            highest = *from > highest ? *from : highest;
            lowest = *from < lowest && *from > -kInfinity ? *from : lowest;
            forbids |= *from == -kInfinity;
        }
        if (highest > lowest) reach += highest - lowest;
        return forbids;
    };
    for (Int v = 0; v < ex.variables; ++v) {
        const double* unary = g.unary + ex.first_state(v);
        add(unary, unary + ex.labels(v));
        reach += std::log(static_cast<double>(ex.labels(v)));
    }
    for (Int c = 0; c < ex.cliques; ++c) {
        const Int t = ex.table(c);
        hard |= add(g.tables + g.table_offsets[t], g.tables + g.table_offsets[t + 1]);
    }
    return hard ? reach : 0.0;
}

template <class Ring>
class Messages {
public:
    bool wide = false;      // numbers too far apart for this ring
    bool vanished = false;  // no label of some variable is possible
    double damping = 0.0;
    const double* rho = nullptr;  // [cliques] for reweighted messages; logarithms only

    void open(const Scores& g, const FactorExample& example, const RingTables<Ring>& tables) {
        ex_ = &example;
        tables_ = &tables;
        wide = !Ring::kLogarithms && example.largest_order > 4;
        vanished = floored_ = false;
        pairs_ = example.largest_order <= 2;
        phi_.resize(example.state_cells);
        shift_.resize(static_cast<std::size_t>(example.variables));
        m_.resize(example.message_cells);
        n_.resize(example.message_cells);
        const std::size_t row = padded_of(example.most_labels);
        running_.resize(row);
        made_.resize(row);
        for (Scratch& buffer : buffers_) buffer.resize(tables.largest());
        for (Int c = 0; c < example.cliques && !wide; ++c) wide = tables.wide(example.table(c));
        for (Int v = 0; v < example.variables && !failed(); ++v) {
            fill_phi(g, v);
            listening_.spend(64 * example.width(v));
        }
    }
    // From now on no message to a label that φ allows falls below exp(-reach); 0: no such floor.
    void set_floor(double reach) {
        floored_ = reach > 0.0;
        if (floored_) floor_ = Ring::kLogarithms ? -reach : std::exp(-reach);
        if (floored_ && floor_ < (Ring::kLogarithms ? kLowest : kSmallest)) wide = true;
    }
    // All messages are one.
    void start() {
        for (Int p = 0; p < ex_->places && !failed(); ++p) start(p);
    }
    void start(Int p) {
        const Int v = ex_->variable(p);
        for (std::size_t x = 0; x < ex_->width(v); ++x) in(p)[x] = x < ex_->labels(v) ? Ring::kOne : Ring::kZero;
        copy(phi(v), out(p), ex_->width(v));
        if (floored_) lift(in(p), v);
        listening_.spend(128 * ex_->width(v));
    }
    // Nothing more can be done in this ring.
    bool failed() const { return wide || vanished; }

    const FactorExample& example() const { return *ex_; }
    double* in(Int p) { return m_.data() + ex_->in(p); }    // m_{c→v}
    double* out(Int p) { return n_.data() + ex_->out(p); }  // n_{v→c}
    const double* phi(Int v) const { return phi_.data() + ex_->state_at(v); }
    double shift(Int v) const { return shift_[static_cast<std::size_t>(v)]; }
    double* made() { return made_.data(); }

    // The new m at place p, unscaled, into a row of its own.
    void pull(Int p, double* to) {
        const Int c = ex_->clique(p), first = ex_->places_of(c);
        if (ex_->order_of(c) != 2) return contract(c, p, to);
        const double* table = tables_->cells(ex_->table(c));
        const double power = power_of(c);
        const Int a = ex_->variable(first), b = ex_->variable(first + 1);
        const std::size_t width = ex_->width(b), rows = ex_->labels(a);
        const Distances& distances = tables_->distances(ex_->table(c));
        if (DistanceMessages<Ring>::pays(distances, rows) &&
            by_distances_.through(table, distances, power, out(p == first ? first + 1 : first), rows, to))
            return;
        if (p != first) return Ring::across(table, width, out(first), rows, width, power, to);
        const double* n = out(first + 1);
        for (std::size_t i = 0; i < rows; ++i)
            to[i] = Ring::along(table + i * width, n, width, power);
        for (std::size_t i = rows; i < padded(rows); ++i) to[i] = Ring::kZero;
    }

    // Returns how far the message at place p moved.
    double update(Int p) {
        const std::size_t width = ex_->width(ex_->variable(p));
        make(p, width);
        return move_row<Ring>(in(p), made_.data(), width, damping);
    }
    // The new m at place p, into `made`.
    CHORDAL_INLINE void make(Int p, std::size_t width) {
        pull(p, made_.data());
        if (floored_)
            lift_made(ex_->variable(p));
        else
            scale(made_.data(), width);
    }

    // Whether the product of all messages of a variable stays far from underflow: it is not scaled.
    bool tame(Int degree) const { return Ring::kLogarithms || (pairs_ && degree <= 4); }

    void cavities(Int v) {
        if (rho) return reweighted_cavities(v);
        switch (tame(ex_->degree(v)) ? ex_->degree(v) : 0) {
            case 1: return few_cavities<1>(v);
            case 2: return few_cavities<2>(v);
            case 3: return few_cavities<3>(v);
            case 4: return few_cavities<4>(v);
            default: return many_cavities(v);
        }
    }

    // Rows side by side, one per lane.
    void scale(Pack* x, std::size_t labels) {
        if (!at_least(Ring::normalise(x, labels), Ring::kSafe)) doubt(x, labels);
    }
    CHORDAL_INLINE void scale(Pack* x, std::size_t rows, Pack* y, std::size_t columns) {
        const Pack least = Ring::normalise(x, rows), other = Ring::normalise(y, columns);
        if (at_least(least, Ring::kSafe) && at_least(other, Ring::kSafe)) return;
        doubt(x, rows);
        doubt(y, columns);
    }

    // b_v up to a factor, whose logarithm is returned.
    double belief(Int v, double* to) {
        const std::size_t width = ex_->width(v);
        copy(phi(v), to, width);
        double taken = shift(v);
        const bool scaled = !tame(ex_->degree(v));
        for (Int j = 0; j < ex_->degree(v) && !vanished; ++j) {
            include(to, ex_->place_of(ex_->slots(v) + j), width);
            if (!scaled) continue;
            taken += Ring::to_log(row_max(to, width));
            scale(to, width);
        }
        return taken;
    }

    // x ⊘ m, in logarithms, where x contains m.
    void leave_out(double* x, Int p, std::size_t width) {
        for (std::size_t j = 0; j < width; j += kLanes)
            store(x + j, load(x + j) - maximum(load(in(p) + j), broadcast(kLowest)));
    }

    // The labels of v are settled: nothing but this one goes out.
    void clamp(Int v, std::size_t label) {
        for (Int j = 0; j < ex_->degree(v); ++j) {
            double* n = out(ex_->place_of(ex_->slots(v) + j));
            for (std::size_t x = 0; x < ex_->width(v); ++x) n[x] = Ring::kZero;
            n[label] = Ring::kOne;
        }
    }

    // log Σ ψ_c ⊗ ⊗ n over a clique's cells, without the table's shift.
    double clique_total(Int c) {
        const Int first = ex_->places_of(c);
        const std::size_t width = ex_->width(ex_->variable(first));
        pull(first, made_.data());
        Ring::times(made_.data(), out(first), width);
        return log_total(Ring::total(made_.data(), width));
    }
    // A product over a clique may underflow where those over variables do not.
    double log_total(double total) {
        wide |= !Ring::kLogarithms && total < kSmallest * kSmallest;
        return Ring::to_log(total);
    }
    double place_total(Int p) {
        const std::size_t width = ex_->width(ex_->variable(p));
        copy(in(p), made_.data(), width);
        Ring::times(made_.data(), out(p), width);
        return Ring::to_log(Ring::total(made_.data(), width));
    }
    double shift_of_clique(Int c) const { return tables_->shift(ex_->table(c)); }

    // Adds weight · b_c to a table of results, cell by cell; `log_total` is clique_total(c), for sums.
    void add_clique(Int c, double log_total, double weight, double* to) {
        listening_.spend(16 * tables_->largest());
        const double* table = tables_->cells(ex_->table(c));
        const Int first = ex_->places_of(c), last = ex_->places_of(c + 1) - 1;
        power_ = power_of(c);
        if constexpr (Ring::kLogarithms) {
            std::size_t size = 1;
            for (Int p = first; p <= last; ++p) size *= ex_->labels(ex_->variable(p));
            joined_.resize(padded(size));
            for (std::size_t k = size; k < padded(size); ++k) joined_[k] = Ring::kZero;
            double* cell = joined_.data();
            each_cell(first, last, Ring::kOne, table, [&](double x) { *cell++ = x; });
            Ring::to_probabilities(joined_.data(), padded(size));
            for (std::size_t k = 0; k < size; ++k) to[k] += weight * joined_[k];
        } else {
            each_cell(first, last, std::exp(-log_total), table, [&](double x) { *to++ += weight * x; });
        }
    }

private:
    static void copy(const double* from, double* to, std::size_t width) {
        for (std::size_t j = 0; j < width; j += kLanes) store(to + j, load(from + j));
    }
    [[gnu::noinline]] void lift_made(Int v) {
        bool small = false;  // which the floor takes care of
        if (!Ring::normalise(made_.data(), ex_->width(v), small))
            (Ring::kLogarithms ? vanished : wide) = true;
        lift(made_.data(), v);
    }
    // Not below the floor where φ allows the label, and nothing elsewhere.
    void lift(double* x, Int v) const {
        for (std::size_t j = 0; j < ex_->labels(v); ++j)
            x[j] = phi(v)[j] == Ring::kZero ? Ring::kZero : x[j] < floor_ ? floor_ : x[j];
    }
    void scale(double* x, std::size_t width) { vanished |= !Ring::normalise(x, width, wide); }
    void doubt(const Pack* x, std::size_t labels) { vanished |= !Ring::inspect(x, labels, wide); }

    double power_of(Int c) const { return rho ? 1.0 / rho[c] : 1.0; }
    // x ⊗ m^ρ
    void include(double* x, Int p, std::size_t width) {
        if (!rho) return Ring::times(x, in(p), width);
        const Pack share = broadcast(rho[ex_->clique(p)]);
        for (std::size_t j = 0; j < width; j += kLanes)
            store(x + j, load(x + j) + share * load(in(p) + j));
    }
    // Variables of up to four messages: all in registers, a pack of labels at a time.
    template <Int kDegree>
    void few_cavities(Int v) {
        const std::size_t width = ex_->width(v);
        const Int slot = ex_->slots(v);
        const double *f = phi(v), *m[kDegree];
        double* n[kDegree];
        for (Int j = 0; j < kDegree; ++j) {
            m[j] = in(ex_->place_of(slot + j));
            n[j] = out(ex_->place_of(slot + j));
        }
        for (std::size_t x = 0; x < width; x += kLanes) {
            Pack row[kDegree], after[kDegree], before = load(f + x);
            for (Int j = 0; j < kDegree; ++j) row[j] = load(m[j] + x);
            after[kDegree - 1] = row[kDegree - 1];
            for (Int j = kDegree - 1; j-- > 1;) after[j] = Ring::times(after[j + 1], row[j]);
            for (Int j = 0; j < kDegree; ++j) {
                store(n[j] + x, j + 1 < kDegree ? Ring::times(before, after[j + 1]) : before);
                before = Ring::times(before, row[j]);
            }
        }
    }
    void many_cavities(Int v) {
        const Int degree = ex_->degree(v), slot = ex_->slots(v);
        if (degree == 0) return;
        const bool scaled = !tame(ex_->degree(v));
        const std::size_t width = ex_->width(v);
        double* run = running_.data();
        const double* m = in(ex_->place_of(slot));
        copy(phi(v), run, width);
        for (Int j = 0; j < degree; ++j) {
            copy(run, out(ex_->place_of(slot + j)), width);
            if (j + 1 == degree) break;
            Ring::times(run, m + static_cast<std::size_t>(j) * width, width);
            if (scaled) scale(run, width);
        }
        copy(m + static_cast<std::size_t>(degree - 1) * width, run, width);
        for (Int j = degree - 1; j-- > 0;) {
            Ring::times(out(ex_->place_of(slot + j)), run, width);
            if (j == 0) break;
            Ring::times(run, m + static_cast<std::size_t>(j) * width, width);
            if (scaled) scale(run, width);
        }
        if (!scaled) return;
        for (Int j = 0; j < degree; ++j) scale(out(ex_->place_of(slot + j)), width);
    }
    // n_{v→c} = b_v / m_{c→v}; what is impossible stays so.
    void reweighted_cavities(Int v) {
        const std::size_t width = ex_->width(v);
        double* run = running_.data();
        copy(phi(v), run, width);
        for (Int j = 0; j < ex_->degree(v); ++j)
            include(run, ex_->place_of(ex_->slots(v) + j), width);
        for (Int j = 0; j < ex_->degree(v); ++j) {
            const Int p = ex_->place_of(ex_->slots(v) + j);
            copy(run, out(p), width);
            leave_out(out(p), p, width);
        }
    }

    void fill_phi(const Scores& g, Int v) {
        const std::size_t labels = ex_->labels(v), width = ex_->width(v);
        const double* score = g.unary + ex_->first_state(v);
        double* phi = phi_.data() + ex_->state_at(v);
        double highest = -kInfinity;
        for (std::size_t x = 0; x < labels; ++x) highest = score[x] > highest ? score[x] : highest;
        vanished |= highest == -kInfinity;
        if (vanished) return;
        shift_[static_cast<std::size_t>(v)] = highest;
        for (std::size_t x = 0; x < width; ++x) phi[x] = x < labels ? score[x] - highest : -kInfinity;
        for (std::size_t x = 0; x < width; x += kLanes) {
            Pack row[1] = {load(phi + x)};
            Ring::from_scores(row);
            store(phi + x, row[0]);
        }
        if constexpr (!Ring::kLogarithms)
            for (std::size_t x = 0; x < labels; ++x)
                wide |= score[x] > -kInfinity && phi[x] < kSmallest;
    }

    // All axes but p's are summed out: those after it from the last, then those before it.
    void contract(Int c, Int p, double* to) {
        const Int first = ex_->places_of(c), end = ex_->places_of(c + 1);
        const double* from = tables_->cells(ex_->table(c));
        double power = power_of(c);  // until the table has been read
        std::size_t rows = 1;  // of the axes before the last one
        for (Int q = first; q + 1 < end; ++q) rows *= ex_->labels(ex_->variable(q));
        int side = 0;
        for (Int q = end - 1; q > p; --q) {
            const std::size_t width = ex_->width(ex_->variable(q));
            const std::size_t labels = ex_->labels(ex_->variable(q - 1));
            double* next = q == first + 1 ? to : buffers_[side].data();
            for (std::size_t r = 0, k = 0; r < rows; r += labels, k += padded(labels)) {
                for (std::size_t x = 0; x < labels; ++x)
                    next[k + x] = Ring::along(from + (r + x) * width, out(q), width, power);
                for (std::size_t x = labels; x < padded(labels); ++x) next[k + x] = Ring::kZero;
            }
            from = next;
            power = 1.0;
            rows /= labels;
            side = 1 - side;
        }
        const std::size_t last = ex_->width(ex_->variable(p));
        for (Int q = first; q < p; ++q) {
            const std::size_t labels = ex_->labels(ex_->variable(q));
            rows /= labels;
            double* next = q + 1 == p ? to : buffers_[side].data();
            Ring::across(from, rows * last, out(q), labels, rows * last, power, next);
            from = next;
            power = 1.0;
            side = 1 - side;
        }
        if (from != to) copy(from, to, last);  // a clique of one, which is in every tree: ρ = 1
    }

    template <class F>
    void each_cell(Int p, Int last, double factor, const double*& table, F&& f) {
        const std::size_t labels = ex_->labels(ex_->variable(p));
        const double* n = out(p);
        if (p < last) {
            for (std::size_t x = 0; x < labels; ++x) each_cell(p + 1, last, join(factor, n[x]), table, f);
            return;
        }
        for (std::size_t x = 0; x < labels; ++x) f(join(join(factor, n[x]), power_ * table[x]));
        table += padded(labels);
    }
    static double join(double a, double b) { return Ring::kLogarithms ? a + b : a * b; }

    Listening listening_;
    const FactorExample* ex_ = nullptr;
    const RingTables<Ring>* tables_ = nullptr;
    double power_ = 1.0;
    bool floored_ = false;
    double floor_ = 0.0;
    bool pairs_ = true;  // no clique has more than two variables
    Scratch phi_, shift_, m_, n_, running_, made_, joined_, buffers_[2];
    DistanceMessages<Ring> by_distances_;
};

}  // namespace chordal::CHORDAL_ISA
