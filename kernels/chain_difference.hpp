// δ = φ(y*) − φ(ŷ), the features of the gold labelling less those of another one, by cells of weights.
#pragma once

#include "chain_online.hpp"

namespace chordal::CHORDAL_ISA {

// A sum per cell, and the cells that it touches.
class Difference {
public:
    explicit Difference(const OnlineChains& x, bool used = true)
        : x_(x), sums_(used ? x.cells + 1 : 1) {
        if (used) std::memset(sums_.data(), 0, x.cells * sizeof(double));
    }
    // Of an Example or an Augmented.
    template <class E>
    void collect(const E& example, const std::int32_t* y) {
        const std::int32_t* gold = example.gold;
        size = 0;
        reserve(example);
        for (std::size_t t = 0; t < example.T; ++t) {
            const bool same = gold[t] == y[t];
            if (!same) {
                add_row(*x_.node, example.first_row + t, static_cast<std::size_t>(gold[t]), 1.0);
                add_row(*x_.node, example.first_row + t, static_cast<std::size_t>(y[t]), -1.0);
            }
            if (t == 0 || (same && gold[t - 1] == y[t - 1])) continue;
            add_transition(example, t, example.pair(gold, t), 1.0);
            add_transition(example, t, example.pair(y, t), -1.0);
        }
        // A cell met twice is taken at its first place, with its sum; what cancels is dropped.
        std::size_t kept = 0;
        for (std::size_t j = 0; j < size; ++j) {
            const std::uint32_t c = cell[j];
            if (sums_[c] == 0.0) continue;
            cell[kept] = c;
            value[kept++] = sums_[c];
            sums_[c] = 0.0;
        }
        size = kept;
    }
    double norm2() const {
        double sum = 0.0;
        for (std::size_t j = 0; j < size; ++j) sum += value[j] * value[j];
        return sum;
    }

    ScratchOf<std::uint32_t> cell;
    Scratch value;
    std::size_t size = 0;

private:
    static std::size_t entries(const OnlineRows& rows, std::size_t first, std::size_t count) {
        return rows.wide_offsets[first + count] - rows.wide_offsets[first] +
               rows.narrow_offsets[first + count] - rows.narrow_offsets[first];
    }
    template <class E>
    void reserve(const E& example) {
        std::size_t most = entries(*x_.node, example.first_row, example.T) + example.T;
        if (x_.edge && example.n_tables)
            most += entries(*x_.edge, example.first_edge, example.T - 1);
        cell.resize(2 * most);
        value.resize(2 * most);
    }
    CHORDAL_INLINE void add(std::size_t c, double x) {
        if (sums_[c] == 0.0) cell[size++] = static_cast<std::uint32_t>(c);
        sums_[c] += x;
    }
    void add_row(const OnlineRows& rows, std::size_t r, std::size_t output, double sign) {
        for (auto e = rows.wide_offsets[r]; e < rows.wide_offsets[r + 1]; ++e) {
            const std::uint32_t code = rows.wide_codes[e];
            if (output >= (code & 31) * rows.unit) continue;
            const std::size_t c = rows.base + (code >> 5) * rows.unit + output;
            if (is_live(x_, c)) add(c, sign * (rows.wide_values ? rows.wide_values[e] : 1.0));
        }
        for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e)
            if (rows.narrow_outputs[e] == output)
                add(rows.narrow_cells[e], sign * (rows.narrow_values ? rows.narrow_values[e] : 1.0));
    }
    template <class E>
    void add_transition(const E& example, std::size_t t, std::size_t pair, double sign) {
        if (x_.edge)
            add_row(*x_.edge, example.first_edge + t - 1, pair, sign);
        else if (is_live(x_, x_.table + pair))
            add(x_.table + pair, sign);
    }

    const OnlineChains& x_;
    Scratch sums_;
};

}  // namespace chordal::CHORDAL_ISA
