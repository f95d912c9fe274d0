// Messages along several edges at once, an edge per lane.
//
//   m_{c→b}(j) = ⊕_i ψ_c(i, j) ⊗ n_{a→c}(i),     m_{c→a}(i) = ⊕_j ψ_c(i, j) ⊗ n_{b→c}(j)
//
// for the edges c = (a, b) of a block, whose label counts agree; each cell of ψ is read once for both
// directions. Tables of a block lie next to each other cell by cell, [rows, columns, lanes]; one that all
// its edges share is kept once and broadcast. m of the sweep before is kept in the same way. What goes
// to and from the variables are rows of labels, transposed on the way: m is written over n, which is made
// anew from it.
//
// Edges are sorted by label counts, then by shared tables, then by the later end, so that what a block
// writes is soon read again: a variable is *ready* after the last block that has an edge of it. Cliques
// that fill no block are listed as `others`.
#pragma once

#include "messages.hpp"

namespace chordal::CHORDAL_ISA {

template <class Ring>
class EdgeBlocks {
public:
    Int blocks = 0;
    Int n_others = 0;

    // Without `side_by_side` all cliques are others.
    void open(const FactorBatch& g, const FactorExample& ex, RingTables<Ring>& tables, bool side_by_side) {
        ex_ = &ex;
        g_ = &g;
        tables_ = &tables;
        blocks = n_others = 0;
        others_.resize(static_cast<std::size_t>(ex.cliques));
        if (side_by_side)
            fill_blocks();
        else
            for (Int c = 0; c < ex.cliques; ++c) put_aside(c);
        find_ready();
        const std::size_t row = padded_of(ex.most_labels);
        for (ScratchOf<Pack>& side : sides_) side.resize(row);
    }
    Int other(Int k) const { return others_[k]; }

    // Calls f(v) for the variables that are ready after block b; b = -1: without any block.
    template <class F>
    void for_ready(Int b, F f) const {
        for (Int k = ready_begin_[b + 1]; k < ready_begin_[b + 2]; ++k) f(ready_[k]);
    }

    // New messages along all edges of a block, written over n; returns the largest step.
    double update(Messages<Ring>& messages, Int b)
        requires Ring::kSideBySide
    {
        const Block& block = block_[b];
        switch (block.rows == block.columns ? block.rows : 0) {
            case 2: return fixed<2>(messages, block);
            case 3: return fixed<3>(messages, block);
            case 4: return fixed<4>(messages, block);
            case 5: return fixed<5>(messages, block);
            case 6: return fixed<6>(messages, block);
            default: return renew(messages, block, sides(), block.rows, block.columns);
        }
    }
    // Tells the messages what the last m along the edges of all blocks are.
    void settle(Messages<Ring>& messages) const {
        for (Int b = 0; b < blocks; ++b)
            for (std::size_t k = 0; k < kLanes; ++k) {
                const Int first = ex_->places_of(block_[b].clique[k]);
                const double* m = m_.data() + block_[b].m + k;
                for (std::size_t i = 0; i < block_[b].rows; ++i, m += kLanes) messages.in(first)[i] = *m;
                for (std::size_t j = 0; j < block_[b].columns; ++j, m += kLanes) messages.in(first + 1)[j] = *m;
            }
    }

    // log Σ ψ_c ⊗ n ⊗ n of every edge of a block, without the table's shift, into [cliques].
    void totals(Messages<Ring>& messages, Int b, double* of_clique)
        requires Ring::kSideBySide
    {
        const Block& block = block_[b];
        const double* row[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) row[k] = messages.out_at(block.out[k]);
        const Sides x = sides();
        read(row, x, block.rows, block.columns);
        contract(block, x, block.rows, block.columns);
        Pack total = broadcast(Ring::kZero);
        for (std::size_t i = 0; i < block.rows; ++i) total = Ring::plus(total, x.to_first[i], x.from_first[i]);
        for (std::size_t k = 0; k < kLanes; ++k) of_clique[block.clique[k]] = messages.log_total(total[k]);
    }
    // Adds weight · b_c for every edge of a block to its table of results.
    void add(Messages<Ring>& messages, Int b, const double* log_total, double weight, double* results) const {
        const Block& block = block_[b];
        for (std::size_t k = 0; k < kLanes; ++k) {
            const Int c = block.clique[k];
            const double *first = messages.out_at(block.out[k]), *second = first + padded(block.rows);
            const double* cells = block.own ? cells_.data() + block.cells + k : tables_->cells(ex_->table(c));
            const std::size_t step = block.own ? kLanes : 1;
            const std::size_t row = block.own ? kLanes * block.columns : padded(block.columns);
            const double scale = weight * std::exp(-log_total[c]);
            double* to = results + g_->table_offsets[ex_->table(c)];
            for (std::size_t i = 0; i < block.rows; ++i, cells += row, to += block.columns) {
                const double factor = scale * first[i];
                for (std::size_t j = 0; j < block.columns; ++j)
                    to[j] += factor * second[j] * cells[step * j];
            }
        }
    }

private:
    static constexpr std::size_t kMostColumns = 5;  // of a table in registers

    struct Block {
        std::uint32_t rows, columns;  // labels of both ends
        bool own;                     // tables of its own, at `cells`
        std::size_t cells, m;         // [rows, columns, lanes] and [rows + columns, lanes]
        std::size_t out[kLanes];      // n of the first end; that of the second follows
        Int clique[kLanes];
    };

    // n of both ends and m of both ends, label by label.
    struct Sides {
        Pack *from_first, *from_second, *to_first, *to_second;
    };
    Sides sides() const { return {sides_[0].data(), sides_[1].data(), sides_[2].data(), sides_[3].data()}; }

    // With the label count known to the compiler, loops vanish and most stays in registers.
    template <std::size_t kLabels>
    double fixed(Messages<Ring>& messages, const Block& block) {
        Pack x[4][padded(kLabels)];
        return renew(messages, block, {x[0], x[1], x[2], x[3]}, kLabels, kLabels);
    }
    CHORDAL_INLINE double renew(Messages<Ring>& messages, const Block& block, const Sides& x, std::size_t rows,
                                std::size_t columns) {
        double *first[kLanes], *second[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) {
            first[k] = messages.out_at(block.out[k]);
            second[k] = first[k] + padded(rows);
        }
        read_side(first, rows, x.from_first);
        read_side(second, columns, x.from_second);
        contract(block, x, rows, columns);
        messages.vanished |= !Ring::normalise(x.to_first, rows, messages.wide) ||
                             !Ring::normalise(x.to_second, columns, messages.wide);
        Pack furthest = broadcast(0.0);
        const Pack damping = broadcast(messages.damping);
        double* old = m_.data() + block.m;
        CHORDAL_UNROLL
        for (std::size_t i = 0; i < rows; ++i)
            x.to_first[i] = Ring::move(old + i * kLanes, x.to_first[i], damping, furthest);
        old += rows * kLanes;
        CHORDAL_UNROLL
        for (std::size_t j = 0; j < columns; ++j)
            x.to_second[j] = Ring::move(old + j * kLanes, x.to_second[j], damping, furthest);
        write_side(x.to_first, rows, first);
        write_side(x.to_second, columns, second);
        return lane_max(furthest);
    }

    static CHORDAL_INLINE void read(const double* const (&first)[kLanes], const Sides& x, std::size_t rows,
                                    std::size_t columns) {
        const double* second[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) second[k] = first[k] + padded(rows);
        read_side(first, rows, x.from_first);
        read_side(second, columns, x.from_second);
    }
    static CHORDAL_INLINE void read_side(const double* const (&row)[kLanes], std::size_t labels, Pack* to) {
        CHORDAL_UNROLL
        for (std::size_t j = 0; j + 1 < labels; j += kLanes) {
            Pack x[kLanes];
            CHORDAL_UNROLL
            for (std::size_t k = 0; k < kLanes; ++k) x[k] = load(row[k] + j);
            transpose(x);
            CHORDAL_UNROLL
            for (std::size_t k = 0; k < kLanes; ++k) to[j + k] = x[k];
        }
        if (labels % kLanes == 1) to[labels - 1] = gather(row, labels - 1);
    }
    static CHORDAL_INLINE void write_side(const Pack* from, std::size_t labels, double* const (&row)[kLanes]) {
        CHORDAL_UNROLL
        for (std::size_t j = 0; j + 1 < labels; j += kLanes) {
            Pack x[kLanes];
            CHORDAL_UNROLL
            for (std::size_t k = 0; k < kLanes; ++k) x[k] = j + k < labels ? from[j + k] : broadcast(Ring::kZero);
            transpose(x);
            CHORDAL_UNROLL
            for (std::size_t k = 0; k < kLanes; ++k) store(row[k] + j, x[k]);
        }
        if (labels % kLanes == 1) scatter(from[labels - 1], row, labels - 1);  // zeros follow already
    }

    // Both directions, a few columns at a time.
    CHORDAL_INLINE void contract(const Block& block, const Sides& x, std::size_t rows, std::size_t columns) {
        if (block.own)
            in_parts<true>(cells_.data() + block.cells, x, rows, columns);
        else
            in_parts<false>(tables_->cells(ex_->table(block.clique[0])), x, rows, columns);
    }
    template <bool kOwn>
    CHORDAL_INLINE void in_parts(const double* cells, const Sides& x, std::size_t rows, std::size_t columns) {
        static_assert(kMostColumns == 5);
        const std::size_t parts = (columns + kMostColumns - 1) / kMostColumns;
        CHORDAL_UNROLL
        for (std::size_t part = 0, begin = 0; part < parts; ++part) {
            const std::size_t end = (part + 1) * columns / parts;
            switch (end - begin) {
                case 1: part_of<kOwn, 1>(cells, x, rows, columns, begin); break;
                case 2: part_of<kOwn, 2>(cells, x, rows, columns, begin); break;
                case 3: part_of<kOwn, 3>(cells, x, rows, columns, begin); break;
                case 4: part_of<kOwn, 4>(cells, x, rows, columns, begin); break;
                default: part_of<kOwn, 5>(cells, x, rows, columns, begin);
            }
            begin = end;
        }
    }
    template <bool kOwn, std::size_t kColumns>
    CHORDAL_INLINE void part_of(const double* cells, const Sides& x, std::size_t rows, std::size_t columns,
                                std::size_t begin) {
        const std::size_t step = kOwn ? kLanes : 1;
        const std::size_t row = kOwn ? kLanes * columns : padded(columns);
        const Pack zero = broadcast(Ring::kZero);
        Pack second[kColumns], total[kColumns];
        CHORDAL_UNROLL
        for (std::size_t j = 0; j < kColumns; ++j) {
            second[j] = x.from_second[begin + j];
            total[j] = zero;
        }
        cells += step * begin;
        CHORDAL_UNROLL
        for (std::size_t i = 0; i < rows; ++i) {
            const Pack n = x.from_first[i];
            Pack sum = begin == 0 ? zero : x.to_first[i];
            CHORDAL_UNROLL
            for (std::size_t j = 0; j < kColumns; ++j) {
                const Pack cell = kOwn ? load(cells + i * row + j * kLanes) : broadcast(cells[i * row + j]);
                sum = Ring::plus(sum, cell, second[j]);
                total[j] = Ring::plus(total[j], cell, n);
            }
            x.to_first[i] = sum;
        }
        CHORDAL_UNROLL
        for (std::size_t j = 0; j < kColumns; ++j) x.to_second[begin + j] = total[j];
    }

    void put_aside(Int c) {
        tables_->need(ex_->table(c));
        others_[n_others++] = c;
    }
    Int end_of(Int c, Int k) const { return ex_->variable(ex_->places_of(c) + k); }
    Int labels_of(Int c, Int k) const { return static_cast<Int>(ex_->labels(end_of(c, k))); }

    // A counting sort of the edges that keeps the order of equal keys.
    template <class Key>
    void sort(Int range, Key key) {
        count_.resize(static_cast<std::size_t>(range) + 1);
        for (Int k = 0; k <= range; ++k) count_[k] = 0;
        for (Int k = 0; k < edges_; ++k) ++count_[key(edge_[k]) + 1];
        for (Int k = 0; k < range; ++k) count_[k + 1] += count_[k];
        for (Int k = 0; k < edges_; ++k) sorted_[count_[key(edge_[k])]++] = edge_[k];
        for (Int k = 0; k < edges_; ++k) edge_[k] = sorted_[k];
    }
    void sort_edges() {
        const FactorExample& ex = *ex_;
        edge_.resize(static_cast<std::size_t>(ex.cliques));
        sorted_.resize(static_cast<std::size_t>(ex.cliques));
        edges_ = 0;
        Int low = static_cast<Int>(g_->n_tables), high = 0;
        for (Int c = 0; c < ex.cliques; ++c) {
            if (ex.order_of(c) != 2) {
                put_aside(c);
                continue;
            }
            edge_[edges_++] = c;
            low = ex.table(c) < low ? ex.table(c) : low;
            high = ex.table(c) > high ? ex.table(c) : high;
        }
        sort(ex.variables, [&](Int c) {
            const Int a = end_of(c, 0), b = end_of(c, 1);
            return a > b ? a : b;
        });
        if ((high - low + 1) * static_cast<Int>(kLanes) <= edges_)
            sort(high - low + 1, [&](Int c) { return ex.table(c) - low; });
        sort(ex.most_labels + 1, [&](Int c) { return labels_of(c, 1); });
        sort(ex.most_labels + 1, [&](Int c) { return labels_of(c, 0); });
    }
    // How many edges from k on, kLanes at most, agree in what `key` says.
    template <class Key>
    Int alike(Int k, Key key) const {
        Int n = 1;
        while (n < static_cast<Int>(kLanes) && k + n < edges_ && key(edge_[k + n]) == key(edge_[k])) ++n;
        return n;
    }
    void fill_blocks() {
        constexpr Int lanes = kLanes;
        sort_edges();
        block_.resize(static_cast<std::size_t>(edges_ / lanes));
        std::size_t cells = 0, rows = 0;
        for (Int k = 0; k < edges_;) {
            const bool shared = alike(k, [&](Int c) { return ex_->table(c); }) == lanes;
            const bool shape = shared || (alike(k, [&](Int c) { return labels_of(c, 0); }) == lanes &&
                                          alike(k, [&](Int c) { return labels_of(c, 1); }) == lanes);
            if (!shape) {
                put_aside(edge_[k++]);
                continue;
            }
            Block& block = block_[blocks++];
            describe(block, k);
            block.own = !shared;
            block.cells = cells;
            block.m = rows;
            if (block.own) cells += kLanes * block.rows * block.columns;
            rows += kLanes * (block.rows + block.columns);
            k += lanes;
        }
        cells_.resize(cells);
        m_.resize(rows);
        for (std::size_t k = 0; k < rows; ++k) m_[k] = Ring::kOne;
        for (Int b = 0; b < blocks; ++b)
            if (block_[b].own)
                fill_cells(block_[b]);
            else
                tables_->need(ex_->table(block_[b].clique[0]));
    }
    void describe(Block& block, Int k) const {
        block.rows = static_cast<std::uint32_t>(labels_of(edge_[k], 0));
        block.columns = static_cast<std::uint32_t>(labels_of(edge_[k], 1));
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const Int c = edge_[k + static_cast<Int>(lane)], first = ex_->places_of(c);
            block.clique[lane] = c;
            block.out[lane] = ex_->out(first);
        }
    }
    void fill_cells(const Block& block) {
        constexpr std::size_t kTogether = 5;
        const std::size_t cells = std::size_t{block.rows} * block.columns;
        const double* from[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k)
            from[k] = g_->tables + g_->table_offsets[ex_->table(block.clique[k])];
        double* to = cells_.data() + block.cells;
        const Pack none = broadcast(-kInfinity), most = broadcast(kInfinity);
        Pack highest = none, lowest = most;
        for (std::size_t cell = 0; cell < cells; ++cell) {
            const Pack x = gather(from, cell);
            highest = maximum(highest, x);
            lowest = minimum(lowest, where_equal(x, none, most, x));
            store(to + cell * kLanes, x);
        }
        double shift[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) {
            const Int t = ex_->table(block.clique[k]);
            tables_->note(t, highest[k], lowest[k]);
            shift[k] = tables_->shift(t);
        }
        for (std::size_t cell = 0; cell < cells; cell += kTogether) {
            Pack x[kTogether];
            for (std::size_t j = 0; j < kTogether; ++j)
                x[j] = load(to + (cell + j < cells ? cell + j : cell) * kLanes) - load(shift);
            Ring::from_scores(x);
            for (std::size_t j = 0; j < kTogether && cell + j < cells; ++j) store(to + (cell + j) * kLanes, x[j]);
        }
    }

    // A counting sort of variables by their last block.
    void find_ready() {
        const FactorExample& ex = *ex_;
        last_.resize(static_cast<std::size_t>(ex.variables));
        ready_.resize(static_cast<std::size_t>(ex.variables));
        ready_begin_.resize(static_cast<std::size_t>(blocks) + 2);
        for (Int v = 0; v < ex.variables; ++v) last_[v] = -1;
        for (Int b = 0; b < blocks; ++b)
            for (const Int c : block_[b].clique) last_[end_of(c, 0)] = last_[end_of(c, 1)] = b;
        // Those of block b begin at b + 1; those without a block come first.
        count_.resize(static_cast<std::size_t>(blocks) + 2);
        for (Int b = 0; b < blocks + 2; ++b) count_[b] = 0;
        for (Int v = 0; v < ex.variables; ++v) ++count_[last_[v] + 1];
        Int at = 0;
        for (Int b = 0; b < blocks + 1; ++b) {
            ready_begin_[b] = at;
            at += count_[b];
            count_[b] = ready_begin_[b];
        }
        ready_begin_[blocks + 1] = at;
        for (Int v = 0; v < ex.variables; ++v) ready_[count_[last_[v] + 1]++] = v;
    }

    const FactorBatch* g_ = nullptr;
    const FactorExample* ex_ = nullptr;
    RingTables<Ring>* tables_ = nullptr;
    ScratchOf<Block> block_;
    Scratch cells_, m_;
    ScratchOf<Pack> sides_[4];
    ScratchOf<Int> others_, edge_, sorted_, count_, last_, ready_, ready_begin_;
    Int edges_ = 0;
};

}  // namespace chordal::CHORDAL_ISA
