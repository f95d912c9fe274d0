// Memory of a kernel call, for the arrays of ScratchOf (simd.hpp).
//
// Large arrays are cut from chunks, which a thread gives back when none of its arrays is left; it keeps one
// for its next call. Chunks ask for huge pages: a page fault for every 4 KB would take longer than many a
// kernel.
#pragma once

#include <cstddef>

namespace chordal {

// Aligned to a cache line. An array is released by the thread that took it.
void* take_scratch(std::size_t bytes);
void release_scratch(void* array, std::size_t bytes) noexcept;

}  // namespace chordal
