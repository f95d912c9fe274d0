// Taggings of a padded batch, drawn from the model (padded_calls.hpp).
#include "padded_tasks.hpp"

namespace chordal {
namespace {

template <class T>
class Samples : PaddedTasks<T> {
public:
    explicit Samples(const PaddedChains<T>& chains) : PaddedTasks<T>(chains) {}

    Int sample(std::size_t samples, const Strided<const double, 3>& uniform,
               const Strided<Int, 3>& tags) {
        return each([&](ChainBlock& block, std::size_t task) {
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            std::vector<double> log_z(block.chains());
            if (!sums(block, log_z)) return false;
            const std::size_t n = block.step.size();
            std::vector<double> chance(n * samples);
            std::vector<std::int32_t> labels(n * samples);
            each_draw(block, samples, [&](std::size_t s, Int b, std::size_t v) {
                chance[s * n + v] = uniform(s, b, block.step[v]);
            });
            const ChainBatch batch = block.batch();
            const Outcome outcome =
                CHORDAL_DISPATCH(sample(batch, Domain::automatic, interrupted, chance.data(),
                                        samples, n, labels.data()));
            if (outcome != Outcome::done) return false;
            for (std::size_t c = 0; c < block.chains(); ++c) note(block.sequence[c], log_z[c]);
            each_draw(block, samples, [&](std::size_t s, Int b, std::size_t v) {
                tags(s, b, block.step[v]) = labels[s * n + v];
            });
            return true;
        });
    }

private:
    using PaddedTasks<T>::at;
    using PaddedTasks<T>::cut_;
    using PaddedTasks<T>::each;
    using PaddedTasks<T>::note;
    using PaddedTasks<T>::sums;
    using PaddedTasks<T>::x_;

    // visit(sample, sequence, variable)
    template <class Visit>
    void each_draw(const ChainBlock& block, std::size_t samples, Visit visit) const {
        for (std::size_t s = 0; s < samples; ++s)
            for (std::size_t c = 0; c < block.chains(); ++c)
                for (Int v = block.begin(c); v < block.end(c); ++v) visit(s, block.sequence[c], at(v));
    }
};

}  // namespace

template <class T>
Int padded_sample(const PaddedChains<T>& chains, std::size_t samples,
                  const Strided<const double, 3>& uniform, const Strided<Int, 3>& tags) {
    return Samples<T>(chains).sample(samples, uniform, tags);
}
template Int padded_sample(const PaddedChains<float>&, std::size_t, const Strided<const double, 3>&,
                           const Strided<Int, 3>&);
template Int padded_sample(const PaddedChains<double>&, std::size_t, const Strided<const double, 3>&,
                           const Strided<Int, 3>&);

}  // namespace chordal
