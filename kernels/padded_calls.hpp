// What a padded batch of chains (padded_chains.hpp) can be asked, in one call and on several threads:
//
//   value       v(b) = log Σ of the labellings that agree with the tags − log Z;  without tags, − log Z
//   gradient    Σ_b w(b) ∂v(b): the marginals among labellings that agree, less those among all
//   curvature   Σ_b w(b) ∂²v(b) · direction, and ∂v(b) · direction, for a second derivative
//   viterbi, k_best, sample
//
// Each gives the first sequence without any allowed labelling, or -1; -2 after Ctrl-C. T is float or double.
#pragma once

#include "padded_chains.hpp"

namespace chordal {

template <class T>
Int padded_value(const PaddedChains<T>&, T* out);
// `value` may be null: what padded_value gives, for little more than the gradient takes.
template <class T>
Int padded_gradient(const PaddedChains<T>&, const T* weight, const PaddedScores<T>& out, T* value);
template <class T>
Int padded_curvature(const PaddedChains<T>&, const T* weight, const PaddedScores<const T>& direction,
                     const PaddedScores<T>& out, T* slope);
template <class T>
Int padded_viterbi(const PaddedChains<T>&, T* score, const Strided<Int, 2>& tags);
template <class T>
Int padded_k_best(const PaddedChains<T>&, std::size_t k, const Strided<T, 2>& score,
                  const Strided<Int, 3>& tags);
template <class T>
Int padded_sample(const PaddedChains<T>&, std::size_t samples, const Strided<const double, 3>& uniform,
                  const Strided<Int, 3>& tags);

}  // namespace chordal
