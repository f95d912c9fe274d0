// How a long loop ends after Ctrl-C, or when its time is over.
//
// Loops count their work, in steps of about a nanosecond, as deep inside as one step may be long. Now and then the counter
// calls `interrupted` (binding.hpp), which looks at the clock and seldom takes Python's lock, so that asking often
// is cheap. A loop near the binding returns; one deep inside throws Stopped, which frees what was
// taken on the way and reaches Python as KeyboardInterrupt or TimeLimitError. A method that has something to
// give back catches what `out_of_time` explains, and finishes with a Grace.
#pragma once

#include <cstddef>

#include "simd.hpp"
#include "stopping.hpp"

namespace chordal::CHORDAL_ISA {

class Patience {
public:
    explicit Patience(bool (*interrupted)()) : interrupted_(interrupted) {}

    // True after Ctrl-C, or out of time.
    bool spent(std::size_t work) {
        work_ += work;
        if (work_ < kEvery) return false;
        work_ = 0;
        return interrupted_();
    }
    // Throws then.
    void spend(std::size_t work) {
        if (spent(work)) throw Stopped{};
    }

private:
    static constexpr std::size_t kEvery = std::size_t{1} << 18;
    bool (*interrupted_)();
    std::size_t work_ = 0;
};

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <algorithm>
#include <vector>

namespace chordal {

// At least so many numbers, the new ones zero: fresh memory takes time, a second for some gigabytes.
inline void enlarge(std::vector<double>& room, std::size_t n, CHORDAL_ISA::Patience& patience) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 16;
    room.reserve(n);
    while (room.size() < n) {
        room.resize(std::min(n, room.size() + kAtOnce));
        patience.spend(kAtOnce);
    }
}

}  // namespace chordal
#endif
