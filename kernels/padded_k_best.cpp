// The k best taggings of a padded batch (padded_calls.hpp).
#include "padded_tasks.hpp"

namespace chordal {
namespace {

template <class T>
class KBest : PaddedTasks<T> {
public:
    explicit KBest(const PaddedChains<T>& chains) : PaddedTasks<T>(chains) {}

    Int k_best(std::size_t k, const Strided<T, 2>& score, const Strided<Int, 3>& tags) {
        return each([&](ChainBlock& block, std::size_t task) {
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            std::vector<double> best(block.chains() * k);
            const std::size_t n = block.step.size();
            std::vector<std::int32_t> labels(n * k);
            if (chordal::k_best(block.batch(), k, n, best.data(), labels.data()) != Outcome::done)
                return false;
            for (std::size_t c = 0; c < block.chains(); ++c) {
                const Int b = block.sequence[c];
                note(b, best[c * k]);
                for (std::size_t r = 0; r < k; ++r) {
                    score(b, r) = static_cast<T>(best[c * k + r]);
                    if (best[c * k + r] == kForbidden) continue;  // fewer labellings than k
                    for (Int v = block.begin(c); v < block.end(c); ++v)
                        tags(b, r, block.step[at(v)]) = labels[r * n + at(v)];
                }
            }
            return true;
        });
    }

private:
    using PaddedTasks<T>::at;
    using PaddedTasks<T>::cut_;
    using PaddedTasks<T>::each;
    using PaddedTasks<T>::note;
    using PaddedTasks<T>::x_;
};

}  // namespace

template <class T>
Int padded_k_best(const PaddedChains<T>& chains, std::size_t k, const Strided<T, 2>& score,
                  const Strided<Int, 3>& tags) {
    return KBest<T>(chains).k_best(k, score, tags);
}
template Int padded_k_best(const PaddedChains<float>&, std::size_t, const Strided<float, 2>&,
                           const Strided<Int, 3>&);
template Int padded_k_best(const PaddedChains<double>&, std::size_t, const Strided<double, 2>&,
                           const Strided<Int, 3>&);

}  // namespace chordal
