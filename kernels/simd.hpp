// Packs of doubles, and the instruction set they are compiled for.
//
// A kernel that loops over labels is compiled twice: for the baseline of its platform and, on
// x86-64, for level v3 (AVX2 and FMA). Everything such a file defines lives in the namespace
// CHORDAL_ISA, so the two copies never meet in the linker; `use_v3()` chooses at run time.
// Inside CHORDAL_ISA no standard container is used: its code would be shared between the copies.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#if defined(CHORDAL_ISA_V3)
#include <immintrin.h>
#endif

#include "scratch.hpp"

#if defined(CHORDAL_ISA_V3)
#define CHORDAL_ISA isa_v3
#else
#define CHORDAL_ISA isa_baseline
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CHORDAL_INLINE inline __attribute__((always_inline))
// GCC drops calls of functions that only prefetch, as they change nothing; the empty statement stays.
#define CHORDAL_PREFETCH(address) (([] { __asm__ volatile(""); })(), __builtin_prefetch(address))
#define CHORDAL_UNROLL _Pragma("GCC unroll 16")
#pragma GCC diagnostic ignored "-Wpsabi"  // packs are passed to inlined functions only
#else
#define CHORDAL_INLINE __forceinline
#define CHORDAL_PREFETCH(address) ((void)(address))
#define CHORDAL_UNROLL
#endif

namespace chordal {

#if defined(CHORDAL_HAVE_V3)
#define CHORDAL_DISPATCH(call) (use_v3() ? isa_v3::call : isa_baseline::call)
#define CHORDAL_BOTH_ISAS(declaration)                      \
    namespace isa_baseline {                                \
    declaration                                             \
    }                                                       \
    namespace isa_v3 {                                      \
    declaration                                             \
    }
#else
#define CHORDAL_DISPATCH(call) isa_baseline::call
#define CHORDAL_BOTH_ISAS(declaration) \
    namespace isa_baseline {           \
    declaration                        \
    }
#endif

// True when the second copy exists and this processor can run it.
bool use_v3();

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLowest = -std::numeric_limits<double>::max();
#if defined(CHORDAL_ISA_V3)
constexpr std::size_t kLanes = 4;
#else
constexpr std::size_t kLanes = 2;
#endif

#if (defined(__GNUC__) || defined(__clang__)) && !defined(CHORDAL_PORTABLE_PACK)

typedef double Pack __attribute__((vector_size(kLanes * sizeof(double))));
typedef long long PackBits __attribute__((vector_size(kLanes * sizeof(double))));
typedef double LoosePack __attribute__((vector_size(kLanes * sizeof(double)), aligned(8), may_alias));
typedef float LooseFloats __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

CHORDAL_INLINE Pack load(const double* p) { return *reinterpret_cast<const LoosePack*>(p); }
CHORDAL_INLINE void store(double* p, Pack x) { *reinterpret_cast<LoosePack*>(p) = x; }
CHORDAL_INLINE Pack load(const float* p) {
    return __builtin_convertvector(*reinterpret_cast<const LooseFloats*>(p), Pack);
}
CHORDAL_INLINE void store(float* p, Pack x) {
    *reinterpret_cast<LooseFloats*>(p) = __builtin_convertvector(x, LooseFloats);
}
CHORDAL_INLINE Pack broadcast(double x) { return x - Pack{}; }
#if defined(CHORDAL_ISA_V3)  // GCC makes two instructions of the formula
CHORDAL_INLINE Pack maximum(Pack a, Pack b) { return _mm256_max_pd(a, b); }
#else
CHORDAL_INLINE Pack maximum(Pack a, Pack b) { return a > b ? a : b; }
#endif
CHORDAL_INLINE Pack minimum(Pack a, Pack b) { return a < b ? a : b; }
CHORDAL_INLINE Pack where_equal(Pack a, Pack b, Pack then, Pack otherwise) {
    return a == b ? then : otherwise;
}
CHORDAL_INLINE Pack absolute(Pack x) { return (Pack)((PackBits)x & ~(PackBits)broadcast(-0.0)); }
CHORDAL_INLINE Pack power_of_bits(Pack shifted) { return (Pack)((PackBits)shifted << 52); }
CHORDAL_INLINE Pack zero_below(Pack x, Pack limit, Pack value) {
    return (Pack)((PackBits)value & (PackBits)(x >= limit));
}

#if defined(__clang__)
#define CHORDAL_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHORDAL_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, PackBits{__VA_ARGS__})
#endif
// Rows become columns.
CHORDAL_INLINE void transpose(Pack (&x)[kLanes]) {
#if defined(CHORDAL_ISA_V3)
    const Pack a = CHORDAL_SHUFFLE(x[0], x[1], 0, 4, 2, 6), b = CHORDAL_SHUFFLE(x[0], x[1], 1, 5, 3, 7);
    const Pack c = CHORDAL_SHUFFLE(x[2], x[3], 0, 4, 2, 6), d = CHORDAL_SHUFFLE(x[2], x[3], 1, 5, 3, 7);
    x[0] = CHORDAL_SHUFFLE(a, c, 0, 1, 4, 5);
    x[1] = CHORDAL_SHUFFLE(b, d, 0, 1, 4, 5);
    x[2] = CHORDAL_SHUFFLE(a, c, 2, 3, 6, 7);
    x[3] = CHORDAL_SHUFFLE(b, d, 2, 3, 6, 7);
#else
    const Pack a = CHORDAL_SHUFFLE(x[0], x[1], 0, 2);
    x[1] = CHORDAL_SHUFFLE(x[0], x[1], 1, 3);
    x[0] = a;
#endif
}
// Entry j of several rows.
CHORDAL_INLINE Pack gather(const double* const (&row)[kLanes], std::size_t j) {
#if defined(CHORDAL_ISA_V3)
    return Pack{row[0][j], row[1][j], row[2][j], row[3][j]};
#else
    return Pack{row[0][j], row[1][j]};
#endif
}
CHORDAL_INLINE void scatter(Pack x, double* const (&row)[kLanes], std::size_t j) {
    for (std::size_t k = 0; k < kLanes; ++k) row[k][j] = x[k];
}

#else

struct Pack {
    double lane[kLanes];
    double operator[](std::size_t k) const { return lane[k]; }
};

template <class F>
CHORDAL_INLINE Pack each(F f) {
    Pack x;
    for (std::size_t k = 0; k < kLanes; ++k) x.lane[k] = f(k);
    return x;
}
CHORDAL_INLINE Pack load(const double* p) { return each([&](std::size_t k) { return p[k]; }); }
CHORDAL_INLINE void store(double* p, Pack x) { std::memcpy(p, x.lane, sizeof x.lane); }
CHORDAL_INLINE Pack load(const float* p) {
    return each([&](std::size_t k) { return static_cast<double>(p[k]); });
}
CHORDAL_INLINE void store(float* p, Pack x) {
    for (std::size_t k = 0; k < kLanes; ++k) p[k] = static_cast<float>(x[k]);
}
CHORDAL_INLINE Pack broadcast(double x) { return each([&](std::size_t) { return x; }); }
CHORDAL_INLINE Pack operator+(Pack a, Pack b) { return each([&](std::size_t k) { return a[k] + b[k]; }); }
CHORDAL_INLINE Pack operator-(Pack a, Pack b) { return each([&](std::size_t k) { return a[k] - b[k]; }); }
CHORDAL_INLINE Pack operator*(Pack a, Pack b) { return each([&](std::size_t k) { return a[k] * b[k]; }); }
CHORDAL_INLINE Pack operator/(Pack a, Pack b) { return each([&](std::size_t k) { return a[k] / b[k]; }); }
CHORDAL_INLINE Pack& operator+=(Pack& a, Pack b) { return a = a + b; }
CHORDAL_INLINE Pack maximum(Pack a, Pack b) {
    return each([&](std::size_t k) { return a[k] > b[k] ? a[k] : b[k]; });
}
CHORDAL_INLINE Pack minimum(Pack a, Pack b) {
    return each([&](std::size_t k) { return a[k] < b[k] ? a[k] : b[k]; });
}
CHORDAL_INLINE Pack where_equal(Pack a, Pack b, Pack then, Pack otherwise) {
    return each([&](std::size_t k) { return a[k] == b[k] ? then[k] : otherwise[k]; });
}
CHORDAL_INLINE Pack absolute(Pack x) {
    return each([&](std::size_t k) { return std::fabs(x[k]); });
}
CHORDAL_INLINE Pack power_of_bits(Pack shifted) {
    return each([&](std::size_t k) {
        std::uint64_t bits;
        double x = shifted[k];
        std::memcpy(&bits, &x, sizeof bits);
        bits <<= 52;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    });
}
CHORDAL_INLINE Pack zero_below(Pack x, Pack limit, Pack value) {
    return each([&](std::size_t k) { return x[k] >= limit[k] ? value[k] : 0.0; });
}
CHORDAL_INLINE void transpose(Pack (&x)[kLanes]) {
    Pack columns[kLanes];
    for (std::size_t j = 0; j < kLanes; ++j)
        columns[j] = each([&](std::size_t k) { return x[k][j]; });
    for (std::size_t j = 0; j < kLanes; ++j) x[j] = columns[j];
}
CHORDAL_INLINE Pack gather(const double* const (&row)[kLanes], std::size_t j) {
    return each([&](std::size_t k) { return row[k][j]; });
}
CHORDAL_INLINE void scatter(Pack x, double* const (&row)[kLanes], std::size_t j) {
    for (std::size_t k = 0; k < kLanes; ++k) row[k][j] = x[k];
}

#endif

// Every cache line of an array, the last one too.
template <class T>
CHORDAL_INLINE void prefetch(const T* begin, const T* end) {
    constexpr std::uintptr_t kLine = 64;
    const auto last = reinterpret_cast<std::uintptr_t>(end);
    for (auto line = reinterpret_cast<std::uintptr_t>(begin) / kLine * kLine; line < last; line += kLine)
        CHORDAL_PREFETCH(reinterpret_cast<const char*>(line));
}

// Whether every lane is at least this; NaN is not.
CHORDAL_INLINE bool at_least(Pack x, double limit) {
#if defined(CHORDAL_ISA_V3) && !defined(CHORDAL_PORTABLE_PACK)
    return _mm256_movemask_pd(_mm256_cmp_pd(x, broadcast(limit), _CMP_GE_OQ)) == 15;
#else
    bool all = true;
    for (std::size_t k = 0; k < kLanes; ++k) all &= x[k] >= limit;
    return all;
#endif
}
// Whether a lane is not +0.
CHORDAL_INLINE bool any(Pack x) {
    std::int64_t bits[kLanes];
    std::memcpy(bits, &x, sizeof bits);
    return (bits[0] | bits[1] | bits[kLanes - 2] | bits[kLanes - 1]) != 0;
}
// Combines the lanes of a pack in pairs.
template <class F>
CHORDAL_INLINE double reduce(Pack x, F f) {
    double lane[4] = {x[0], x[1], x[kLanes - 2], x[kLanes - 1]};
    return kLanes == 4 ? f(f(lane[0], lane[1]), f(lane[2], lane[3])) : f(lane[0], lane[1]);
}
CHORDAL_INLINE double lane_sum(Pack x) {
    return reduce(x, [](double a, double b) { return a + b; });
}
CHORDAL_INLINE double lane_max(Pack x) {
    return reduce(x, [](double a, double b) { return a > b ? a : b; });
}
CHORDAL_INLINE double lane_min(Pack x) {
    return reduce(x, [](double a, double b) { return a < b ? a : b; });
}

// The first place of the largest of n numbers; n > 0. Of NaN, some place.
CHORDAL_INLINE std::size_t first_largest(const double* x, std::size_t n) {
    if (n < kLanes) {
        std::size_t best = 0;
        for (std::size_t j = 1; j < n; ++j) best = x[j] > x[best] ? j : best;
        return best;
    }
    constexpr double kCount[] = {0.0, 1.0, 2.0, 3.0};
    const std::size_t last = n - kLanes;  // the last pack overlaps the one before it
    Pack top = load(x + last);
    for (std::size_t j = 0; j < last; j += kLanes) top = maximum(top, load(x + j));
    const Pack highest = broadcast(lane_max(top)), none = broadcast(static_cast<double>(n));
    const Pack count = load(kCount);
    Pack place = where_equal(load(x + last), highest,
                             broadcast(static_cast<double>(last)) + count, none);
    for (std::size_t j = 0; j < last; j += kLanes)
        place = minimum(place, where_equal(load(x + j), highest,
                                           broadcast(static_cast<double>(j)) + count, none));
    const auto first = static_cast<std::size_t>(lane_min(place));
    return first < n ? first : 0;
}

// The first place below n where x + y is this sum; both are padded. 0 if there is none.
CHORDAL_INLINE std::size_t first_sum(const double* x, const double* y, double sum, std::size_t n) {
    constexpr double kCount[] = {0.0, 1.0, 2.0, 3.0};
    const Pack wanted = broadcast(sum), none = broadcast(static_cast<double>(n));
    const Pack step = broadcast(static_cast<double>(kLanes));
    Pack count = load(kCount), place = none;
    for (std::size_t j = 0; j < n; j += kLanes, count = count + step)
        place = minimum(place, where_equal(load(x + j) + load(y + j), wanted, count, none));
    const auto first = static_cast<std::size_t>(lane_min(place));
    return first < n ? first : 0;
}

// exp(x) for -708.5 <= x <= 0, to one unit in the last place (to 1.25 without fused multiply-add).
// x = k ln 2 + r with |r| <= ln 2 / 2, and exp(r) = 1 + r (1 + r Q(r)). Q is of degree 9; it
// interpolates where the zeros of a Chebyshev polynomial in r² are, stretched until the first is 0,
// which leaves an error under 1.2e-17. Its even and odd powers are summed apart: half the latency.
// k + 1023, the bits of 2^k, is read from the low bits of x / ln 2 + 1.5 * 2^52 + 1023.
// Several packs go side by side, so that none waits for its own latency.
template <std::size_t N>
CHORDAL_INLINE void exp_bounded(Pack (&x)[N]) {
    constexpr double q[] = {
        5.00000000000001332268e-01, 1.66666666666666768437e-01, 4.16666666665144319603e-02,
        8.33333333332162556895e-03, 1.38888889472204104560e-03, 1.98412698861294650807e-04,
        2.48014897676379533330e-05, 2.75572442140446469624e-06, 2.76313330002161972207e-07,
        2.51090327836403301289e-08};
    const Pack magic = broadcast(6755399441055744.0 + 1023.0);
    Pack shifted[N], r[N], square[N], even[N], odd[N];
    CHORDAL_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
        shifted[n] = x[n] * broadcast(1.4426950408889634074) + magic;
        const Pack k = shifted[n] - magic;
        r[n] = (x[n] - k * broadcast(6.93147180369123816490e-01)) -
               k * broadcast(1.90821492927058770002e-10);
        square[n] = r[n] * r[n];
        even[n] = broadcast(q[8]);
        odd[n] = broadcast(q[9]);
    }
    CHORDAL_UNROLL
    for (int d = 6; d >= 0; d -= 2) {
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) {
            even[n] = even[n] * square[n] + broadcast(q[d]);
            odd[n] = odd[n] * square[n] + broadcast(q[d + 1]);
        }
    }
    CHORDAL_UNROLL
    for (std::size_t n = 0; n < N; ++n)
        x[n] = (((odd[n] * r[n] + even[n]) * r[n] + broadcast(1.0)) * r[n] + broadcast(1.0)) *
               power_of_bits(shifted[n]);
}
CHORDAL_INLINE Pack exp_bounded(Pack x) {
    Pack one[1] = {x};
    exp_bounded(one);
    return one[0];
}

// The same for any x <= 0: exactly 0 below -708.8, where k + 1023 = 0, so exp(-inf) = 0.
template <std::size_t N>
CHORDAL_INLINE void exp_nonpositive(Pack (&x)[N]) {
    CHORDAL_UNROLL
    for (std::size_t n = 0; n < N; ++n) x[n] = maximum(x[n], broadcast(-709.0));
    exp_bounded(x);
}
CHORDAL_INLINE Pack exp_nonpositive(Pack x) {
    Pack one[1] = {x};
    exp_nonpositive(one);
    return one[0];
}

// Scratch memory of a kernel call: aligned to a cache line, not initialised, freed on leaving.
template <class T>
class ScratchOf {
public:
    ScratchOf() = default;
    explicit ScratchOf(std::size_t count) { resize(count); }
    ScratchOf(const ScratchOf&) = delete;
    ScratchOf& operator=(const ScratchOf&) = delete;
    ~ScratchOf() { release(); }

    // Grows only, by half at least; what was there before is lost.
    void resize(std::size_t count) {
        if (count <= count_) return;
        const std::size_t larger = count_ + count_ / 2;
        release();
        count = count > larger ? count : larger;
        data_ = static_cast<T*>(take_scratch(count * sizeof(T)));
        count_ = count;
    }
    T* data() const { return data_; }
    T& operator[](std::size_t i) const { return data_[i]; }

private:
    void release() {
        if (count_ > 0) release_scratch(data_, count_ * sizeof(T));
        count_ = 0;
    }

    T* data_ = nullptr;
    std::size_t count_ = 0;
};
using Scratch = ScratchOf<double>;

// Rows are padded to a multiple of four whatever the lanes.
constexpr std::size_t padded(std::size_t n) { return (n + 3) / 4 * 4; }

}  // namespace chordal::CHORDAL_ISA
