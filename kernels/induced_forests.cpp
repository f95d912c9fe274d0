// Variables in blocks, in each of which the edges between its own variables form no loop.
//
// A block takes variables in their order as long as their neighbours in it lie in different trees, and
// leaves the rest to the next block. A forest is one block; a grid of four neighbours needs three at most.
#include <algorithm>
#include <numeric>

#include "binding.hpp"

namespace chordal {
namespace {

class Blocks {
public:
    Blocks(std::size_t variables, const std::int64_t* begin, const std::int64_t* other)
        : begin_(begin), other_(other), root_(variables) {
        std::iota(root_.begin(), root_.end(), 0);
    }

    // Gives number `block` to the variables it takes, of those below zero; returns whether some are left.
    bool take(std::int64_t block, std::int64_t* blocks) {
        bool rest = false;
        for (std::size_t v = 0; v < root_.size(); ++v) {
            if (blocks[v] >= 0) continue;
            met_.clear();
            for (auto k = begin_[v]; k < begin_[v + 1]; ++k)
                if (blocks[other_[k]] == block) met_.push_back(find(other_[k]));
            std::sort(met_.begin(), met_.end());
            if (std::adjacent_find(met_.begin(), met_.end()) != met_.end()) {
                rest = true;
                continue;
            }
            for (const std::int64_t root : met_) root_[root] = static_cast<std::int64_t>(v);
            blocks[v] = block;
        }
        return rest;
    }

private:
    std::int64_t find(std::int64_t v) {
        while (root_[v] != v) v = root_[v] = root_[root_[v]];
        return v;
    }

    const std::int64_t *begin_, *other_;
    std::vector<std::int64_t> root_, met_;
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // offsets [variables + 1] into neighbours: both ends of every edge.
    m.def(
        "induced_forests",
        [](Input<std::int64_t> offsets, Input<std::int64_t> neighbours) {
            std::vector<std::int64_t> blocks(offsets.size() - 1, -1);
            bool stopped = false;
            {
                GilReleased release;
                Blocks made(blocks.size(), offsets.data(), neighbours.data());
                std::int64_t n = 0;
                for (bool rest = !blocks.empty(); rest && !stopped; stopped = interrupted())
                    rest = made.take(n++, blocks.data());
            }
            if (stopped) throw Stopped{};
            return array_of(std::move(blocks));
        },
        nb::kw_only(), nb::arg("offsets"), nb::arg("neighbours"),
        "The block of each variable; those of a block form a forest.");
});

}  // namespace chordal
