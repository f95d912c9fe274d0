// How a long loop ends after Ctrl-C.
//
// Loops count their work, in steps of about a nanosecond, as deep inside as one step may be long. Now and then the counter
// calls `interrupted` (binding.hpp), which looks at the clock and seldom takes Python's lock, so that asking often
// is cheap. A loop near the binding returns; one deep inside throws Stopped, which frees what was
// taken on the way and reaches Python as the error that is set already.
#pragma once

#include <cstddef>

#include "simd.hpp"

namespace chordal {

// After Ctrl-C. Python's error is set.
struct Stopped {};

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

class Patience {
public:
    explicit Patience(bool (*interrupted)()) : interrupted_(interrupted) {}

    // True after Ctrl-C.
    bool spent(std::size_t work) {
        work_ += work;
        if (work_ < kEvery) return false;
        work_ = 0;
        return interrupted_();
    }
    // Throws after Ctrl-C.
    void spend(std::size_t work) {
        if (spent(work)) throw Stopped{};
    }

private:
    static constexpr std::size_t kEvery = std::size_t{1} << 18;
    bool (*interrupted_)();
    std::size_t work_ = 0;
};

}  // namespace chordal::CHORDAL_ISA
