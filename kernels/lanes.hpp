// Which variables and which edges of an example go side by side, one per lane.
//
// The variables of a block have equally many labels and equally many places. Each lane has a stretch of the
// graph for itself: in a lattice, the neighbours to the right of a block are a block again, and so are those
// below. Its last lanes may be empty.
//
// An edge block is kLanes edges whose label counts agree. It is *whole* if its first ends are a block of
// variables, lane by lane, and its second ends too. The remaining edges are put together by label counts,
// then by shared tables, then by the later end. Cliques that are in no block are `others`.
#pragma once

#include "factors.hpp"

namespace chordal::CHORDAL_ISA {

// Sorts by a key in [0, range); what has equal keys keeps its order.
class CountingSort {
public:
    template <class Key>
    void operator()(const ScratchOf<Int>& items, Int size, Int range, Key key) {
        count_.resize(static_cast<std::size_t>(range) + 1);
        sorted_.resize(static_cast<std::size_t>(size));
        for (Int k = 0; k <= range; ++k) count_[k] = 0;
        for (Int i = 0; i < size; ++i, listening_.spend(8)) ++count_[key(items[i]) + 1];
        if (size == 0 || count_[key(items[0]) + 1] == size) return;
        for (Int k = 0; k < range; ++k) count_[k + 1] += count_[k];
        for (Int i = 0; i < size; ++i, listening_.spend(64)) sorted_[count_[key(items[i])]++] = items[i];
        for (Int i = 0; i < size; ++i) items[i] = sorted_[i];
    }

private:
    Listening listening_;
    ScratchOf<Int> count_, sorted_;
};

class Lanes {
public:
    struct Class {  // blocks of variables that are alike
        std::size_t labels;
        Int degree, blocks;
    };
    Int classes = 0, variable_blocks = 0, edge_blocks = 0, others = 0;

    void open(const FactorExample& ex) {
        ex_ = &ex;
        classes = variable_blocks = edge_blocks = others = 0;
        place_variables();
        edge_.resize(static_cast<std::size_t>(ex.cliques));
        clique_.resize(static_cast<std::size_t>(ex.cliques));
        whole_.resize(static_cast<std::size_t>(ex.cliques) / kLanes);
        other_.resize(static_cast<std::size_t>(ex.cliques));
        edges_ = 0;
        for (Int c = 0; c < ex.cliques; ++c)
            if (ex.order_of(c) == 2)
                edge_[edges_++] = c;
            else
                other_[others++] = c;
        take_whole();
        take_remaining();
    }

    const Class& of_class(Int k) const { return class_[k]; }
    Int block_of(Int v) const { return block_of_[v]; }
    Int lane_of(Int v) const { return lane_of_[v]; }
    Int clique(Int block, std::size_t lane) const { return clique_[block * kWidth + static_cast<Int>(lane)]; }
    bool whole(Int block) const { return whole_[block]; }
    Int other(Int k) const { return other_[k]; }
    // The variable at one end of an edge.
    Int end(Int c, Int k) const { return ex_->variable(ex_->places_of(c) + k); }

private:
    static constexpr Int kWidth = kLanes;

    Int labels(Int v) const { return static_cast<Int>(ex_->labels(v)); }

    void place_variables() {
        const auto variables = static_cast<std::size_t>(ex_->variables);
        order_.resize(variables);
        block_of_.resize(variables);
        lane_of_.resize(variables);
        class_.resize(variables);
        for (Int v = 0; v < ex_->variables; ++v) order_[v] = v;
        sort_(order_, ex_->variables, ex_->largest_degree + 1, [&](Int v) { return ex_->degree(v); });
        sort_(order_, ex_->variables, ex_->most_labels + 1, [&](Int v) { return labels(v); });
        for (Int begin = 0, end; begin < ex_->variables; begin = end) {
            const Int v = order_[begin];
            for (end = begin + 1; end < ex_->variables; ++end)
                if (labels(order_[end]) != labels(v) || ex_->degree(order_[end]) != ex_->degree(v)) break;
            const Int blocks = (end - begin + kWidth - 1) / kWidth;
            for (Int i = begin, lane = 0; i < end; ++lane)
                for (Int k = 0; k < blocks && i < end; ++k, ++i) {
                    block_of_[order_[i]] = variable_blocks + k;
                    lane_of_[order_[i]] = lane;
                }
            class_[classes++] = {ex_->labels(v), ex_->degree(v), blocks};
            variable_blocks += blocks;
        }
    }

    void take_whole() {
        sort_(edge_, edges_, kWidth, [&](Int c) { return lane_of(end(c, 0)); });
        sort_(edge_, edges_, variable_blocks, [&](Int c) { return block_of(end(c, 1)); });
        sort_(edge_, edges_, variable_blocks, [&](Int c) { return block_of(end(c, 0)); });
        Int remaining = 0;
        for (Int i = 0; i < edges_;)
            if (is_whole(i))
                take(i, true);
            else
                edge_[remaining++] = edge_[i++];
        edges_ = remaining;
    }
    bool is_whole(Int i) const {
        for (Int k = 0; k < kWidth && i + k < edges_; ++k)
            if (lane_of(end(edge_[i + k], 0)) != k || lane_of(end(edge_[i + k], 1)) != k) return false;
        return alike(i, [&](Int c) { return block_of(end(c, 0)); }) &&
               alike(i, [&](Int c) { return block_of(end(c, 1)); });
    }
    void take_remaining() {
        Int low = ex_->cliques > 0 ? ex_->table(0) : 0, high = low;
        for (Int i = 0; i < edges_; ++i) {
            const Int t = ex_->table(edge_[i]);
            low = t < low ? t : low;
            high = t > high ? t : high;
        }
        sort_(edge_, edges_, ex_->variables, [&](Int c) {
            const Int a = end(c, 0), b = end(c, 1);
            return a > b ? a : b;
        });
        if ((high - low + 1) * kWidth <= edges_)
            sort_(edge_, edges_, high - low + 1, [&](Int c) { return ex_->table(c) - low; });
        sort_(edge_, edges_, ex_->most_labels + 1, [&](Int c) { return labels(end(c, 1)); });
        sort_(edge_, edges_, ex_->most_labels + 1, [&](Int c) { return labels(end(c, 0)); });
        for (Int i = 0; i < edges_;)
            if (alike(i, [&](Int c) { return labels(end(c, 0)); }) && alike(i, [&](Int c) { return labels(end(c, 1)); }))
                take(i, false);
            else
                other_[others++] = edge_[i++];
    }
    // Whether a block's worth of edges, from i on, agree in what `key` says.
    template <class Key>
    bool alike(Int i, Key key) const {
        if (i + kWidth > edges_) return false;
        for (Int k = 1; k < kWidth; ++k)
            if (key(edge_[i + k]) != key(edge_[i])) return false;
        return true;
    }
    void take(Int& i, bool whole) {
        for (Int k = 0; k < kWidth; ++k) clique_[edge_blocks * kWidth + k] = edge_[i++];
        whole_[edge_blocks++] = whole;
    }

    const FactorExample* ex_ = nullptr;
    CountingSort sort_;
    Int edges_ = 0;
    ScratchOf<Class> class_;
    ScratchOf<Int> order_, block_of_, lane_of_, edge_, clique_, other_;
    ScratchOf<bool> whole_;
};

}  // namespace chordal::CHORDAL_ISA
