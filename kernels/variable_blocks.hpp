// The variables' side of messages that all go at once: variables side by side, as lanes.hpp has them.
//
// New m are written over n, and `cavities` makes n of them again:
//
//   n_{v→c}(x_v) = φ_v(x_v) ⊗ ⊗_{c' ∋ v, c' ≠ c} m_{c'→v}(x_v)
//
// For each of the places that variables of a class have there are rows of their own, [blocks, labels, lanes].
// Empty lanes hold ones.
#pragma once

#include "lanes.hpp"
#include "messages.hpp"

namespace chordal::CHORDAL_ISA {

template <class Ring>
class VariableBlocks {
public:
    void open(const FactorExample& ex, const Lanes& lanes) {
        ex_ = &ex;
        lanes_ = &lanes;
        block_.resize(static_cast<std::size_t>(lanes.variable_blocks));
        taken_.resize(static_cast<std::size_t>(ex.variables));
        for (Int v = 0; v < ex.variables; ++v) taken_[v] = 0;
        phi_cells_ = 0;
        std::size_t n_cells = 0, largest = 0;
        for (Int k = 0, b = 0; k < lanes.classes; ++k) {
            const Lanes::Class& alike = lanes.of_class(k);
            const std::size_t cells = alike.labels * kLanes, step = static_cast<std::size_t>(alike.blocks) * cells;
            const auto degree = static_cast<std::size_t>(alike.degree);
            for (Int end = b + alike.blocks; b < end; ++b, phi_cells_ += cells, n_cells += cells)
                block_[b] = {alike.labels, alike.degree, phi_cells_, n_cells, step};
            n_cells += step * degree - step;
            largest = cells * degree > largest ? cells * degree : largest;
        }
        phi_.resize(phi_cells_);
        b_.resize(phi_cells_);
        n_.resize(n_cells);
        m_.resize(largest);
        for (ScratchOf<Pack>& row : rows_) row.resize(static_cast<std::size_t>(ex.most_labels));
    }
    // All messages are one.
    void start(const Messages<Ring>& messages) {
        Listening listening;
        for (std::size_t k = 0; k < phi_cells_; ++k, listening.spend(64)) phi_[k] = Ring::kOne;
        for (Int v = 0; v < ex_->variables; ++v) {
            double* phi = phi_.data() + lane(v);
            for (std::size_t x = 0; x < ex_->labels(v); ++x) phi[x * kLanes] = messages.phi(v)[x];
        }
        for (Int b = 0; b < lanes_->variable_blocks; ++b)
            for (Int j = 0; j < block_[b].degree; ++j, listening.spend(64 * kLanes * block_[b].labels))
                for (std::size_t x = 0; x < block_[b].labels; ++x)
                    store(place(block_[b], j) + x * kLanes, load(phi_.data() + block_[b].phi + x * kLanes));
    }

    double* n() const { return n_.data(); }
    // The next place of a variable that is not taken: where n of label 0 is. kLanes further is label 1.
    std::size_t take(Int v) {
        const Block& block = block_[lanes_->block_of(v)];
        return block.n + static_cast<std::size_t>(taken_[v]++) * block.step +
               static_cast<std::size_t>(lanes_->lane_of(v));
    }
    // b_v of a variable that is tame, in the same manner.
    const double* belief(Int v) const { return b_.data() + lane(v); }

    void cavities(Messages<Ring>& messages, Int b) {
        const Block& block = block_[b];
        const bool tame = messages.tame(block.degree);
        switch (tame ? block.degree : -1) {
            case 0: return few<0>(block);
            case 1: return few<1>(block);
            case 2: return few<2>(block);
            case 3: return few<3>(block);
            case 4: return few<4>(block);
            default: return many(messages, block, !tame);
        }
    }

private:
    struct Block {
        std::size_t labels;
        Int degree;
        std::size_t phi, n;  // [labels, lanes]; n of the first place
        std::size_t step;    // from place to place
    };

    std::size_t lane(Int v) const {
        return block_[lanes_->block_of(v)].phi + static_cast<std::size_t>(lanes_->lane_of(v));
    }
    double* place(const Block& block, Int j) const {
        return n_.data() + block.n + static_cast<std::size_t>(j) * block.step;
    }

    // Up to four messages: all in registers, a label at a time.
    template <Int kDegree>
    void few(const Block& block) {
        const double* phi = phi_.data() + block.phi;
        double *b = b_.data() + block.phi, *n[kDegree + 1];
        for (Int j = 0; j < kDegree; ++j) n[j] = place(block, j);
        for (std::size_t x = 0; x < block.labels * kLanes; x += kLanes) {
            Pack row[kDegree + 1], after[kDegree + 1], before = load(phi + x);
            for (Int j = 0; j < kDegree; ++j) row[j] = load(n[j] + x);
            for (Int j = kDegree; j-- > 1;) after[j] = j + 1 < kDegree ? Ring::times(after[j + 1], row[j]) : row[j];
            for (Int j = 0; j < kDegree; ++j) {
                store(n[j] + x, j + 1 < kDegree ? Ring::times(before, after[j + 1]) : before);
                before = Ring::times(before, row[j]);
            }
            store(b + x, before);
        }
    }
    void many(Messages<Ring>& messages, const Block& block, bool scaled) {
        Pack *run = rows_[0].data(), *row = rows_[1].data();
        const auto m = [&](Int j) { return m_.data() + static_cast<std::size_t>(j) * block.labels * kLanes; };
        const auto include = [&](Int j) {
            for (std::size_t x = 0; x < block.labels; ++x) run[x] = Ring::times(run[x], load(m(j) + x * kLanes));
            if (scaled) messages.scale(run, block.labels);
        };
        for (std::size_t x = 0; x < block.labels; ++x) run[x] = load(phi_.data() + block.phi + x * kLanes);
        for (Int j = 0; j < block.degree; ++j) {
            double* n = place(block, j);
            for (std::size_t x = 0; x < block.labels; ++x) {
                store(m(j) + x * kLanes, load(n + x * kLanes));
                store(n + x * kLanes, run[x]);
            }
            include(j);
        }
        for (std::size_t x = 0; x < block.labels; ++x) {
            store(b_.data() + block.phi + x * kLanes, run[x]);
            run[x] = broadcast(Ring::kOne);
        }
        for (Int j = block.degree; j-- > 0;) {
            double* n = place(block, j);
            for (std::size_t x = 0; x < block.labels; ++x) row[x] = Ring::times(load(n + x * kLanes), run[x]);
            if (scaled) messages.scale(row, block.labels);
            for (std::size_t x = 0; x < block.labels; ++x) store(n + x * kLanes, row[x]);
            if (j > 0) include(j);
        }
    }

    const FactorExample* ex_ = nullptr;
    const Lanes* lanes_ = nullptr;
    ScratchOf<Block> block_;
    ScratchOf<Int> taken_;
    std::size_t phi_cells_ = 0;
    Scratch phi_, b_, n_, m_;
    ScratchOf<Pack> rows_[2];
};

}  // namespace chordal::CHORDAL_ISA
