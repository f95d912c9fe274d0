// Viterbi: the best labelling of a chain after a forward pass.
//
// δ_t(j) = max_i [δ_{t-1}(i) + M_t(i,j)] + u_t(j) is the forward pass of chain.hpp with ⊕ = max.
// No back pointers are kept: going back, y_{t-1} = argmax_i δ_{t-1}(i) + M_t(i, y_t) costs L per
// position, against L² on the way forward. Ties go to the smallest label, at the last position
// where the tied labellings differ.
#pragma once

#include "chain.hpp"

namespace chordal::CHORDAL_ISA {

inline void trace_back(const Chain& chain, const Sweep<Max>& sweep, std::int32_t* y) {
    Listening listening;
    for (std::size_t t = chain.length; t-- > 0;) {
        listening.spend(2 * chain.labels(t));
        const double* delta = sweep.a(t);
        const double* into =
            t + 1 < chain.length ? sweep.tables.forward(t + 1) + y[t + 1] : nullptr;
        std::int32_t best = 0;
        double highest = -kInfinity;
        for (std::size_t i = 0; i < chain.labels(t); ++i) {
            const double value = into ? delta[i] + into[i * sweep.stride] : delta[i];
            if (value > highest) {
                highest = value;
                best = static_cast<std::int32_t>(i);
            }
        }
        y[t] = best;
    }
}

}  // namespace chordal::CHORDAL_ISA
