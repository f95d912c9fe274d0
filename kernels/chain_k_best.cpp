// The k best labellings of each chain, best first, with their scores.
//
// Every (t, j) keeps the k best ways to reach it: value, and the pair (i, rank) it came from.
// The k L candidates of a label are merged from L sorted lists, so a step costs O(L² + L k L)
// at worst. Back pointers i * k + rank are kept for all t, values for two positions only.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "chain_binding.hpp"
#include "chain_calls.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

// The k best of {previous(i, r) + edge(i)} where previous(i, ·) is sorted: repeatedly takes the
// best head of the L lists. A list is spent when its next value is −inf.
void merge(const double* previous, const double* edge, std::size_t step, std::size_t labels,
           std::size_t k, double add, double* value, std::int32_t* from,
           std::vector<std::size_t>& head, CHORDAL_ISA::Patience& patience) {
    std::fill(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(labels), std::size_t{0});
    for (std::size_t r = 0; r < k; ++r) {
        patience.spend(4 * labels + 16);
        double best = kForbidden;
        std::size_t pick = labels;
        for (std::size_t i = 0; i < labels; ++i) {
            if (head[i] == k) continue;
            const double candidate = previous[i * k + head[i]] + edge[i * step];
            if (candidate > best) {
                best = candidate;
                pick = i;
            }
        }
        if (pick == labels) {
            std::fill(value + r, value + k, kForbidden);
            std::fill(from + r, from + k, 0);
            return;
        }
        value[r] = best + add;
        from[r] = static_cast<std::int32_t>(pick * k + head[pick]);
        ++head[pick];
    }
}

}  // namespace

Outcome k_best(const ChainBatch& batch, std::size_t k, std::size_t variables, double* score,
               std::int32_t* labels) {
    std::vector<double> now, next;
    std::unique_ptr<std::int32_t[]> from;  // not zeroed: that may take seconds, and all is written
    std::size_t room = 0;
    std::vector<std::size_t> head;
    CHORDAL_ISA::Patience patience(interrupted);
    for (std::size_t example = 0; example < batch.examples; ++example) {
        const Chain chain = batch.chain(example);
        const std::size_t T = chain.length;
        if (T == 0) {
            score[example * k] = 0.0;
            std::fill(score + example * k + 1, score + (example + 1) * k, kForbidden);
            continue;
        }
        const auto base = static_cast<std::size_t>(chain.offsets[0]);
        const std::size_t needed = (static_cast<std::size_t>(chain.offsets[T]) - base) * k;
        if (needed > room) {
            from.reset();
            from.reset(new std::int32_t[needed]);
            room = needed;
        }
        std::fill_n(from.get(), chain.labels(0) * k, 0);
        now.assign(chain.labels(0) * k, kForbidden);
        for (std::size_t j = 0; j < chain.labels(0); ++j) now[j * k] = chain.unary(0)[j];
        for (std::size_t t = 1; t < T; ++t) {
            const std::size_t rows = chain.labels(t - 1), columns = chain.labels(t);
            const double* table = batch.tables + batch.table_offsets[chain.table[t - 1]];
            const std::size_t offset = static_cast<std::size_t>(chain.offsets[t]) - base;
            next.resize(columns * k);
            head.resize(rows);
            for (std::size_t j = 0; j < columns; ++j)
                merge(now.data(), table + j, columns, rows, k, chain.unary(t)[j],
                      next.data() + j * k, from.get() + (offset + j) * k, head, patience);
            now.swap(next);
        }
        // The last step has no edge: merge the lists of the last position's labels themselves.
        const std::size_t last = chain.labels(T - 1);
        const double nothing = 0.0;
        std::vector<std::int32_t> end(k);
        head.resize(last);
        merge(now.data(), &nothing, 0, last, k, 0.0, score + example * k, end.data(), head,
              patience);
        for (std::size_t r = 0; r < k; ++r) {
            if (score[example * k + r] == kForbidden) break;
            patience.spend(16 * T);
            std::int32_t* y = labels + r * variables + batch.variable_offsets[example];
            std::int32_t pointer = end[r];
            for (std::size_t t = T; t-- > 0;) {
                const auto label = static_cast<std::size_t>(pointer) / k;
                y[t] = static_cast<std::int32_t>(label);
                const std::size_t offset = static_cast<std::size_t>(chain.offsets[t]) - base;
                pointer = from[(offset + label) * k + static_cast<std::size_t>(pointer) % k];
            }
        }
    }
    return Outcome::done;
}

static const Binding binding([](nb::module_& m) {
    m.def(
        "chain_k_best",
        [](const BoundScores& scores, std::size_t k, Output<double> score,
           Output<std::int32_t> labels) {
            run_chain(scores, [&](const ChainBatch& batch) {
                return k_best(batch, k, scores.variables, score.data(), labels.data());
            });
        },
        nb::arg("scores"), nb::arg("k"), nb::arg("score"), nb::arg("labels"));
});

}  // namespace chordal
