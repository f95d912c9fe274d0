// A row times a table, in any semiring: y(j) = ⊕_i x(i) ⊗ table(i, j), ended as `End` says.
//
// Panels of columns stay in registers while i runs over the rows.
#pragma once

#include "chain_batch.hpp"
#include "simd.hpp"

namespace chordal::CHORDAL_ISA {

// How a row of a product ends: as it is, or times E_t ⊘ c_t.
struct Plain {
    template <class S>
    CHORDAL_INLINE Pack finish(Pack x, std::size_t) const {
        return x;
    }
    Plain from(std::size_t) const { return *this; }
};
struct TimesRow {
    const double* row;
    double inverse;
    template <class S>
    CHORDAL_INLINE Pack finish(Pack x, std::size_t j) const {
        return S::times(S::times(x, load(row + j)), broadcast(inverse));
    }
    TimesRow from(std::size_t j) const { return {row + j, inverse}; }
};

// y_j = end(⊕_i x_i ⊗ M_ij) for a panel of N packs of columns; two rows at a time, since one
// accumulator per pack would wait for its own latency.
template <std::size_t N, class S, class End>
CHORDAL_INLINE void panel(const double* x, const double* table, double* y, std::size_t rows,
                          std::size_t stride, End end) {
    Pack even[N], odd[N];
    CHORDAL_UNROLL
    for (std::size_t n = 0; n < N; ++n) even[n] = odd[n] = S::zero();
    std::size_t i = 0;
    for (; i + 1 < rows; i += 2) {
        const Pack x0 = broadcast(x[i]), x1 = broadcast(x[i + 1]);
        const double* row = table + i * stride;
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) {
            even[n] = S::accumulate(even[n], x0, load(row + n * kLanes));
            odd[n] = S::accumulate(odd[n], x1, load(row + stride + n * kLanes));
        }
    }
    if (i < rows) {
        const Pack x0 = broadcast(x[i]);
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n)
            even[n] = S::accumulate(even[n], x0, load(table + i * stride + n * kLanes));
    }
    CHORDAL_UNROLL
    for (std::size_t n = 0; n < N; ++n)
        store(y + n * kLanes,
              end.template finish<S>(S::combine(even[n], odd[n]), n * kLanes));
}

template <class S, class End>
CHORDAL_INLINE void product_by_panels(const double* x, const double* table, double* y,
                                      std::size_t rows, std::size_t columns, std::size_t stride,
                                      End end) {
    std::size_t packs = padded(columns) / kLanes;
    while (packs > 7) {
        panel<6, S>(x, table, y, rows, stride, end);
        table += 6 * kLanes;
        y += 6 * kLanes;
        end = end.from(6 * kLanes);
        packs -= 6;
    }
    switch (packs) {
        case 1: return panel<1, S>(x, table, y, rows, stride, end);
        case 2: return panel<2, S>(x, table, y, rows, stride, end);
        case 3: return panel<3, S>(x, table, y, rows, stride, end);
        case 4: return panel<4, S>(x, table, y, rows, stride, end);
        case 5: return panel<5, S>(x, table, y, rows, stride, end);
        case 6: return panel<6, S>(x, table, y, rows, stride, end);
        case 7: return panel<7, S>(x, table, y, rows, stride, end);
        default: return;
    }
}

// The same for two chains at once, which share the reading of the table. Each sum is taken in the
// order in which `panel` takes it.
template <std::size_t N, class S, class End>
CHORDAL_INLINE void panel_of_two(const double* const x[2], const double* table, double* const y[2],
                                 std::size_t rows, std::size_t stride, const End end[2],
                                 std::size_t j) {
    Pack even[2][N], odd[2][N];
    CHORDAL_UNROLL
    for (std::size_t k = 0; k < 2; ++k)
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) even[k][n] = odd[k][n] = S::zero();
    std::size_t i = 0;
    for (; i + 1 < rows; i += 2) {
        const double* row = table + i * stride + j;
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) {
            const Pack m0 = load(row + n * kLanes), m1 = load(row + stride + n * kLanes);
            CHORDAL_UNROLL
            for (std::size_t k = 0; k < 2; ++k) {
                even[k][n] = S::accumulate(even[k][n], broadcast(x[k][i]), m0);
                odd[k][n] = S::accumulate(odd[k][n], broadcast(x[k][i + 1]), m1);
            }
        }
    }
    if (i < rows) {
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) {
            const Pack m0 = load(table + i * stride + j + n * kLanes);
            CHORDAL_UNROLL
            for (std::size_t k = 0; k < 2; ++k)
                even[k][n] = S::accumulate(even[k][n], broadcast(x[k][i]), m0);
        }
    }
    CHORDAL_UNROLL
    for (std::size_t k = 0; k < 2; ++k)
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n)
            store(y[k] + j + n * kLanes, end[k].template finish<S>(
                                             S::combine(even[k][n], odd[k][n]), j + n * kLanes));
}

template <class S, class End>
inline void product_of_two(const double* const x[2], const double* table, double* const y[2],
                           std::size_t rows, std::size_t columns, std::size_t stride,
                           const End end[2]) {
    const std::size_t width = padded(columns);
    std::size_t j = 0;
    for (; j + 2 * kLanes <= width; j += 2 * kLanes)
        panel_of_two<2, S>(x, table, y, rows, stride, end, j);
    if (j < width) panel_of_two<1, S>(x, table, y, rows, stride, end, j);
}

}  // namespace chordal::CHORDAL_ISA
