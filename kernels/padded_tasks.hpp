// How the calls on a padded batch share their sequences among threads.
//
// The batch is cut into blocks by its size alone, and sums are taken block by block, in order: the number
// of threads changes no digit.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "binding.hpp"
#include "chain_calls.hpp"
#include "padded_calls.hpp"
#include "parallel.hpp"

namespace chordal {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

// How a batch is cut: pairs of sequences share a large table, so that blocks hold two at least.
struct Cut {
    std::size_t sequences, size, blocks;

    explicit Cut(std::size_t n, std::size_t labels) : sequences(n) {
        const std::size_t cells = labels * labels + 1;
        const std::size_t most = std::clamp<std::size_t>((std::size_t{1} << 22) / cells, 8, 64);
        size = std::max<std::size_t>(2, (n + most - 1) / most);
        blocks = (n + size - 1) / size;
    }
    std::size_t begin(std::size_t block) const { return block * size; }
    std::size_t end(std::size_t block) const { return std::min(sequences, (block + 1) * size); }
};

template <class T>
class PaddedTasks {
protected:
    // Starting a thread takes longer than `small` looks at a cell of a table.
    explicit PaddedTasks(const PaddedChains<T>& chains, std::size_t small = 100'000)
        : x_(chains), cut_(chains.sequences, chains.labels) {
        const std::size_t work = x_.sequences * x_.steps * x_.labels * x_.labels;
        threads_ = work < small ? 1 : chains.threads;
    }

    static std::size_t at(Int v) { return static_cast<std::size_t>(v); }

    // Calls body(block, task), where each thread has a block of its own; false from it ends all.
    template <class Block = ChainBlock, class Body>
    Int each(const Body& body) {
        std::vector<Block> blocks(std::max<std::size_t>(1, threads_));
        infeasible_ = static_cast<Int>(x_.sequences);
        const bool done = in_parallel(cut_.blocks, threads_, [&](std::size_t worker, std::size_t task) {
            return body(blocks[worker], task);
        });
        if (!done) return -2;
        return infeasible_ < static_cast<Int>(x_.sequences) ? infeasible_.load() : -1;
    }
    // Keeps the first sequence whose score, or log Z, is −inf; throws if one overflows.
    void note(Int sequence, double score) {
        if (!(score < -kForbidden)) throw Misfit{Misfit::Of::sum, sequence, -1, -1, score};
        Int first = infeasible_;
        while (score == kForbidden && sequence < first &&
               !infeasible_.compare_exchange_weak(first, sequence)) {
        }
    }

    bool sums(const ChainBlock& block, std::vector<double>& log_z) const {
        const ChainBatch batch = block.batch();
        return CHORDAL_DISPATCH(log_partition(batch, Domain::automatic, interrupted,
                                              log_z.data())) == Outcome::done;
    }

    const PaddedChains<T>& x_;
    Cut cut_;
    std::size_t threads_;

private:
    std::atomic<Int> infeasible_{0};
};

}  // namespace chordal
