// Sequences that are learned one by one: their rows, their weights in cells, and their scores.
// chain_online.cpp says what is done with them.
#pragma once

#include "chain.hpp"
#include "wide_entries.hpp"

namespace chordal {

struct OnlineRows {
    const std::uint32_t* wide_offsets;    // [rows + 1]
    const std::uint32_t* wide_codes;      // offsets are relative to `base`
    const double* wide_values;            // null: all ones
    const std::uint32_t* narrow_offsets;  // [rows + 1]
    const std::uint32_t* narrow_outputs;
    const std::uint32_t* narrow_cells;
    const double* narrow_values;          // null: all ones
    std::size_t outputs, unit, base;
    bool has_narrow;
};

struct OnlineChains {
    const std::int64_t* node_offsets;  // [examples + 1] into rows of `node`
    const std::int64_t* edge_offsets;  // [examples + 1] into rows of `edge`
    const std::int32_t* gold;          // [rows]
    const double* weight;              // [examples] or null
    const std::uint8_t* live;          // [cells / 4]
    const OnlineRows* node;
    const OnlineRows* edge;            // null: one table for all transitions,
    std::size_t table;                 // at this cell
    std::size_t labels, cells, examples;
};

CHORDAL_BOTH_ISAS(void wide_map(const WideEntries&, const double* weights, double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

using Order = const std::int64_t*;

CHORDAL_INLINE bool is_live(const OnlineChains& x, std::size_t cell) {
    return x.live[cell / 4] >> (cell % 4) & 1;
}

// out [count * outputs] = scores of rows from `first` on.
inline void map_rows(const OnlineRows& rows, std::size_t first, std::size_t count, const double* w,
                     double* out) {
    const std::uint32_t* narrow = rows.narrow_offsets + first;
    for (auto e = narrow[0]; e < narrow[count]; ++e) CHORDAL_PREFETCH(w + rows.narrow_cells[e]);
    const std::uint32_t* wide = rows.wide_offsets + first;
    const WideEntries entries{wide, rows.wide_codes, rows.wide_values,
                              count, rows.outputs, rows.unit};
    wide_map(entries, w + rows.base, out);
    for (std::size_t r = 0; r < count; ++r, out += rows.outputs)
        for (auto e = narrow[r]; e < narrow[r + 1]; ++e) {
            const double x = rows.narrow_values ? rows.narrow_values[e] : 1.0;
            out[rows.narrow_outputs[e]] += x * w[rows.narrow_cells[e]];
        }
}

// The entries of rows, fetched ahead: examples come in any order, which no processor foresees.
inline void prefetch_entries(const OnlineRows& rows, std::size_t first, std::size_t count) {
    const std::uint32_t* wide = rows.wide_offsets + first;
    prefetch(rows.wide_codes + wide[0], rows.wide_codes + wide[count]);
    if (!rows.has_narrow) return;
    const std::uint32_t* narrow = rows.narrow_offsets + first;
    prefetch(rows.narrow_outputs + narrow[0], rows.narrow_outputs + narrow[count]);
    prefetch(rows.narrow_cells + narrow[0], rows.narrow_cells + narrow[count]);
}

// One example at a time: its scores, as a batch of one chain for the kernels of chains.
class Example {
public:
    explicit Example(const OnlineChains& x) : x_(x) {
        std::size_t longest = 0;
        for (std::size_t n = 0; n < x.examples; ++n)
            longest = longest < length(n) ? length(n) : longest;
        const std::size_t K = x.labels, edges = longest ? longest - 1 : 0;
        states_.resize(longest + 1);
        for (std::size_t t = 0; t <= longest; ++t) states_[t] = static_cast<std::int64_t>(t * K);
        table_limits_.resize(edges + 2);
        table_ids_.resize(edges + 1);
        for (std::size_t t = 0; t < edges + 2; ++t)
            table_limits_[t] = static_cast<std::int64_t>(t * K * K);
        for (std::size_t t = 0; t < edges + 1; ++t)
            table_ids_[t] = x.edge ? static_cast<std::int32_t>(t) : 0;
        unary_.resize(longest * K + 1);
        tables_.resize((x.edge ? edges : 1) * K * K + 1);
    }
    std::size_t length(std::size_t n) const {
        return static_cast<std::size_t>(x_.node_offsets[n + 1] - x_.node_offsets[n]);
    }
    void open(std::size_t n) {
        T = length(n);
        weight = x_.weight ? x_.weight[n] : 1.0;
        first_row = static_cast<std::size_t>(x_.node_offsets[n]);
        first_edge = static_cast<std::size_t>(x_.edge_offsets[n]);
        gold = x_.gold + first_row;
        n_tables = T < 2 ? 0 : x_.edge ? T - 1 : 1;
    }
    void prefetch(std::size_t n) const {
        prefetch_entries(*x_.node, static_cast<std::size_t>(x_.node_offsets[n]), length(n));
    }
    // Scores scale * w·φ + fixed·φ (`fixed` may be null).
    void score(const double* w, double scale, const double* fixed) {
        const std::size_t K = x_.labels;
        set_scores(w, unary_.data(), tables_.data());
        const std::size_t unary_size = T * K, tables_size = n_tables * K * K;
        if (scale != 1.0) {
            for (std::size_t k = 0; k < unary_size; ++k) unary_[k] *= scale;
            for (std::size_t k = 0; k < tables_size; ++k) tables_[k] *= scale;
        }
        if (fixed) add_score(fixed, 1.0);
    }
    // scale * w·φ more.
    void add_score(const double* w, double scale) {
        const std::size_t unary_size = T * x_.labels, tables_size = n_tables * x_.labels * x_.labels;
        more_.resize(unary_size + tables_size + 2);
        double* tables = more_.data() + unary_size + 1;
        set_scores(w, more_.data(), tables);
        for (std::size_t k = 0; k < unary_size; ++k) unary_[k] += scale * more_[k];
        for (std::size_t k = 0; k < tables_size; ++k) tables_[k] += scale * tables[k];
    }
    // price * cost[gold, label] more at every position.
    void add_cost(const double* cost, double price) {
        const std::size_t K = x_.labels;
        for (std::size_t t = 0; t < T; ++t) {
            const double* row = cost + static_cast<std::size_t>(gold[t]) * K;
            for (std::size_t k = 0; k < K; ++k) unary_[t * K + k] += price * row[k];
        }
    }
    // Valid until the next call.
    ChainBatch batch() {
        variables_[1] = static_cast<std::int64_t>(T);
        cliques_[1] = static_cast<std::int64_t>(T ? T - 1 : 0);
        return ChainBatch{unary_.data(),        states_.data(),    variables_, tables_.data(),
                          table_limits_.data(), table_ids_.data(), cliques_,   1};
    }
    double score_of(const std::int32_t* y) const {
        const std::size_t K = x_.labels;
        Sum sum;
        for (std::size_t t = 0; t < T; ++t) {
            sum.add(unary_[t * K + static_cast<std::size_t>(y[t])]);
            if (t > 0) sum.add(tables_[(x_.edge ? (t - 1) * K * K : 0) + pair(y, t)]);
        }
        return sum.value();
    }
    std::size_t pair(const std::int32_t* y, std::size_t t) const {  // (y_{t-1}, y_t)
        return static_cast<std::size_t>(y[t - 1]) * x_.labels + static_cast<std::size_t>(y[t]);
    }

    std::size_t T = 0, first_row = 0, first_edge = 0, n_tables = 0;
    double weight = 1.0;
    const std::int32_t* gold = nullptr;

private:
    void set_scores(const double* w, double* unary, double* tables) {
        map_rows(*x_.node, first_row, T, w, unary);
        if (n_tables == 0) return;
        if (x_.edge)
            map_rows(*x_.edge, first_edge, T - 1, w, tables);
        else
            std::memcpy(tables, w + x_.table, x_.labels * x_.labels * sizeof(double));
    }

    const OnlineChains& x_;
    ScratchOf<std::int64_t> states_, table_limits_;
    ScratchOf<std::int32_t> table_ids_;
    Scratch unary_, tables_, more_;
    std::int64_t variables_[2] = {0, 0}, cliques_[2] = {0, 0};
};

}  // namespace chordal::CHORDAL_ISA
