// The edges' side of messages that all go at once: edges side by side, as lanes.hpp has them.
//
//   m_{c→b}(j) = ⊕_i ψ_c(i, j) ⊗ n_{a→c}(i),     m_{c→a}(i) = ⊕_j ψ_c(i, j) ⊗ n_{b→c}(j)
//
// for the edges c = (a, b) of a block; each cell of ψ is read once for both directions. Tables of a block
// lie next to each other cell by cell, [rows, columns, lanes]; one that all its edges share is kept once
// and broadcast. m of the sweep before is kept in the same way.
//
// n is kept by variables (variable_blocks.hpp) and m written over it: in packs if the block is whole, else
// lane by lane. A block of variables is *ready* after the last block that has an edge of it.
#pragma once

#include "variable_blocks.hpp"

namespace chordal::CHORDAL_ISA {

template <class Ring>
class EdgeBlocks {
public:
    Int blocks = 0;

    void open(const Scores& g, const FactorExample& ex, RingTables<Ring>& tables) {
        ex_ = &ex;
        g_ = &g;
        tables_ = &tables;
        lanes_.open(ex);
        variables_.open(ex, lanes_);
        make_blocks();
        find_ready();
        for (ScratchOf<Pack>& side : sides_) side.resize(static_cast<std::size_t>(ex.most_labels));
    }
    // All messages are one.
    void start(Messages<Ring>& messages) {
        variables_.start(messages);
        for (std::size_t k = 0; k < m_cells_; ++k) m_[k] = Ring::kOne;
        for_other_places([&](Int p) { messages.start(p); });
    }

    // Sends every message once, also out of time: rows hold both kinds on the way. Returns the largest step.
    double sweep(Messages<Ring>& messages, Interruption& patience) {
        double furthest = 0.0;
        for_other_places([&](Int p) { fetch(messages, p); });
        for_other_places([&](Int p) {
            if (messages.failed() || patience.stopped) return;
            const double step = messages.update(p);
            furthest = step > furthest ? step : furthest;
            put(messages.in(p), p);
            patience.now(64 * static_cast<std::size_t>(ex_->order_of(ex_->clique(p))));
        });
        furthest_ = broadcast(furthest);
        make_ready(messages, -1);
        for (Int b = 0; b < blocks && !messages.failed() && !patience.stopped; ++b) {
            update(messages, block_[b]);
            make_ready(messages, b);
            patience.now(2 * 64 * kLanes);
        }
        return lane_max(furthest_);
    }
    // Tells the messages what was sent last, to all variables or to those that are not tame.
    void settle(Messages<Ring>& messages, bool all) const {
        for_other_places([&](Int p) { fetch(messages, p); });
        for (Int b = 0; b < blocks; ++b)
            for (std::size_t k = 0; k < kLanes; ++k)
                for (Int end = 0; end < 2; ++end) {
                    const Int p = ex_->places_of(lanes_.clique(b, k)) + end, v = ex_->variable(p);
                    if (!all && messages.tame(ex_->degree(v))) continue;
                    const double* m = m_.data() + block_[b].m + (end == 0 ? 0 : block_[b].rows * kLanes);
                    to_row(m + k, ex_->labels(v), messages.in(p));
                    fetch(messages, p);
                }
    }
    // b_v of a variable that is tame.
    void belief(Int v, double* to) const { to_row(variables_.belief(v), ex_->labels(v), to); }

    // Calls f(c) for the cliques that are in no block.
    template <class F>
    void for_others(F f) const {
        for (Int k = 0; k < lanes_.others; ++k) f(lanes_.other(k));
    }
    // log Σ ψ_c ⊗ n ⊗ n of every edge of a block, without the table's shift, into [cliques].
    void totals(Messages<Ring>& messages, Int b, double* of_clique) {
        const Block& block = block_[b];
        const Sides x = sides();
        read_side(block, 0, block.rows, x.from_first);
        read_side(block, 1, block.columns, x.from_second);
        contract(block, x, block.rows, block.columns);
        Pack total = broadcast(Ring::kZero);
        for (std::size_t i = 0; i < block.rows; ++i) total = Ring::plus(total, x.to_first[i], x.from_first[i]);
        for (std::size_t k = 0; k < kLanes; ++k) of_clique[lanes_.clique(b, k)] = messages.log_total(total[k]);
    }
    // Adds weight · b_c for every edge of a block to its table of results.
    void add(Int b, const double* log_total, double weight, double* results) const {
        const Block& block = block_[b];
        const std::size_t step = block.own ? kLanes : 1;
        const std::size_t row = block.own ? kLanes * block.columns : padded(block.columns);
        for (std::size_t k = 0; k < kLanes; ++k) {
            const Int c = lanes_.clique(b, k);
            const double *first = lane(block, 0, k), *second = lane(block, 1, k);
            const double* cells = tables_of(block) + (block.own ? k : 0);
            const double scale = weight * std::exp(-log_total[c]);
            double* to = results + g_->table_offsets[ex_->table(c)];
            for (std::size_t i = 0; i < block.rows; ++i, cells += row, to += block.columns) {
                const double factor = scale * first[i * kLanes];
                for (std::size_t j = 0; j < block.columns; ++j)
                    to[j] += factor * second[j * kLanes] * cells[step * j];
            }
        }
    }

private:
    static constexpr std::size_t kMostColumns = 5;  // of a table in registers

    struct Block {
        std::uint32_t rows, columns;  // labels of both ends
        bool own, whole;
        std::size_t cells;   // [rows, columns, lanes] if its tables are its own, else the table
        std::size_t m;       // [rows + columns, lanes]
        std::size_t end[2];  // n of both ends: of lane 0 if it is whole, else [lanes] in `scattered_`
    };

    // n of both ends and m of both ends, label by label.
    struct Sides {
        Pack *from_first, *from_second, *to_first, *to_second;
    };
    Sides sides() const { return {sides_[0].data(), sides_[1].data(), sides_[2].data(), sides_[3].data()}; }

    // n of one end of one edge: where label 0 is. kLanes further is label 1.
    double* lane(const Block& block, std::size_t end, std::size_t k) const {
        const std::size_t at = block.end[end] + k;
        return variables_.n() + (block.whole ? at : static_cast<std::size_t>(scattered_[at]));
    }
    static void to_row(const double* lane, std::size_t labels, double* row) {
        for (std::size_t x = 0; x < padded(labels); ++x) row[x] = x < labels ? lane[x * kLanes] : Ring::kZero;
    }
    void fetch(Messages<Ring>& messages, Int p) const {
        to_row(variables_.n() + at_[p], ex_->labels(ex_->variable(p)), messages.out(p));
    }
    void put(const double* m, Int p) const {
        double* n = variables_.n() + at_[p];
        for (std::size_t x = 0; x < ex_->labels(ex_->variable(p)); ++x) n[x * kLanes] = m[x];
    }
    template <class F>
    void for_other_places(F f) const {
        for_others([&](Int c) {
            for (Int p = ex_->places_of(c); p < ex_->places_of(c + 1); ++p) f(p);
        });
    }

    // New messages along all edges of a block, written over n.
    void update(Messages<Ring>& messages, const Block& block) {
        switch (block.rows == block.columns ? block.rows : 0) {
            case 2: return fixed<2>(messages, block);
            case 3: return fixed<3>(messages, block);
            case 4: return fixed<4>(messages, block);
            case 5: return fixed<5>(messages, block);
            case 6: return fixed<6>(messages, block);
            default: return renew(messages, block, sides(), block.rows, block.columns);
        }
    }
    // With the label count known to the compiler, loops vanish and most stays in registers.
    template <std::size_t kLabels>
    void fixed(Messages<Ring>& messages, const Block& block) {
        Pack x[4][kLabels];
        renew(messages, block, {x[0], x[1], x[2], x[3]}, kLabels, kLabels);
    }
    CHORDAL_INLINE void renew(Messages<Ring>& messages, const Block& block, const Sides& x, std::size_t rows,
                              std::size_t columns) {
        read_side(block, 0, rows, x.from_first);
        read_side(block, 1, columns, x.from_second);
        contract(block, x, rows, columns);
        messages.scale(x.to_first, rows, x.to_second, columns);
        const Pack damping = broadcast(messages.damping);
        Pack furthest = furthest_;
        double* old = m_.data() + block.m;
        CHORDAL_UNROLL
        for (std::size_t i = 0; i < rows; ++i)
            x.to_first[i] = Ring::move(old + i * kLanes, x.to_first[i], damping, furthest);
        old += rows * kLanes;
        CHORDAL_UNROLL
        for (std::size_t j = 0; j < columns; ++j)
            x.to_second[j] = Ring::move(old + j * kLanes, x.to_second[j], damping, furthest);
        furthest_ = furthest;
        write_side(block, 0, x.to_first, rows);
        write_side(block, 1, x.to_second, columns);
    }

    CHORDAL_INLINE void read_side(const Block& block, std::size_t end, std::size_t labels, Pack* to) const {
        if (block.whole) {
            const double* n = lane(block, end, 0);
            CHORDAL_UNROLL
            for (std::size_t x = 0; x < labels; ++x) to[x] = load(n + x * kLanes);
            return;
        }
        const double* n[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) n[k] = lane(block, end, k);
        CHORDAL_UNROLL
        for (std::size_t x = 0; x < labels; ++x) to[x] = gather(n, x * kLanes);
    }
    CHORDAL_INLINE void write_side(const Block& block, std::size_t end, const Pack* from, std::size_t labels) {
        if (block.whole) {
            double* n = lane(block, end, 0);
            CHORDAL_UNROLL
            for (std::size_t x = 0; x < labels; ++x) store(n + x * kLanes, from[x]);
            return;
        }
        double* n[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) n[k] = lane(block, end, k);
        CHORDAL_UNROLL
        for (std::size_t x = 0; x < labels; ++x) scatter(from[x], n, x * kLanes);
    }

    const double* tables_of(const Block& block) const {
        return block.own ? cells_.data() + block.cells : tables_->cells(static_cast<Int>(block.cells));
    }
    // Both directions, a few columns at a time.
    CHORDAL_INLINE void contract(const Block& block, const Sides& x, std::size_t rows, std::size_t columns) {
        if (block.own)
            in_parts<true>(tables_of(block), x, rows, columns);
        else
            in_parts<false>(tables_of(block), x, rows, columns);
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

    void make_ready(Messages<Ring>& messages, Int b) {
        for (Int k = ready_begin_[b + 1]; k < ready_begin_[b + 2]; ++k) variables_.cavities(messages, ready_[k]);
    }

    void make_blocks() {
        blocks = lanes_.edge_blocks;
        block_.resize(static_cast<std::size_t>(blocks));
        at_.resize(static_cast<std::size_t>(ex_->places));
        scattered_.resize(static_cast<std::size_t>(ex_->places));
        std::size_t cells = 0, scattered = 0;
        m_cells_ = 0;
        for (Int b = 0; b < blocks; ++b) {
            const Int c = lanes_.clique(b, 0);
            Block& block = block_[b];
            block.rows = static_cast<std::uint32_t>(ex_->labels(lanes_.end(c, 0)));
            block.columns = static_cast<std::uint32_t>(ex_->labels(lanes_.end(c, 1)));
            block.whole = lanes_.whole(b);
            block.own = !shares_table(b);
            block.cells = block.own ? cells : static_cast<std::size_t>(ex_->table(c));
            block.m = m_cells_;
            cells += block.own ? kLanes * block.rows * block.columns : 0;
            m_cells_ += kLanes * (block.rows + block.columns);
            take_places(b, scattered);
        }
        for_other_places([&](Int p) { take(p); });
        for_others([&](Int c) { tables_->need(ex_->table(c)); });
        cells_.resize(cells);
        m_.resize(m_cells_);
        for (Int b = 0; b < blocks; ++b)
            if (block_[b].own)
                fill_cells(b);
            else
                tables_->need(static_cast<Int>(block_[b].cells));
    }
    bool shares_table(Int b) const {
        for (std::size_t k = 1; k < kLanes; ++k)
            if (ex_->table(lanes_.clique(b, k)) != ex_->table(lanes_.clique(b, 0))) return false;
        return true;
    }
    // Blocks that are whole come first: they find the same places free in all lanes.
    void take_places(Int b, std::size_t& scattered) {
        for (Int end = 0; end < 2; ++end) {
            for (std::size_t k = 0; k < kLanes; ++k) take(ex_->places_of(lanes_.clique(b, k)) + end);
            block_[b].end[end] = scattered;
            if (block_[b].whole)
                block_[b].end[end] = static_cast<std::size_t>(at_[ex_->places_of(lanes_.clique(b, 0)) + end]);
            else
                for (std::size_t k = 0; k < kLanes; ++k)
                    scattered_[scattered++] = at_[ex_->places_of(lanes_.clique(b, k)) + end];
        }
    }
    void take(Int p) { at_[p] = static_cast<Int>(variables_.take(ex_->variable(p))); }

    void fill_cells(Int b) {
        constexpr std::size_t kTogether = 5;
        const Block& block = block_[b];
        const std::size_t cells = std::size_t{block.rows} * block.columns;
        Int table[kLanes];
        const double* from[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) {
            table[k] = ex_->table(lanes_.clique(b, k));
            from[k] = g_->tables + g_->table_offsets[table[k]];
        }
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
            tables_->note(table[k], highest[k], lowest[k]);
            shift[k] = tables_->shift(table[k]);
        }
        for (std::size_t cell = 0; cell < cells; cell += kTogether) {
            Pack x[kTogether];
            for (std::size_t j = 0; j < kTogether; ++j)
                x[j] = load(to + (cell + j < cells ? cell + j : cell) * kLanes) - load(shift);
            Ring::from_scores(x);
            for (std::size_t j = 0; j < kTogether && cell + j < cells; ++j) store(to + (cell + j) * kLanes, x[j]);
        }
    }

    // Sorts blocks of variables by the last block that has an edge of them; -1: none has.
    void find_ready() {
        const Int size = lanes_.variable_blocks;
        last_.resize(static_cast<std::size_t>(size));
        ready_.resize(static_cast<std::size_t>(size));
        ready_begin_.resize(static_cast<std::size_t>(blocks) + 2);
        for (Int v = 0; v < size; ++v) {
            ready_[v] = v;
            last_[v] = -1;
        }
        for (Int b = 0; b < blocks; ++b)
            for (std::size_t k = 0; k < kLanes; ++k)
                for (Int end = 0; end < 2; ++end) last_[lanes_.block_of(lanes_.end(lanes_.clique(b, k), end))] = b;
        sort_(ready_, size, blocks + 1, [&](Int v) { return last_[v] + 1; });
        for (Int b = -1, k = 0; b <= blocks; ++b) {
            ready_begin_[b + 1] = k;
            while (k < size && last_[ready_[k]] == b) ++k;
        }
    }

    const Scores* g_ = nullptr;
    const FactorExample* ex_ = nullptr;
    RingTables<Ring>* tables_ = nullptr;
    Lanes lanes_;
    VariableBlocks<Ring> variables_;
    CountingSort sort_;
    ScratchOf<Block> block_;
    Pack furthest_ = {};
    std::size_t m_cells_ = 0;
    Scratch cells_, m_;
    ScratchOf<Pack> sides_[4];
    ScratchOf<Int> at_, scattered_;  // where n of a place is; the same for blocks that are not whole
    ScratchOf<Int> last_, ready_, ready_begin_;
};

}  // namespace chordal::CHORDAL_ISA
