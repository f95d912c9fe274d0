// What dual methods on chains share: scores with costs, Viterbi, and the adjoint of rows of labels.
#pragma once

#include "chain_online.hpp"

namespace chordal {

// The cost of every label at every position: row `row_of[r]` of `rows` [*, labels].
struct LabelCosts {
    const double* rows;
    const std::int32_t* row_of;  // [rows of nodes]; null: no cost
};

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

CHORDAL_INLINE std::size_t index(std::int32_t label) { return static_cast<std::size_t>(label); }

// Rows of labels are padded to what a wide row of weights may have.
inline std::size_t stride_of(const OnlineChains& x) {
    return (x.labels + x.node->unit - 1) / x.node->unit * x.node->unit;
}

// One example at a time: E_t(j) = u_t(j) + cost_t(j) in padded rows, the tables M_t, and Viterbi.
// Padding is zero and never looked at.
class Augmented {
public:
    Augmented(const OnlineChains& x, const LabelCosts& costs)
        : stride(stride_of(x)), x_(x), costs_(costs) {
        if (x.edge) return;
        table_.resize(x.labels * stride);
        flipped_.resize(x.labels * stride);
        std::memset(table_.data(), 0, x.labels * stride * sizeof(double));
        std::memset(flipped_.data(), 0, x.labels * stride * sizeof(double));
    }
    // A tied table is kept in two padded copies, by rows and by columns.
    void enter_table(const double* w) {
        if (x_.edge) return;
        for (std::size_t pair = 0; pair < x_.labels * x_.labels; ++pair) {
            const std::size_t i = pair / x_.labels, j = pair % x_.labels;
            table_[i * stride + j] = flipped_[j * stride + i] = w[x_.table + pair];
        }
    }
    void leave_table(double* w) const {
        if (x_.edge) return;
        for (std::size_t i = 0; i < x_.labels; ++i)
            std::memcpy(w + x_.table + i * x_.labels, table_.data() + i * stride,
                        x_.labels * sizeof(double));
    }
    CHORDAL_INLINE void add_to_table(std::size_t pair, double change) {
        const std::size_t i = pair / x_.labels, j = pair % x_.labels;
        table_[i * stride + j] += change;
        flipped_[j * stride + i] += change;
    }
    void open(std::size_t n) {
        first_row = static_cast<std::size_t>(x_.node_offsets[n]);
        first_edge = static_cast<std::size_t>(x_.edge_offsets[n]);
        T = static_cast<std::size_t>(x_.node_offsets[n + 1]) - first_row;
        weight = x_.weight ? x_.weight[n] : 1.0;
        gold = x_.gold + first_row;
    }
    void prefetch(std::size_t n) const {
        const auto first = static_cast<std::size_t>(x_.node_offsets[n]);
        prefetch_entries(*x_.node, first, static_cast<std::size_t>(x_.node_offsets[n + 1]) - first);
    }
    void score(const double* w) {
        const std::size_t K = x_.labels;
        unary_.resize(T * K + 1);
        E_.resize(T * stride + 1);
        map_rows(*x_.node, first_row, T, w, unary_.data());
        for (std::size_t t = 0; t < T; ++t) {
            const double *u = unary_.data() + t * K, *c = cost(t);
            double* e = E_.data() + t * stride;
            for (std::size_t j = 0; j < K; ++j) e[j] = u[j] + c[j];
            for (std::size_t j = K; j < stride; ++j) e[j] = 0.0;
        }
        if (!x_.edge || T < 2) return;
        pairs_.resize((T - 1) * K * K + 1);
        table_.resize((T - 1) * K * stride);
        map_rows(*x_.edge, first_edge, T - 1, w, pairs_.data());
        for (std::size_t r = 0; r < (T - 1) * K; ++r) {
            std::memcpy(table_.data() + r * stride, pairs_.data() + r * K, K * sizeof(double));
            for (std::size_t j = K; j < stride; ++j) table_[r * stride + j] = 0.0;
        }
    }
    const double* scores(std::size_t t) const { return E_.data() + t * stride; }
    const double* cost(std::size_t t) const {
        return costs_.rows + index(costs_.row_of[first_row + t]) * x_.labels;
    }
    double cost_of(const std::int32_t* y) const {
        double sum = 0.0;
        for (std::size_t t = 0; t < T; ++t) sum += cost(t)[y[t]];
        return sum;
    }
    double score_of(const std::int32_t* y) const {  // with the cost
        double sum = T ? E_[index(y[0])] : 0.0;
        for (std::size_t t = 1; t < T; ++t)
            sum += E_[t * stride + index(y[t])] + row(t, index(y[t - 1]))[y[t]];
        return sum;
    }
    // A transition has the key of its pair, untied also of its position.
    std::size_t key(const std::int32_t* y, std::size_t t) const {
        const std::size_t pair = index(y[t - 1]) * x_.labels + index(y[t]);
        return x_.edge ? (t - 1) * x_.labels * x_.labels + pair : pair;
    }
    double transition_score(std::size_t key) const {
        return table_[key / x_.labels * stride + key % x_.labels];
    }
    // ŷ = argmax score, and its score; ties go to the smallest label, the last position first.
    double best(std::int32_t* y) {
        if (T == 0) return 0.0;
        const std::size_t K = x_.labels;
        A_.resize(T * stride);
        total_.resize(stride);
        std::memcpy(A_.data(), E_.data(), stride * sizeof(double));
        for (std::size_t t = 1; t < T; ++t)
            Max::product(A_.data() + (t - 1) * stride, row(t, 0), A_.data() + t * stride, K, K,
                         stride, TimesRow{E_.data() + t * stride, 0.0});
        const double* last = A_.data() + (T - 1) * stride;
        y[T - 1] = argmax(last);
        for (std::size_t t = T - 1; t-- > 0;) {
            const double* a = A_.data() + t * stride;
            if (x_.edge) {
                for (std::size_t i = 0; i < K; ++i)
                    total_[i] = a[i] + row(t + 1, i)[y[t + 1]];
            } else {
                const double* into = flipped_.data() + index(y[t + 1]) * stride;
                for (std::size_t i = 0; i < stride; i += kLanes)
                    store(total_.data() + i, load(a + i) + load(into + i));
            }
            y[t] = argmax(total_.data());
        }
        return last[y[T - 1]];
    }

    const std::size_t stride;
    std::size_t T = 0, first_row = 0, first_edge = 0;
    double weight = 1.0;
    const std::int32_t* gold = nullptr;

private:
    const double* row(std::size_t t, std::size_t i) const {  // M_t(i, ·), t >= 1
        return table_.data() + ((x_.edge ? (t - 1) * x_.labels : 0) + i) * stride;
    }
    std::int32_t argmax(const double* a) const {
        std::size_t best = 0;
        for (std::size_t j = 1; j < x_.labels; ++j) best = a[j] > a[best] ? j : best;
        return static_cast<std::int32_t>(best);
    }

    const OnlineChains& x_;
    LabelCosts costs_;
    Scratch table_, flipped_, unary_, pairs_, E_, A_, total_;
};

CHORDAL_INLINE double dot(const double* a, const double* b, std::size_t size) {
    Pack sum = broadcast(0.0);
    for (std::size_t k = 0; k < size; k += kLanes) sum = load(a + k) * load(b + k) + sum;
    return lane_sum(sum);
}

// w += scale · adjoint of rows of labels (or pairs of them), which are padded with zeros.
class LabelAdjoint {
public:
    // `full`: every attribute has a weight for every label, so that no cell needs a look.
    LabelAdjoint(const OnlineChains& x, const OnlineRows& rows, bool full)
        : x_(x), rows_(rows), full_(full) {
        for (std::size_t bits = 0; bits < 16; ++bits)
            for (std::size_t k = 0; k < 4; ++k) mask_[bits * 4 + k] = bits >> k & 1 ? 1.0 : 0.0;
    }
    void add(const double* labels, std::size_t r, double scale, double* w) const {
        const OnlineRows& rows = rows_;
        if (full_) {
            const std::size_t packs = padded(rows.outputs) / kLanes;
            std::size_t k = 0;
            for (; k + 7 <= packs; k += 7) panel<7>(labels, r, k * kLanes, scale, w);
            switch (packs - k) {
                case 1: return panel<1>(labels, r, k * kLanes, scale, w);
                case 2: return panel<2>(labels, r, k * kLanes, scale, w);
                case 3: return panel<3>(labels, r, k * kLanes, scale, w);
                case 4: return panel<4>(labels, r, k * kLanes, scale, w);
                case 5: return panel<5>(labels, r, k * kLanes, scale, w);
                case 6: return panel<6>(labels, r, k * kLanes, scale, w);
                default: return;
            }
        }
        for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e) {
            const std::size_t c = cell(rows, e), size = (rows.wide_codes[e] & 31) * rows.unit;
            const Pack a = broadcast(scale * value(rows, e));
            for (std::size_t k = 0; k < size; k += 4) {
                const double* mask = mask_ + x_.live[(c + k) / 4] * 4;
                CHORDAL_UNROLL
                for (std::size_t i = 0; i < 4; i += kLanes) {
                    double* to = w + c + k + i;
                    store(to, a * load(labels + k + i) * load(mask + i) + load(to));
                }
            }
        }
        for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e) {
            const double x = rows.narrow_values ? rows.narrow_values[e] : 1.0;
            w[rows.narrow_cells[e]] += scale * x * labels[rows.narrow_outputs[e]];
        }
    }
    void clear(std::size_t r, double* w) const {
        const OnlineRows& rows = rows_;
        for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e)
            std::memset(w + cell(rows, e), 0,
                        (rows.wide_codes[e] & 31) * rows.unit * sizeof(double));
        for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e)
            w[rows.narrow_cells[e]] = 0.0;
    }

private:
    static std::size_t cell(const OnlineRows& rows, std::uint32_t e) {
        return rows.base + (rows.wide_codes[e] >> 5) * rows.unit;
    }
    static double value(const OnlineRows& rows, std::uint32_t e) {
        return rows.wide_values ? rows.wide_values[e] : 1.0;
    }
    template <std::size_t N>
    CHORDAL_INLINE void panel(const double* labels, std::size_t r, std::size_t first, double scale,
                              double* w) const {
        const OnlineRows& rows = rows_;
        Pack part[N];
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n)
            part[n] = broadcast(scale) * load(labels + first + n * kLanes);
        for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e) {
            double* to = w + cell(rows, e) + first;
            const Pack a = broadcast(value(rows, e));
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n)
                store(to + n * kLanes, a * part[n] + load(to + n * kLanes));
        }
    }

    const OnlineChains& x_;
    const OnlineRows& rows_;
    bool full_;
    double mask_[64];
};

// f(cell, x) for the entries of a row of transitions that make the score of one pair.
template <class F>
CHORDAL_INLINE void each_entry(const OnlineChains& x, const OnlineRows& rows, std::size_t r,
                               std::size_t output, F f) {
    for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e) {
        const std::uint32_t code = rows.wide_codes[e];
        if (output >= (code & 31) * rows.unit) continue;
        const std::size_t c = rows.base + (code >> 5) * rows.unit + output;
        if (is_live(x, c)) f(c, rows.wide_values ? rows.wide_values[e] : 1.0);
    }
    for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e)
        if (rows.narrow_outputs[e] == output)
            f(rows.narrow_cells[e], rows.narrow_values ? rows.narrow_values[e] : 1.0);
}

}  // namespace chordal::CHORDAL_ISA
