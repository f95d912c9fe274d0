// Chains: the view of a batch, and the recursion that every chain algorithm shares.
//
// A chain y_0 … y_{T-1} has unary scores u_t(j) and edge scores M_t(i, j), i = y_{t-1}, j = y_t.
// With ⊕ and ⊗ of a semiring, E_t = u_t and M_t taken into it, and ⊘ the inverse of ⊗:
//
//   A_0 = E_0              A_t(j) = (⊕_i A_{t-1}(i) ⊗ M_t(i,j)) ⊗ E_t(j) ⊘ c_t     (forward)
//   B_{T-1} = 1 ⊘ c_T      V_t(j) = E_t(j) ⊗ B_t(j) ⊘ c_t
//                          B_{t-1}(i) = ⊕_j M_t(i,j) ⊗ V_t(j)                        (backward)
//
// with the scale c_t = ⊕_j A_{t-1}(j): of the row before, so that its sum is taken while the next
// product runs. Then log Z = Σ_t log c_t, P(y_t = j) = A_t(j) ⊗ B_t(j), and
// P(y_{t-1} = i, y_t = j) = A_{t-1}(i) ⊗ M_t(i,j) ⊗ V_t(j), with no further division.
//
//   Scaled   ⊕ = +, ⊗ = ×, on exp(score − row maximum)    fast; refuses ranges that underflow
//   Log      ⊕ = log Σ exp, ⊗ = +                          slow; any scores, −inf included
//   Max      ⊕ = max, ⊗ = +                                Viterbi
//
// Hazard: in Scaled, a probability that underflows to zero would forbid what is only unlikely,
// which matters when a later −inf leaves nothing else. `Scaled` therefore accepts a step only
// if the range of its finite scores is under kRange, and, once −inf has been seen, only while
// every positive A_t(j) is above kTiny; the caller then starts again in Log.
//
// Hazard: in Log, A_t and B_t may be as large as the scores, and A_t ⊗ B_t loses as many digits. What
// is asked for as a probability is therefore a product of conditional ones (`Conditionals` in
// chain_passes.hpp), each less than the largest term of its own sum:
//
//   P(y_{T-1}) ∝ exp A_{T-1}     P(y_{t-1} = i, y_t = j) = exp(A_{t-1}(i) + M_t(i,j) − top_j) F_j
//   top_j = max_i A_{t-1}(i) + M_t(i,j)     F_j = P(y_t = j) / Σ_i exp(A_{t-1}(i) + M_t(i,j) − top_j)
//
// They sum to one whatever the size of the scores.
// Reference: Rabiner (1989), A tutorial on hidden Markov models, section V.A (scaling).
#pragma once

#include "chain_semiring.hpp"
#include "patience.hpp"
#include "sum.hpp"

namespace chordal::CHORDAL_ISA {

constexpr double kRange = 300.0;            // all finite: A_{t-1} M_t E_t >= exp(-600)
constexpr double kRangeForbidden = 115.0;   // with −inf: A_{t-1} M_t E_t >= kTiny exp(-115)
constexpr double kTiny = 1e-100;
constexpr std::size_t kMany = 512;  // labels, whose tables take long

// A table taken into a semiring: rows i of `stride` entries j, and its range.
template <class S>
struct EnteredTable {
    double shift = 0.0;
    Range range;

    void enter(const double* score, std::size_t rows, std::size_t columns, std::size_t stride,
               double* to) {
        range = Range();
        range.include(score, rows * columns);
        shift = S::kProbabilities ? range.shift() : 0.0;
        const bool bounded = !range.forbidden && range.width() <= kRange;
        for (std::size_t i = 0; i < rows; ++i) {
            S::enter(score + i * columns, shift, to + i * stride, columns, bounded);
            if (columns >= kMany) listen(64 * columns);
        }
    }
};

// The tables of one chain. A tied one is entered once and kept for the chains that follow; tables
// of single cliques are entered once per chain.
template <class S>
class Tables {
public:
    // A tied table that was entered before, and its flipped form; both stay where they are.
    void borrow(const EnteredTable<S>& table, const double* rows, const double* flipped) {
        table_ = table;
        borrowed_ = rows;
        borrowed_flipped_ = flipped;
    }
    void prepare(const Chain& chain, std::size_t stride) {
        if (borrowed_) return;
        tied_ = chain.tied();
        if (!tied_) id_ = -1;
        if (stride != stride_) id_ = -1;
        stride_ = stride;
        entered_.resize((tied_ ? 1 : chain.length) * stride * stride);
        flipped_.resize(stride * stride);
    }
    // Position t >= 1, once for each t in ascending order.
    const EnteredTable<S>& enter(const ChainBatch& batch, const Chain& chain, std::size_t t) {
        const std::int32_t id = chain.table[t - 1];
        if (borrowed_ || (tied_ && id == id_)) return table_;
        const std::size_t rows = chain.labels(t - 1), columns = chain.labels(t);
        double* to = entered_.data() + (tied_ ? 0 : t * stride_ * stride_);
        table_.enter(batch.tables + batch.table_offsets[id], rows, columns, stride_, to);
        if (tied_) {
            id_ = id;
            flip(to, rows, columns, stride_, flipped_.data());
        }
        return table_;
    }
    const double* forward(std::size_t t) const {
        if (borrowed_) return borrowed_;
        return entered_.data() + (tied_ ? 0 : t * stride_ * stride_);
    }
    // Rows j of entries i.
    const double* backward(const Chain& chain, std::size_t t) {
        if (borrowed_) return borrowed_flipped_;
        if (!tied_)
            flip(forward(t), chain.labels(t - 1), chain.labels(t), stride_, flipped_.data());
        return flipped_.data();
    }
    static void flip(const double* from, std::size_t rows, std::size_t columns, std::size_t stride,
                     double* to) {
        for (std::size_t j = 0; j < columns; ++j) {
            if (rows >= kMany) listen(64 * rows);
            for (std::size_t i = 0; i < rows; ++i) to[j * stride + i] = from[i * stride + j];
            for (std::size_t i = rows; i < padded(rows); ++i) to[j * stride + i] = S::kZero;
        }
    }

private:
    Scratch entered_, flipped_;
    EnteredTable<S> table_;
    const double *borrowed_ = nullptr, *borrowed_flipped_ = nullptr;
    bool tied_ = false;
    std::int32_t id_ = -1;
    std::size_t stride_ = 0;
};

// The tables of one chain after a sweep; rows have `stride` entries, padded with ⊕'s zero.
template <class S>
struct Sweep {
    Scratch A, E, inverse;  // inverse[t] = 1 ⊘ c_t, t = 0 .. T
    Tables<S> tables;
    std::size_t stride = 0;
    double log_partition = 0.0;

    double* a(std::size_t t) const { return A.data() + t * stride; }
    double* e(std::size_t t) const { return E.data() + t * stride; }

    Outcome forward(const ChainBatch& batch, const Chain& chain, Patience& patience) {
        const Outcome entered = begin(batch, chain, patience);
        return entered == Outcome::done ? advance(chain, 0, patience) : entered;
    }

    // Takes all scores into the semiring; refuses what would underflow.
    Outcome begin(const ChainBatch& batch, const Chain& chain, Patience& patience) {
        prepare(chain);
        shifts = Sum();
        log_scale = Sum();
        pending = S::kOne;
        return enter(batch, chain, patience);
    }

    // Positions `first` and after it, to log Z.
    Outcome advance(const Chain& chain, std::size_t first, Patience& patience) {
        for (std::size_t t = first; t <= chain.length; ++t) {
            if (!scale(chain, t)) return Outcome::done;
            if (t == chain.length) break;
            if (t == 0)
                std::memcpy(a(0), e(0), padded(chain.labels(0)) * sizeof(double));
            else
                S::product(a(t - 1), tables.forward(t), a(t), chain.labels(t - 1), chain.labels(t),
                           stride, TimesRow{e(t), inverse[t]});
            if (!settle(chain, t)) return Outcome::range;
            if (patience.spent((stride + touch) * stride)) return Outcome::stopped;
        }
        if constexpr (S::kProbabilities) log_scale.add(std::log(pending));
        log_scale.add(shifts.value());
        log_partition = log_scale.value();
        return Outcome::done;
    }

    // V_t = E_t ⊗ B_t ⊘ c_t.
    void weigh(const Chain& chain, std::size_t t, const double* B, double* V) {
        const std::size_t width = padded(chain.labels(t));
        const Pack scale = broadcast(inverse[t]);
        for (std::size_t j = 0; j < width; j += kLanes)
            store(V + j, S::times(S::times(load(e(t) + j), load(B + j)), scale));
        if constexpr (S::kProbabilities) {
            if (forbidden)  // B of a label that cannot be reached is unbounded
                for (std::size_t j = 0; j < width; ++j)
                    if (a(t)[j] == 0.0) V[j] = 0.0;
        }
    }

    // V_t, and B_{t-1} from it.
    void message(const Chain& chain, std::size_t t, const double* B, double* V, double* next) {
        weigh(chain, t, B, V);
        S::product(V, tables.backward(chain, t), next, chain.labels(t), chain.labels(t - 1),
                   stride, Plain());
    }

    // c_t; false if no labelling is allowed.
    bool scale(const Chain& chain, std::size_t t) {
        const double total = t == 0 ? S::kOne : S::total(a(t - 1), padded(chain.labels(t - 1)));
        if (total == S::kZero) {
            log_partition = -kInfinity;
            return false;
        }
        inverse[t] = S::inverse(total);
        if constexpr (S::kProbabilities) {
            pending *= total;
            if (!(pending > 1e-300 && pending < 1e300)) {  // total >= exp(-kRange)
                log_scale.add(std::log(total));
                pending /= total;
            }
            if (!(pending > 1e-30 && pending < 1e30)) {
                log_scale.add(std::log(pending));
                pending = 1.0;
            }
        } else {
            log_scale.add(total);
        }
        return true;
    }

    // Pads the finished row A_t; false if it came too close to underflow.
    bool settle(const Chain& chain, std::size_t t) {
        const std::size_t n = chain.labels(t);
        double* row = a(t);
        for (std::size_t j = padded(n); j < stride; ++j) row[j] = S::kZero;
        if constexpr (S::kProbabilities) {
            if (forbidden)
                for (std::size_t j = 0; j < n; ++j)
                    if (row[j] > 0.0 && row[j] < kTiny) return false;
        }
        return true;
    }

private:
    static constexpr std::size_t kLong = std::size_t{1} << 18;
    std::size_t touch = 1;  // what it takes to write a number, in nanoseconds: more in memory that is fresh
    bool forbidden = false;
    Sum shifts, log_scale;
    double pending = S::kOne;  // ⊗ of the c_t whose logarithm is to be taken

    void prepare(const Chain& chain) {
        std::size_t widest = 1;
        for (std::size_t t = 0; t < chain.length; ++t)
            if (chain.labels(t) > widest) widest = chain.labels(t);
        stride = padded(widest);
        touch = chain.length * stride > kLong ? 16 : 1;
        tables.prepare(chain, stride);
        A.resize(chain.length * stride);
        E.resize(chain.length * stride);
        inverse.resize(chain.length + 1);
    }

    // The rows E_t. Patience is asked between blocks of a long chain: asked inside, it slows the exponentials.
    Outcome enter(const ChainBatch& batch, const Chain& chain, Patience& patience) {
        forbidden = false;
        const std::size_t together = touch > 1 ? 1 + (std::size_t{1} << 12) / stride : chain.length;
        for (std::size_t first = 0; first < chain.length; first += together) {
            const std::size_t last = together < chain.length - first ? first + together : chain.length;
            const Outcome outcome = enter_rows(batch, chain, first, last);
            if (outcome != Outcome::done) return outcome;
            if (patience.spent(touch * stride * (last - first))) return Outcome::stopped;
        }
        return Outcome::done;
    }
    [[gnu::noinline]] Outcome enter_rows(const ChainBatch& batch, const Chain& chain, std::size_t first,
                                         std::size_t last) {
        for (std::size_t t = first; t < last; ++t) {
            const std::size_t n = chain.labels(t);
            const double* score = chain.unary(t);
            double shift = 0.0;
            bool bounded = false;
            const EnteredTable<S>* table = t > 0 ? &tables.enter(batch, chain, t) : nullptr;
            if constexpr (S::kProbabilities) {
                Range range;
                range.include(score, n);
                shift = range.shift();
                double span = range.width();
                forbidden = forbidden || range.forbidden;
                if (table) {
                    span += table->range.width();
                    forbidden = forbidden || table->range.forbidden;
                    shifts.add(table->shift);
                }
                shifts.add(shift);
                bounded = !range.forbidden;
                if (!(span <= (forbidden ? kRangeForbidden : kRange))) return Outcome::range;
            }
            S::enter(score, shift, e(t), n, bounded);
        }
        return Outcome::done;
    }
};

}  // namespace chordal::CHORDAL_ISA
