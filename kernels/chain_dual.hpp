// What dual methods on chains share: products and the adjoint of rows of labels.
#pragma once

#include "chain_augmented.hpp"

namespace chordal::CHORDAL_ISA {

// Σ over packs, in two sums so that none waits for its own latency.
CHORDAL_INLINE double dot(const double* a, const double* b, std::size_t size) {
    Pack even = broadcast(0.0), odd = even;
    std::size_t k = 0;
    for (; k + 2 * kLanes <= size; k += 2 * kLanes) {
        even = load(a + k) * load(b + k) + even;
        odd = load(a + k + kLanes) * load(b + k + kLanes) + odd;
    }
    if (k < size) even = load(a + k) * load(b + k) + even;
    return lane_sum(even + odd);
}

// Where a row of labels is not all zero: the first labels of its packs.
struct Filled {
    std::size_t count;
    const std::uint32_t* first;
};

// w += scale · adjoint of rows of labels (or pairs of them), which are padded with zeros.
class LabelAdjoint {
public:
    // `full`: every attribute has a weight for every label, so that no cell needs a look.
    LabelAdjoint(const OnlineChains& x, const OnlineRows& rows, bool full)
        : x_(x), rows_(rows), full_(full), n_packs_(padded(rows.outputs) / kLanes),
          every_(n_packs_ + 1) {
        for (std::size_t bits = 0; bits < 16; ++bits)
            for (std::size_t k = 0; k < 4; ++k) mask_[bits * 4 + k] = bits >> k & 1 ? 1.0 : 0.0;
        for (std::size_t k = 0; k < n_packs_; ++k)
            every_[k] = static_cast<std::uint32_t>(k * kLanes);
    }
    void add(const double* labels, std::size_t r, double scale, double* w) const {
        const OnlineRows& rows = rows_;
        if (full_) return add_filled(labels, {n_packs_, every_.data()}, r, scale, w);
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
    // The same where every attribute has a weight for every label, from the filled packs alone.
    void add_filled(const double* labels, const Filled& filled, std::size_t r, double scale,
                    double* w) const {
        std::size_t k = 0;
        for (; k + 7 < filled.count; k += 4) packs<4>(labels, filled.first + k, r, scale, w);
        const std::uint32_t* first = filled.first + k;
        switch (filled.count - k) {
            case 1: return packs<1>(labels, first, r, scale, w);
            case 2: return packs<2>(labels, first, r, scale, w);
            case 3: return packs<3>(labels, first, r, scale, w);
            case 4: return packs<4>(labels, first, r, scale, w);
            case 5: return packs<5>(labels, first, r, scale, w);
            case 6: return packs<6>(labels, first, r, scale, w);
            case 7: return packs<7>(labels, first, r, scale, w);
            default: return;
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
    CHORDAL_INLINE void packs(const double* labels, const std::uint32_t* first, std::size_t r,
                              double scale, double* w) const {
        // Copies: a store of packs may change whatever is read through a pointer.
        const std::uint32_t begin = rows_.wide_offsets[r], end = rows_.wide_offsets[r + 1];
        const std::uint32_t* codes = rows_.wide_codes;
        const double* values = rows_.wide_values;
        const std::size_t unit = rows_.unit;
        std::size_t at[N];
        Pack part[N];
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) {
            at[n] = rows_.base + first[n];
            part[n] = broadcast(scale) * load(labels + first[n]);
        }
        if (!values) {
            for (auto e = begin; e < end; ++e) {
                double* to = w + (codes[e] >> 5) * unit;
                CHORDAL_UNROLL
                for (std::size_t n = 0; n < N; ++n) store(to + at[n], part[n] + load(to + at[n]));
            }
            return;
        }
        for (auto e = begin; e < end; ++e) {
            double* to = w + (codes[e] >> 5) * unit;
            const Pack a = broadcast(values[e]);
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n) store(to + at[n], a * part[n] + load(to + at[n]));
        }
    }

    const OnlineChains& x_;
    const OnlineRows& rows_;
    bool full_;
    std::size_t n_packs_;
    ScratchOf<std::uint32_t> every_;  // the packs of a whole row
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
