// The best labelling of each chain at every cost, where labels have prices in whole units.
//
//   δ_t(j, k) = u_t(j) + max_i [δ_{t-1}(i, k - r_t(j)) + M_t(i, j)],   cost(y) = Σ_t r_t(y_t) = k
//
// with r_t(j) >= 0 whole numbers. Row k of position t holds δ_t(·, k), k = 0 .. K_t, where K_t is
// the sum of the largest prices up to t; time Σ_t K_t L², memory Σ_t K_t L. No back pointers: going
// back from a cost, y_{t-1} = argmax_i δ_{t-1}(i, k - r_t(y_t)) + M_t(i, y_t). Ties go to the
// smallest label. With prices 0 for the gold label and 1 for others, k counts errors: what slack
// scaling asks for (Tsochantaridis et al. 2005; Bauer, Görnitz, Biegler, Müller and Kloft 2014).
#include <algorithm>
#include <limits>
#include <vector>

#include "chain_binding.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

class ByCost {
public:
    ByCost(const ChainBatch& batch, const std::int64_t* price) : batch_(batch), price_(price) {}

    // Fills the rows of all positions.
    void forward(std::size_t example) {
        chain_ = batch_.chain(example);
        begin_.assign(chain_.length + 1, 0);
        levels_.assign(chain_.length, 0);
        for (std::size_t t = 0; t < chain_.length; ++t) {
            const std::int64_t* r = prices(t);
            const auto most = static_cast<std::size_t>(*std::max_element(r, r + chain_.labels(t)));
            levels_[t] = (t ? levels_[t - 1] - 1 : 0) + most + 1;
            begin_[t + 1] = begin_[t] + levels_[t] * chain_.labels(t);
        }
        rows_.clear();
        rows_.reserve(begin_[chain_.length]);
        for (std::size_t t = 0; t < chain_.length; ++t) {
            rows_.resize(begin_[t + 1], kNone);
            patience_.spend(begin_[t + 1] - begin_[t]);
            advance(t);
        }
    }

    // The score of the best labelling of this cost, which goes to y.
    double best(std::size_t k, std::int32_t* y) {
        if (chain_.length == 0) return 0.0;
        double score = kNone;
        for (std::size_t t = chain_.length; t-- > 0;) {
            patience_.spend(4 * chain_.labels(t) + 16);
            const double* delta = row(t, k);
            const double* into = nullptr;
            std::size_t columns = 0;
            if (t + 1 < chain_.length) {
                columns = chain_.labels(t + 1);
                into = table(t + 1) + y[t + 1];
            }
            double highest = kNone;
            std::int32_t pick = 0;
            for (std::size_t i = 0; i < chain_.labels(t); ++i) {
                const double value = into ? delta[i] + into[i * columns] : delta[i];
                if (value > highest) {
                    highest = value;
                    pick = static_cast<std::int32_t>(i);
                }
            }
            if (!into) score = highest;
            if (score == kNone) return kNone;
            y[t] = pick;
            k -= static_cast<std::size_t>(prices(t)[pick]);
        }
        return score;
    }

private:
    void advance(std::size_t t) {
        const double* u = chain_.unary(t);
        const std::int64_t* r = prices(t);
        const std::size_t n = chain_.labels(t);
        if (t == 0) {
            for (std::size_t j = 0; j < n; ++j) row(0, static_cast<std::size_t>(r[j]))[j] = u[j];
            return;
        }
        const double* m = table(t);
        best_.resize(n);
        for (std::size_t k = 0; k < levels_[t - 1]; ++k) {
            const double* from = row(t - 1, k);
            std::fill(best_.begin(), best_.end(), kNone);
            for (std::size_t i = 0; i < chain_.labels(t - 1); ++i) {
                if (from[i] == kNone) continue;
                const double before = from[i];
                const double* into = m + i * n;
                double* best = best_.data();
                for (std::size_t j = 0; j < n; ++j) {
                    const double value = before + into[j];
                    best[j] = value > best[j] ? value : best[j];
                }
            }
            for (std::size_t j = 0; j < n; ++j)
                row(t, k + static_cast<std::size_t>(r[j]))[j] = best_[j] + u[j];
            patience_.spend(n * chain_.labels(t - 1));
        }
    }

    double* row(std::size_t t, std::size_t k) {
        return rows_.data() + begin_[t] + k * chain_.labels(t);
    }
    const double* row(std::size_t t, std::size_t k) const {
        return rows_.data() + begin_[t] + k * chain_.labels(t);
    }
    const std::int64_t* prices(std::size_t t) const { return price_ + chain_.offsets[t]; }
    const double* table(std::size_t t) const {  // of the transition into t
        return batch_.tables + batch_.table_offsets[chain_.table[t - 1]];
    }

    const ChainBatch& batch_;
    const std::int64_t* price_;  // [states] r
    Chain chain_{};
    std::vector<std::size_t> begin_, levels_;
    std::vector<double> rows_, best_;
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // score [level_offsets[examples]]; labels: for each level of each example, its variables'.
    m.def(
        "chain_best_by_cost",
        [](const BoundScores& scores, Input<std::int64_t> price, Input<std::int64_t> level_offsets,
           Output<double> score, Output<std::int32_t> labels) {
            run_chain(scores, [&](const ChainBatch& batch) {
                ByCost by_cost(batch, price.data());
                std::int32_t* y = labels.data();
                for (std::size_t example = 0; example < batch.examples; ++example) {
                    by_cost.forward(example);
                    const auto first = level_offsets.data()[example];
                    const auto levels = level_offsets.data()[example + 1] - first;
                    const auto length =
                        batch.variable_offsets[example + 1] - batch.variable_offsets[example];
                    for (std::int64_t k = 0; k < levels; ++k, y += length)
                        score.data()[first + k] = by_cost.best(static_cast<std::size_t>(k), y);
                }
                return Outcome::done;
            });
        },
        nb::arg("scores"), nb::kw_only(), nb::arg("price"), nb::arg("level_offsets"),
        nb::arg("score"), nb::arg("labels"));
});

}  // namespace chordal
