// Marginals of dual variables, few of which are not zero, and the direction of a step on them.
#pragma once

#include "chain_dual.hpp"

namespace chordal {

// For each example a list of keys with values, and room for it to grow.
struct DualLists {
    const std::int64_t* room;  // [examples + 1] where each list begins
    std::int32_t* used;        // [examples] and its length
    std::uint32_t* keys;
    double* values;
};

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr double kForgotten = 1e-15;  // a marginal below it is zero

// One example's list μ, and the direction d = [ŷ] − μ at its keys, which is zero everywhere else.
class Direction {
public:
    void reserve(std::size_t size) {
        d_.resize(size);
        listed_.resize(size);
        std::memset(d_.data(), 0, size * sizeof(double));
        std::memset(listed_.data(), 0, size);
    }
    void open(const DualLists& lists, std::size_t n) {
        keys_ = lists.keys + lists.room[n];
        values_ = lists.values + lists.room[n];
        used_ = &lists.used[n];
        count_ = static_cast<std::size_t>(*used_);
    }
    static void foresee(const DualLists& lists, std::size_t n) {
        CHORDAL_PREFETCH(lists.room + n);
        CHORDAL_PREFETCH(lists.used + n);
    }
    static void fetch(const DualLists& lists, std::size_t n) {
        const std::int64_t begin = lists.room[n], end = begin + lists.used[n];
        prefetch(lists.values + begin, lists.values + end);
        prefetch(lists.keys + begin, lists.keys + end);
    }
    // ⟨μ, scores⟩, in two sums so that none waits for its own latency.
    double expected(const double* scores) const {
        double even = 0.0, odd = 0.0;
        std::size_t k = 0;
        for (; k + 1 < count_; k += 2) {
            even += values_[k] * scores[keys_[k]];
            odd += values_[k + 1] * scores[keys_[k + 1]];
        }
        if (k < count_) even += values_[k] * scores[keys_[k]];
        return even + odd;
    }
    void begin() const {
        for (std::size_t k = 0; k < count_; ++k) {
            d_[keys_[k]] = -values_[k];
            listed_[keys_[k]] = 1;
        }
    }
    // [ŷ] holds this key once more.
    void add(std::size_t key) {
        if (!listed_[key]) {
            listed_[key] = 1;
            keys_[count_] = static_cast<std::uint32_t>(key);
            values_[count_++] = 0.0;
        }
        d_[key] += 1.0;
    }
    template <class F>
    void each(F f) const {
        for (std::size_t k = 0; k < count_; ++k) f(keys_[k], d_[keys_[k]]);
    }
    // μ + γ d; d is zero again.
    void finish(double gamma) {
        std::size_t kept = 0;
        for (std::size_t k = 0; k < count_; ++k) {
            const std::uint32_t key = keys_[k];
            const double value = values_[k] + gamma * d_[key];
            d_[key] = 0.0;
            listed_[key] = 0;
            keys_[kept] = key;
            values_[kept] = value;
            kept += value > kForgotten;
        }
        *used_ = static_cast<std::int32_t>(kept);
    }
    const double* data() const { return d_.data(); }

private:
    Scratch d_;
    ScratchOf<std::uint8_t> listed_;  // whether a key is in the list; 0 between steps
    std::uint32_t* keys_ = nullptr;
    double* values_ = nullptr;
    std::int32_t* used_ = nullptr;
    std::size_t count_ = 0;
};

// The rows d_t of a direction of labels, [T] of `stride` entries: where they are not zero.
class FilledRows {
public:
    void reserve(std::size_t longest, std::size_t stride) {
        stride_ = stride;
        counts_.resize(longest);
        places_.resize(longest * (stride + 1));
        active_.resize(longest + 1);
    }
    void collect(const double* d, std::size_t T) {
        d_ = d;
        n_active = 0;
        for (std::size_t t = 0; t < T; ++t) {
            std::uint32_t *place = places(t), count = 0;
            for (std::size_t j = 0; j < stride_; j += kLanes) {
                place[count] = static_cast<std::uint32_t>(j);
                count += any(load(row(t) + j));
            }
            counts_[t] = count;
            active_[n_active] = static_cast<std::uint32_t>(t);
            n_active += count > 0;
        }
    }
    std::size_t active(std::size_t k) const { return active_[k]; }
    const double* row(std::size_t t) const { return d_ + t * stride_; }
    Filled filled(std::size_t t) const { return {counts_[t], places(t)}; }

    // Σ_tu gram(t, u) ⟨d_t, d_u⟩; gram is symmetric, given by its rows u <= t.
    double norm2(const double* gram) const {
        std::size_t j = 0, packs = stride_ / kLanes;
        Pack sum = broadcast(0.0);
        for (; packs > 7; packs -= 6, j += 6 * kLanes) sum = sum + panel<6>(gram, j);
        switch (packs) {
            case 1: sum = sum + panel<1>(gram, j); break;
            case 2: sum = sum + panel<2>(gram, j); break;
            case 3: sum = sum + panel<3>(gram, j); break;
            case 4: sum = sum + panel<4>(gram, j); break;
            case 5: sum = sum + panel<5>(gram, j); break;
            case 6: sum = sum + panel<6>(gram, j); break;
            default: sum = sum + panel<7>(gram, j);
        }
        return lane_sum(sum);
    }

    std::size_t n_active = 0;  // rows that are not all zero

private:
    std::uint32_t* places(std::size_t t) const { return places_.data() + t * (stride_ + 1); }

    // The part of N packs of columns: Σ_t ⟨d_t, gram(t, t) d_t + 2 Σ_{u<t} gram(t, u) d_u⟩.
    template <std::size_t N>
    CHORDAL_INLINE Pack panel(const double* gram, std::size_t j) const {
        Pack sum[2] = {broadcast(0.0), broadcast(0.0)};
        for (std::size_t a = 0; a < n_active; ++a) {
            const std::size_t t = active_[a];
            const double *products = gram + t * (t + 1) / 2, *here = row(t) + j;
            Pack before[N];
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n) before[n] = broadcast(0.0);
            for (std::size_t b = 0; b < a; ++b) {
                const Pack product = broadcast(products[active_[b]]);
                const double* other = row(active_[b]) + j;
                CHORDAL_UNROLL
                for (std::size_t n = 0; n < N; ++n)
                    before[n] = product * load(other + n * kLanes) + before[n];
            }
            const Pack product = broadcast(products[t]);
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n) {
                const Pack x = load(here + n * kLanes);
                sum[n % 2] = x * (product * x + before[n] + before[n]) + sum[n % 2];
            }
        }
        return sum[0] + sum[1];
    }

    std::size_t stride_ = 0;
    const double* d_ = nullptr;
    ScratchOf<std::uint32_t> counts_, places_, active_;
};

}  // namespace chordal::CHORDAL_ISA
