// max_plus.hpp
#include "max_plus.hpp"

#include <bit>

#include "patience.hpp"

namespace chordal {

// As in the header; the build looks for it here.
CHORDAL_BOTH_ISAS(Outcome best_paths(const MaxPlusChains<float>&, bool (*interrupted)());)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {
namespace {

#if (defined(__GNUC__) || defined(__clang__)) && !defined(CHORDAL_PORTABLE_PACK)

template <class T>
struct WideOf {
    typedef T type __attribute__((vector_size(kLanes * sizeof(double)), may_alias));
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
CHORDAL_INLINE Wide<T> read(const T* p) {
    return *reinterpret_cast<const Wide<T>*>(p);
}
template <class T>
CHORDAL_INLINE void write(T* p, Wide<T> x) {
    *reinterpret_cast<Wide<T>*>(p) = x;
}
template <class T>
CHORDAL_INLINE Wide<T> all(T x) {
    return x - Wide<T>{};
}
#if defined(CHORDAL_ISA_V3)  // GCC makes two instructions of the formula
CHORDAL_INLINE Wide<float> larger(Wide<float> a, Wide<float> b) { return _mm256_max_ps(a, b); }
CHORDAL_INLINE Wide<double> larger(Wide<double> a, Wide<double> b) { return _mm256_max_pd(a, b); }
// A bit for every lane of a that is at least b.
CHORDAL_INLINE unsigned reached(Wide<float> a, Wide<float> b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)));
}
CHORDAL_INLINE unsigned reached(Wide<double> a, Wide<double> b) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GE_OQ)));
}
#else
template <class V>
CHORDAL_INLINE V larger(V a, V b) {
    return a > b ? a : b;
}
#endif

#else

template <class T>
struct Wide {
    T lane[kLanes * sizeof(double) / sizeof(T)];
    T operator[](std::size_t k) const { return lane[k]; }
};
template <class T, class F>
CHORDAL_INLINE Wide<T> every(F f) {
    Wide<T> x;
    for (std::size_t k = 0; k < kLanes * sizeof(double) / sizeof(T); ++k) x.lane[k] = f(k);
    return x;
}
template <class T>
CHORDAL_INLINE Wide<T> read(const T* p) {
    return every<T>([&](std::size_t k) { return p[k]; });
}
template <class T>
CHORDAL_INLINE void write(T* p, Wide<T> x) {
    for (std::size_t k = 0; k < kLanes * sizeof(double) / sizeof(T); ++k) p[k] = x[k];
}
template <class T>
CHORDAL_INLINE Wide<T> all(T x) {
    return every<T>([&](std::size_t) { return x; });
}
template <class T>
CHORDAL_INLINE Wide<T> operator+(Wide<T> a, Wide<T> b) {
    return every<T>([&](std::size_t k) { return a[k] + b[k]; });
}
template <class T>
CHORDAL_INLINE Wide<T> operator-(Wide<T> a, Wide<T> b) {
    return every<T>([&](std::size_t k) { return a[k] - b[k]; });
}
template <class T>
CHORDAL_INLINE Wide<T> larger(Wide<T> a, Wide<T> b) {
    return every<T>([&](std::size_t k) { return a[k] > b[k] ? a[k] : b[k]; });
}

#endif

template <class T>
constexpr std::size_t kWide = kLanes * sizeof(double) / sizeof(T);
template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

#if !defined(CHORDAL_ISA_V3) || defined(CHORDAL_PORTABLE_PACK)
template <class V>
CHORDAL_INLINE unsigned reached(V a, V b) {
    unsigned bits = 0;
    for (std::size_t k = 0; k < sizeof(V) / sizeof(a[0]); ++k) bits |= unsigned(a[k] >= b[k]) << k;
    return bits;
}
#endif

#if defined(CHORDAL_ISA_V3) && !defined(CHORDAL_PORTABLE_PACK)
template <class T>
CHORDAL_INLINE float highest_lane(Wide<float> x) {
    __m128 top = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    top = _mm_max_ps(top, _mm_movehl_ps(top, top));
    return _mm_cvtss_f32(_mm_max_ss(top, _mm_movehdup_ps(top)));
}
template <class T>
CHORDAL_INLINE double highest_lane(Wide<double> x) {
    const __m128d top = _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_max_sd(top, _mm_unpackhi_pd(top, top)));
}
#else
template <class T>
CHORDAL_INLINE T highest_lane(Wide<T> x) {
    T found = x[0];
    for (std::size_t k = 1; k < kWide<T>; ++k) found = x[k] > found ? x[k] : found;
    return found;
}
#endif
// The largest x(j) + y(j).
template <class T>
CHORDAL_INLINE T largest_sum(const T* x, const T* y, std::size_t stride) {
    Wide<T> top = read(x) + read(y);
    for (std::size_t j = kWide<T>; j < stride; j += kWide<T>) top = larger(top, read(x + j) + read(y + j));
    return highest_lane<T>(top);
}

// W packs of columns, of C chains: to[c] += max_i from[c][i] + table[i], over all i or those of a list.
template <std::size_t W, std::size_t C, bool Listed, class T>
CHORDAL_INLINE void columns(const T* table, std::size_t stride, const std::uint32_t* list,
                            std::size_t count, const T* const (&from)[C], T* const (&to)[C]) {
    Wide<T> top[C][W];
    CHORDAL_UNROLL
    for (std::size_t c = 0; c < C; ++c) {
        CHORDAL_UNROLL
        for (std::size_t w = 0; w < W; ++w) top[c][w] = all<T>(kNever<T>);
    }
    for (std::size_t k = 0; k < count; ++k) {
        const std::size_t i = Listed ? list[k] : k;
        Wide<T> state[C];
        CHORDAL_UNROLL
        for (std::size_t c = 0; c < C; ++c) state[c] = all<T>(from[c][i]);
        CHORDAL_UNROLL
        for (std::size_t w = 0; w < W; ++w) {
            const Wide<T> cell = read(table + i * stride + w * kWide<T>);
            CHORDAL_UNROLL
            for (std::size_t c = 0; c < C; ++c) top[c][w] = larger(top[c][w], state[c] + cell);
        }
    }
    CHORDAL_UNROLL
    for (std::size_t c = 0; c < C; ++c) {
        CHORDAL_UNROLL
        for (std::size_t w = 0; w < W; ++w) {
            T* place = to[c] + w * kWide<T>;
            write(place, read<T>(place) + top[c][w]);
        }
    }
}

// One step of C chains, in blocks of up to six packs, of nearly equal width.
template <std::size_t C, bool Listed, class T>
void move(const T* table, std::size_t stride, const std::uint32_t* list, std::size_t count,
          const T* const (&from)[C], T* const (&to)[C]) {
    const std::size_t packs = stride / kWide<T>, blocks = (packs + 5) / 6;
    std::size_t done = 0;
    for (std::size_t k = 0; k < blocks; ++k) {
        const std::size_t end = packs * (k + 1) / blocks, column = done * kWide<T>;
        const T* cells = table + column;
        T* part[C];
        for (std::size_t c = 0; c < C; ++c) part[c] = to[c] + column;
        switch (end - done) {
            case 1: columns<1, C, Listed, T>(cells, stride, list, count, from, part); break;
            case 2: columns<2, C, Listed, T>(cells, stride, list, count, from, part); break;
            case 3: columns<3, C, Listed, T>(cells, stride, list, count, from, part); break;
            case 4: columns<4, C, Listed, T>(cells, stride, list, count, from, part); break;
            case 5: columns<5, C, Listed, T>(cells, stride, list, count, from, part); break;
            default: columns<6, C, Listed, T>(cells, stride, list, count, from, part);
        }
        done = end;
    }
}

// The labels that may be best before another one, in x.list; how many there are.
template <class T>
std::size_t candidates(const MaxPlusChains<T>& x, const T* state) {
    const T bound = largest_sum(state, x.low, x.stride);
    if (bound == kNever<T>) return x.labels;  // of no use
    const Wide<T> least = all<T>(bound);
    std::size_t count = 0;
    for (std::size_t j = 0; j < x.stride; j += kWide<T>)
        for (unsigned bits = reached(read(state + j) + read(x.high + j), least); bits; bits &= bits - 1)
            x.list[count++] = static_cast<std::uint32_t>(j + static_cast<unsigned>(std::countr_zero(bits)));
    return count;
}

// Scores of long chains grow, and float has few digits: now and then the largest becomes 0.
template <class T>
void lower(T* row, std::size_t stride) {
    Wide<T> top = read(row);
    for (std::size_t j = kWide<T>; j < stride; j += kWide<T>) top = larger(top, read<T>(row + j));
    const T highest = highest_lane<T>(top);
    if (highest == kNever<T>) return;
    for (std::size_t j = 0; j < stride; j += kWide<T>)
        write(row + j, read<T>(row + j) - all<T>(highest));
}

// The first place of the largest x(j) + y(j).
template <class T>
CHORDAL_INLINE std::int32_t first_of(const T* x, const T* y, std::size_t stride) {
    const Wide<T> highest = all<T>(largest_sum(x, y, stride));
    for (std::size_t j = 0; j < stride; j += kWide<T>)
        if (const unsigned bits = reached(read(x + j) + read(y + j), highest))
            return static_cast<std::int32_t>(j + static_cast<unsigned>(std::countr_zero(bits)));
    return 0;
}

template <class T>
void go_back(const MaxPlusChains<T>& x, std::size_t c) {
    const T* row = x.rows[c] + (x.length[c] - 1) * x.stride;
    std::int32_t now = 0;
    for (std::size_t i = 1; i < x.labels; ++i)
        if (row[i] > row[now]) now = static_cast<std::int32_t>(i);
    const bool possible = row[now] != kNever<T>;
    for (std::size_t t = x.length[c]; t-- > 0;) {
        x.best[c][t] = now;
        if (t == 0) break;
        row -= x.stride;
        const auto y = static_cast<std::size_t>(now);
        if (x.flipped) {
            now = first_of(row, x.flipped + y * x.stride, x.stride);
            continue;
        }
        const T* into = x.table + t * x.step + y;
        now = 0;
        for (std::size_t i = 1; i < x.labels; ++i)
            if (row[i] + into[i * x.stride] > row[now] + into[static_cast<std::size_t>(now) * x.stride])
                now = static_cast<std::int32_t>(i);
    }
    if (!possible) x.best[c][0] = -1;
}

// Goes forward by one step; how often leaving labels out pays is found on the way.
template <class T>
class Forward {
public:
    explicit Forward(const MaxPlusChains<T>& x) : x_(x) {}

    void step(std::size_t t) {
        const T* table = x_.table + t * x_.step;
        const bool both = x_.chains == 2 && t < x_.length[0] && t < x_.length[1];
        if (x_.high && t >= next_) {
            std::size_t left_out = 0, labels = 0;
            for (std::size_t c = 0; c < x_.chains; ++c) {
                if (t >= x_.length[c]) continue;
                const T* from[1] = {x_.rows[c] + (t - 1) * x_.stride};
                T* to[1] = {x_.rows[c] + t * x_.stride};
                const std::size_t count = candidates(x_, from[0]);
                labels += x_.labels;
                if (2 * count > x_.labels) {
                    move<1, false, T>(table, x_.stride, nullptr, x_.labels, from, to);
                } else {
                    left_out += x_.labels - count;
                    move<1, true, T>(table, x_.stride, x_.list, count, from, to);
                }
            }
            if (2 * left_out < labels) next_ = t + 16;
            return;
        }
        if (both) {
            const T* from[2] = {x_.rows[0] + (t - 1) * x_.stride, x_.rows[1] + (t - 1) * x_.stride};
            T* to[2] = {x_.rows[0] + t * x_.stride, x_.rows[1] + t * x_.stride};
            move<2, false, T>(table, x_.stride, nullptr, x_.labels, from, to);
            return;
        }
        for (std::size_t c = 0; c < x_.chains; ++c) {
            if (t >= x_.length[c]) continue;
            const T* from[1] = {x_.rows[c] + (t - 1) * x_.stride};
            T* to[1] = {x_.rows[c] + t * x_.stride};
            move<1, false, T>(table, x_.stride, nullptr, x_.labels, from, to);
        }
    }

private:
    const MaxPlusChains<T>& x_;
    std::size_t next_ = 1;  // step at which to try again
};

template <class T>
Outcome run(const MaxPlusChains<T>& x, bool (*interrupted)()) {
    constexpr std::size_t kLowered = 8;  // steps
    Patience patience(interrupted);
    Forward<T> forward(x);
    std::size_t longest = 0;
    for (std::size_t c = 0; c < x.chains; ++c)
        longest = x.length[c] > longest ? x.length[c] : longest;
    for (std::size_t t = 1; t < longest; ++t) {
        forward.step(t);
        for (std::size_t c = 0; t % kLowered == 0 && c < x.chains; ++c)
            if (t < x.length[c]) lower(x.rows[c] + t * x.stride, x.stride);
        if (patience.spent(x.labels * x.stride / 4)) return Outcome::stopped;
    }
    for (std::size_t c = 0; c < x.chains; ++c)
        if (x.length[c] > 0) go_back(x, c);
    return Outcome::done;
}

}  // namespace

Outcome best_paths(const MaxPlusChains<float>& x, bool (*interrupted)()) { return run(x, interrupted); }
Outcome best_paths(const MaxPlusChains<double>& x, bool (*interrupted)()) { return run(x, interrupted); }

}  // namespace chordal::CHORDAL_ISA
