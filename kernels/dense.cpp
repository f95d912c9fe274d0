// Dense features: rows of numbers, a weight for every column and output.
//
//   map      s_t(k) = Σ_c x_tc w(c, k)          adjoint   g(c, k) += Σ_t x_tc p_t(k)
//
// Both are one product, C(i, k) = Σ_d A(i, d) B(d, k), of which A is read along either axis of x. It
// goes by tiles of C, of a few rows and packs, that stay in registers; d goes in steps whose rows of
// B stay in the first cache. Every sum is one chain in the order of d, so how C is shared among
// threads decides no bit. BLAS, which copies its matrices into an order of its own, needs more columns
// than a few dozen before that pays off. x may be float32; sums are float64.
#include "simd.hpp"

namespace chordal {

// A(i, d) = x[i * row + d * column].
template <class X>
struct Factor {
    const X* x;
    std::size_t row, column, rows, depth;
};

// C [rows, n] += A B, or = A B; B [depth, n].
CHORDAL_BOTH_ISAS(void product(const Factor<double>& a, const double* b, std::size_t n, bool add,
                               double* c);
                  void product(const Factor<float>& a, const double* b, std::size_t n, bool add,
                               double* c);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kRows = 4, kWide = 3;  // of a tile: rows, and packs in a row

// Part of a matrix; rows begin `stride` apart.
template <class T>
struct Rows {
    T* data;
    std::size_t stride;
};

template <std::size_t R, std::size_t P, class X>
CHORDAL_INLINE void tile(const Factor<X>& a, Rows<const double> b, bool add, Rows<double> c) {
    Pack sum[R][P];
    CHORDAL_UNROLL
    for (std::size_t r = 0; r < R; ++r)
        CHORDAL_UNROLL
        for (std::size_t p = 0; p < P; ++p)
            sum[r][p] = add ? load(c.data + r * c.stride + p * kLanes) : broadcast(0.0);
    for (std::size_t d = 0; d < a.depth; ++d) {
        CHORDAL_UNROLL
        for (std::size_t r = 0; r < R; ++r) {
            const Pack x = broadcast(static_cast<double>(a.x[r * a.row + d * a.column]));
            CHORDAL_UNROLL
            for (std::size_t p = 0; p < P; ++p)
                sum[r][p] = x * load(b.data + d * b.stride + p * kLanes) + sum[r][p];
        }
    }
    CHORDAL_UNROLL
    for (std::size_t r = 0; r < R; ++r)
        CHORDAL_UNROLL
        for (std::size_t p = 0; p < P; ++p) store(c.data + r * c.stride + p * kLanes, sum[r][p]);
}

// A panel of C, P packs wide.
template <std::size_t P, class X>
void panel(Factor<X> a, Rows<const double> b, bool add, Rows<double> c) {
    for (; a.rows >= kRows; a.rows -= kRows) {
        tile<kRows, P>(a, b, add, c);
        a.x += kRows * a.row;
        c.data += kRows * c.stride;
    }
    for (; a.rows > 0; --a.rows) {
        tile<1, P>(a, b, add, c);
        a.x += a.row;
        c.data += c.stride;
    }
}

// The last columns of C, fewer than a pack, by way of copies.
template <class X>
void rest(const Factor<X>& a, Rows<const double> b, std::size_t n, bool add, Rows<double> c,
          double* copy) {
    double* to = copy + a.depth * kLanes;
    for (std::size_t d = 0; d < a.depth; ++d)
        std::memcpy(copy + d * kLanes, b.data + d * b.stride, n * sizeof(double));
    for (std::size_t i = 0; i < a.rows; ++i)
        std::memcpy(to + i * kLanes, c.data + i * c.stride, n * sizeof(double));
    panel<1>(a, {copy, kLanes}, add, {to, kLanes});
    for (std::size_t i = 0; i < a.rows; ++i)
        std::memcpy(c.data + i * c.stride, to + i * kLanes, n * sizeof(double));
}

template <class X>
void product_of(const Factor<X>& a, const double* b, std::size_t n, bool add, double* c) {
    const std::size_t cached = 2048 / n < 8 ? 8 : 2048 / n;
    const std::size_t packs = n / kLanes, panels = (packs + kWide - 1) / kWide;
    Scratch copy((a.rows + cached) * kLanes);
    std::memset(copy.data(), 0, (a.rows + cached) * kLanes * sizeof(double));
    std::size_t d = 0;
    do {  // once at least, for C = 0
        Factor<X> part = a;
        part.x += d * a.column;
        part.depth = a.depth - d < cached ? a.depth - d : cached;
        const double* from = b + d * n;
        const bool onto = add || d > 0;
        for (std::size_t k = 0; k < panels; ++k) {
            const std::size_t begin = packs * k / panels, end = packs * (k + 1) / panels;
            const Rows<const double> rows{from + begin * kLanes, n};
            const Rows<double> to{c + begin * kLanes, n};
            switch (end - begin) {
                case 3: panel<3>(part, rows, onto, to); break;
                case 2: panel<2>(part, rows, onto, to); break;
                default: panel<1>(part, rows, onto, to);
            }
        }
        if (packs * kLanes < n)
            rest(part, {from + packs * kLanes, n}, n - packs * kLanes, onto, {c + packs * kLanes, n},
                 copy.data());
        d += cached;
    } while (d < a.depth);
}

void product(const Factor<double>& a, const double* b, std::size_t n, bool add, double* c) {
    product_of(a, b, n, add, c);
}
void product(const Factor<float>& a, const double* b, std::size_t n, bool add, double* c) {
    product_of(a, b, n, add, c);
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "binding.hpp"

namespace chordal {
namespace {

template <class X>
void bind(nb::module_& m) {
    m.def(
        "dense_map",
        [](Input<X> x, std::size_t columns, std::size_t outputs, Input<double> weights,
           Output<double> out) {
            GilReleased release;
            const Factor<X> a{x.data(), columns, 1, out.size() / outputs, columns};
            CHORDAL_DISPATCH(product(a, weights.data(), outputs, false, out.data()));
        },
        nb::arg("x"), nb::kw_only(), nb::arg("columns"), nb::arg("outputs"), nb::arg("weights"),
        nb::arg("out"));
    // Columns begin .. begin + out.size() / outputs of the gradient.
    m.def(
        "dense_adjoint",
        [](Input<X> x, std::size_t columns, std::size_t outputs, std::size_t begin,
           Input<double> parts, Output<double> out) {
            GilReleased release;
            const Factor<X> a{x.data() + begin, 1, columns, out.size() / outputs,
                              parts.size() / outputs};
            CHORDAL_DISPATCH(product(a, parts.data(), outputs, true, out.data()));
        },
        nb::arg("x"), nb::kw_only(), nb::arg("columns"), nb::arg("outputs"), nb::arg("begin"),
        nb::arg("parts"), nb::arg("out"));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    bind<double>(m);
    bind<float>(m);
});

}  // namespace chordal
#endif
