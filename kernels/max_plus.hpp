// Viterbi on one or two gathered chains that share their tables, in float or double.
//
//   δ_1 = u_1        δ_t(j) = u_t(j) + max_i [δ_{t-1}(i) + M_t(i, j)]
//
// u holds start and end scores too. A block of columns j stays in registers while i runs, for both chains:
// a row of M is loaded once. A label i with δ(i) + max_j M(i, j) < max_k [δ(k) + min_j M(k, j)] is best for no j, and is
// left out: where scores of steps tell labels apart better than transitions do, few remain.
// No back pointers are kept: going back, y_{t-1} = argmax_i δ_{t-1}(i) + M_t(i, y_t) costs L per step, against up to L² on
// the way forward. Ties go to the smallest label.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chain_batch.hpp"
#include "simd.hpp"

namespace chordal {

// Rows have `stride` entries, a multiple of 32 bytes, of which those from `labels` on are −inf.
template <class T>
struct MaxPlusChains {
    const T* table;      // [labels, stride], or one for each step, `step` apart: the first is not used
    std::size_t step;    // 0 where all steps share a table
    // Of a table that all steps share, else null: columns as rows; the highest and lowest score of each row.
    const T *flipped, *high, *low;
    std::uint32_t* list;  // room for `labels` numbers
    std::size_t labels, stride, chains;
    T* rows[2];              // [length, stride]: u, then δ, less a number of each step
    std::size_t length[2];
    std::int32_t* best[2];   // [length]; best[c][0] is -1 if nothing is allowed
};

CHORDAL_BOTH_ISAS(Outcome best_paths(const MaxPlusChains<float>&, bool (*interrupted)());
                  Outcome best_paths(const MaxPlusChains<double>&, bool (*interrupted)());)

}  // namespace chordal
