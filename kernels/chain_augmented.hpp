// One chain at a time by its best labelling: scores, with costs or without, and Viterbi.
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
    // `full`: every attribute has a weight for every label.
    Augmented(const OnlineChains& x, const LabelCosts& costs, bool full)
        : stride(stride_of(x)), x_(x), costs_(costs), full_(full && stride <= kMostLabels) {
        if (x.edge) return;
        table_.resize(x.labels * stride);
        flipped_.resize(x.labels * stride);
        std::memset(table_.data(), 0, x.labels * stride * sizeof(double));
        std::memset(flipped_.data(), 0, x.labels * stride * sizeof(double));
        places_.resize(x.labels * x.labels);
        turned_.resize(x.labels * stride);
        for (std::size_t i = 0; i < x.labels; ++i)
            for (std::size_t j = 0; j < x.labels; ++j) {
                const std::size_t pair = i * x.labels + j;
                const auto by_column = static_cast<std::uint32_t>(j * stride + i);
                places_[pair] = {static_cast<std::uint32_t>(i * stride + j), by_column};
                turned_[i * stride + j] = {by_column, is_live(x, x.table + pair)};
            }
    }
    // A tied table is kept in two padded copies, by rows and by columns.
    void enter_table(const double* w) {
        if (x_.edge) return;
        for (std::size_t pair = 0; pair < x_.labels * x_.labels; ++pair)
            table_[places_[pair].by_row] = flipped_[places_[pair].by_column] = w[x_.table + pair];
    }
    // A cell of w has changed.
    CHORDAL_INLINE void follow(const double* w, std::size_t cell) {
        const std::size_t pair = cell - x_.table;
        if (x_.edge || cell < x_.table || pair >= x_.labels * x_.labels) return;
        table_[places_[pair].by_row] = flipped_[places_[pair].by_column] = w[cell];
    }
    void leave_table(double* w) const {
        if (x_.edge) return;
        for (std::size_t i = 0; i < x_.labels; ++i)
            std::memcpy(w + x_.table + i * x_.labels, table_.data() + i * stride,
                        x_.labels * sizeof(double));
    }
    // Of a tied table, at a key.
    CHORDAL_INLINE void add_to_table(std::size_t key, double change) {
        table_[key] += change;
        flipped_[turned_[key].place] += change;
    }
    bool is_live_pair(std::size_t key) const { return turned_[key].live; }
    void open(std::size_t n) {
        first_row = static_cast<std::size_t>(x_.node_offsets[n]);
        first_edge = static_cast<std::size_t>(x_.edge_offsets[n]);
        T = static_cast<std::size_t>(x_.node_offsets[n + 1]) - first_row;
        weight = x_.weight ? x_.weight[n] : 1.0;
        gold = x_.gold + first_row;
        n_tables = T < 2 ? 0 : x_.edge ? T - 1 : 1;
    }
    // What is needed of an example, in two steps: the first tells where the second looks.
    void foresee(std::size_t n) const {
        const std::int64_t begin = x_.node_offsets[n], end = x_.node_offsets[n + 1];
        prefetch(x_.node->wide_offsets + begin, x_.node->wide_offsets + end + 1);
        if (x_.node->has_narrow)
            prefetch(x_.node->narrow_offsets + begin, x_.node->narrow_offsets + end + 1);
        if (costs_.row_of) prefetch(costs_.row_of + begin, costs_.row_of + end);
    }
    void fetch(std::size_t n) const {
        const auto first = static_cast<std::size_t>(x_.node_offsets[n]);
        prefetch_entries(*x_.node, first, static_cast<std::size_t>(x_.node_offsets[n + 1]) - first);
    }
    void score(const double* w) {
        const std::size_t K = x_.labels;
        E_.resize(T * stride + 1);
        enter_costs();
        if (full_)
            map_full(w);
        else
            map_any(w);
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
    std::size_t pair(const std::int32_t* y, std::size_t t) const {  // (y_{t-1}, y_t)
        return index(y[t - 1]) * x_.labels + index(y[t]);
    }
    // A transition's key is its place in the tables: of its pair, untied also of its position.
    std::size_t key(const std::int32_t* y, std::size_t t) const {
        const std::size_t first = x_.edge ? (t - 1) * x_.labels : 0;
        return (first + index(y[t - 1])) * stride + index(y[t]);
    }
    const double* tables() const { return table_.data(); }
    // ŷ = argmax score, and its score; ties go to the smallest label, the last position first.
    double best(std::int32_t* y) {
        const double score = highest();
        trace(y);
        return score;
    }
    // The score of ŷ alone.
    double highest() {
        if (T == 0) return 0.0;
        const std::size_t K = x_.labels;
        A_.resize(T * stride);
        into_.resize(T * stride);
        std::memcpy(A_.data(), E_.data(), stride * sizeof(double));
        for (std::size_t t = 1; t < T; ++t)
            Max::product(A_.data() + (t - 1) * stride, row(t, 0), A_.data() + t * stride, K, K,
                         stride, Kept{E_.data() + t * stride, into_.data() + t * stride});
        const double* last = A_.data() + (T - 1) * stride;
        last_ = first_largest(last, K);
        return last[last_];
    }
    // ŷ itself, after `highest`: the label before is the first one by which the highest score came.
    void trace(std::int32_t* y) {
        if (T == 0) return;
        std::size_t label = last_;
        y[T - 1] = static_cast<std::int32_t>(label);
        for (std::size_t t = T - 1; t > 0; --t) {
            const double* a = A_.data() + (t - 1) * stride;
            label = first_sum(a, column(t, label), into_[t * stride + label], x_.labels);
            y[t - 1] = static_cast<std::int32_t>(label);
        }
    }

    const std::size_t stride;
    std::size_t T = 0, first_row = 0, first_edge = 0, n_tables = 0;
    double weight = 1.0;
    const std::int32_t* gold = nullptr;

private:
    static constexpr std::size_t kMostLabels = 32;  // whose sums stay in registers

    // How a row of maxima ends: plus E_t, and kept as it was before.
    struct Kept {
        const double* row;
        double* before;
        template <class S>
        CHORDAL_INLINE Pack finish(Pack x, std::size_t j) const {
            store(before + j, x);
            return x + load(row + j);
        }
        Kept from(std::size_t j) const { return {row + j, before + j}; }
    };

    // E = cost, padded with zeros.
    void enter_costs() {
        const std::size_t K = x_.labels;
        if (!costs_.row_of) {
            std::memset(E_.data(), 0, T * stride * sizeof(double));
            return;
        }
        for (std::size_t t = 0; t < T; ++t) {
            double* e = E_.data() + t * stride;
            const double* c = cost(t);
            std::size_t j = 0;
            for (; j + kLanes <= K; j += kLanes) store(e + j, load(c + j));
            for (; j < K; ++j) e[j] = c[j];
            for (; j < stride; ++j) e[j] = 0.0;
        }
    }
    void map_any(const double* w) {
        const std::size_t K = x_.labels;
        unary_.resize(T * K + 1);
        map_rows(*x_.node, first_row, T, w, unary_.data());
        for (std::size_t t = 0; t < T; ++t)
            for (std::size_t j = 0; j < K; ++j) E_[t * stride + j] += unary_[t * K + j];
    }
    void map_full(const double* w) {
        if (x_.node->wide_values)
            map_units<true>(w);
        else
            map_units<false>(w);
    }
    template <bool Valued>
    void map_units(const double* w) {
        switch (stride / 4) {  // as `unit`
            case 1: return map_wide<1, Valued>(w);
            case 2: return map_wide<2, Valued>(w);
            case 3: return map_wide<3, Valued>(w);
            case 4: return map_wide<4, Valued>(w);
            case 5: return map_wide<5, Valued>(w);
            case 6: return map_wide<6, Valued>(w);
            case 7: return map_wide<7, Valued>(w);
            default: return map_wide<8, Valued>(w);
        }
    }
    template <std::size_t Units, bool Valued>
    void map_wide(const double* w) {
        constexpr std::size_t N = Units * 4 / kLanes;
        const OnlineRows& rows = *x_.node;
        w += rows.base;
        for (std::size_t t = 0; t < T; ++t) {
            double* e = E_.data() + t * stride;
            Pack sum[N];
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n) sum[n] = load(e + n * kLanes);
            const std::uint32_t* limits = rows.wide_offsets + first_row + t;
            for (auto k = limits[0]; k < limits[1]; ++k) {
                const double* from = w + (rows.wide_codes[k] >> 5) * rows.unit;
                const Pack a = broadcast(Valued ? rows.wide_values[k] : 1.0);
                CHORDAL_UNROLL
                for (std::size_t n = 0; n < N; ++n)
                    sum[n] = Valued ? a * load(from + n * kLanes) + sum[n]
                                    : load(from + n * kLanes) + sum[n];
            }
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n) store(e + n * kLanes, sum[n]);
        }
    }
    const double* row(std::size_t t, std::size_t i) const {  // M_t(i, ·), t >= 1
        return table_.data() + ((x_.edge ? (t - 1) * x_.labels : 0) + i) * stride;
    }
    const double* column(std::size_t t, std::size_t j) {  // M_t(·, j), t >= 1
        if (!x_.edge) return flipped_.data() + j * stride;
        column_.resize(stride);
        for (std::size_t i = 0; i < x_.labels; ++i) column_[i] = row(t, i)[j];
        for (std::size_t i = x_.labels; i < stride; ++i) column_[i] = 0.0;
        return column_.data();
    }

    struct Place {
        std::uint32_t by_row, by_column;
    };
    struct Turned {
        std::uint32_t place;
        bool live;
    };

    const OnlineChains& x_;
    LabelCosts costs_;
    bool full_;
    ScratchOf<Place> places_;   // [pairs], of a tied table
    ScratchOf<Turned> turned_;  // [keys]: the place by columns, and whether there is a weight
    Scratch table_, flipped_, unary_, pairs_, E_, A_, column_;
    Scratch into_;          // max_i A_{t-1}(i) + M_t(i, ·)
    std::size_t last_ = 0;  // ŷ_{T-1}
};

}  // namespace chordal::CHORDAL_ISA
