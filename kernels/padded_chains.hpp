// A padded batch of chains, as neural networks make them, and how some of it becomes a ChainBatch.
//
// Scores are [sequence, step, tag], with any strides, float or double; a mask says which steps are there.
// A chain is the steps of a sequence that are on, wherever they are: what lies between is left out, and
// so is its score. Start and end scores belong to the first and last step that are on.
// Transitions are one table, one per sequence, or one per step: [sequence, step, i, j] leads into the step.
// `tags` may hold one tag per step; `ignored` stands for a tag that was not observed.
//
// A few sequences at a time are gathered into doubles, in the cache, for the kernels of chain_calls.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "chain_batch.hpp"

namespace chordal {

using Int = std::int64_t;

template <class T, std::size_t N>
struct Strided {
    T* data = nullptr;
    Int stride[N] = {};

    explicit operator bool() const { return data != nullptr; }
    template <class... Index>
    T& operator()(Index... index) const {
        const Int at[] = {static_cast<Int>(index)...};
        Int offset = 0;
        for (std::size_t k = 0; k < sizeof...(index); ++k) offset += at[k] * stride[k];
        return data[offset];
    }
};

// Scores, or numbers in their shape: directions and derivatives.
template <class T>
struct PaddedScores {
    Strided<T, 3> emissions;
    T *start = nullptr, *end = nullptr;  // [tags]
    Strided<T, 4> transitions;           // strides of sequences and steps are 0 where they share
};

enum class Tying { all, sequence, step };

// What is wrong with a score, a tag or a sum of scores, and where; -1 where sequences or steps share a score.
struct Misfit {
    enum class Of { emission, start, end, transition, tag, sum } of;
    Int sequence, step, tag;
    double value;
    Int from = -1;  // the tag before, of a transition
};

template <class T>
struct PaddedChains : PaddedScores<const T> {
    std::size_t sequences = 0, steps = 0, labels = 0;
    Tying tying = Tying::all;
    Strided<const bool, 2> mask;
    Strided<const Int, 2> tags;
    Int ignored = -100;
    std::size_t threads = 1;

    bool on(std::size_t b, std::size_t t) const { return !mask || mask(b, t); }
};

// Throws if a start or end score is not below +inf.
template <class T>
void refuse_ends(const PaddedChains<T>& x) {
    for (const auto of : {Misfit::Of::start, Misfit::Of::end}) {
        const T* scores = of == Misfit::Of::start ? x.start : x.end;
        for (std::size_t j = 0; j < x.labels; ++j)
            if (!(scores[j] < std::numeric_limits<T>::infinity()))
                throw Misfit{of, -1, -1, static_cast<Int>(j), scores[j]};
    }
}
// The same of the transitions of a sequence into a step.
template <class T>
void refuse_table(const PaddedChains<T>& x, Int b, Int t) {
    for (std::size_t i = 0; i < x.labels; ++i)
        for (std::size_t j = 0; j < x.labels; ++j) {
            const T value = x.transitions(b, t, i, j);
            if (!(value < std::numeric_limits<T>::infinity()))
                throw Misfit{Misfit::Of::transition, x.tying == Tying::all ? -1 : b,
                             x.tying == Tying::step ? t : -1, static_cast<Int>(j), value,
                             static_cast<Int>(i)};
        }
}

// Sequences first .. last - 1, gathered. Memory is kept for the next ones.
class ChainBlock {
public:
    enum class Which { all, unsure };  // unsure: those with tags that were not observed, held to the others

    std::vector<double> unary, tables;
    std::vector<Int> sequence;  // of each chain
    std::vector<Int> step;      // of each variable

    template <class T>
    void gather(const PaddedChains<T>& from, std::size_t first, std::size_t last, Which which) {
        labels_ = from.labels;
        tying_ = from.tying;
        sequence.clear();
        step.clear();
        variable_offsets_.assign(1, 0);
        for (std::size_t b = first; b < last; ++b) {
            if (which == Which::unsure && !unsure(from, b)) continue;
            sequence.push_back(static_cast<Int>(b));
            for (std::size_t t = 0; t < from.steps; ++t)
                if (from.on(b, t)) step.push_back(static_cast<Int>(t));
            variable_offsets_.push_back(static_cast<Int>(step.size()));
        }
        number();
        take(from, unary, tables);
        check(from);
        if (which == Which::unsure) hold(from);
    }
    // Other numbers in the shape of the scores.
    template <class T>
    void take(const PaddedScores<const T>& from, std::vector<double>& rows,
              std::vector<double>& cells) const {
        rows.resize(step.size() * labels_);
        for (std::size_t c = 0; c < chains(); ++c)
            for (Int v = begin(c); v < end(c); ++v) {
                double* row = rows.data() + static_cast<std::size_t>(v) * labels_;
                take_row(from.emissions, sequence[c], step[static_cast<std::size_t>(v)], row);
                if (v == begin(c)) add_row(from.start, row);
                if (v + 1 == end(c)) add_row(from.end, row);
            }
        const std::size_t L = labels_;
        cells.resize(n_tables_ * L * L);
        each_table([&](std::size_t table, Int b, Int t) {
            double* to = cells.data() + table * L * L;
            const T* at = &from.transitions(b, t);
            for (std::size_t i = 0; i < L; ++i)
                for (std::size_t j = 0; j < L; ++j)
                    to[i * L + j] = at[static_cast<Int>(i) * from.transitions.stride[2] +
                                       static_cast<Int>(j) * from.transitions.stride[3]];
        });
    }

    std::size_t chains() const { return sequence.size(); }
    Int begin(std::size_t chain) const { return variable_offsets_[chain]; }
    Int end(std::size_t chain) const { return variable_offsets_[chain + 1]; }
    // Where the table into a variable begins.
    std::size_t cell(std::size_t chain, Int v) const {
        const auto clique = static_cast<std::size_t>(clique_offsets_[chain] + v - begin(chain) - 1);
        return static_cast<std::size_t>(table_of_clique_[clique]) * labels_ * labels_;
    }
    // visit(table, sequence, step) for every table; both are 0 where all share it.
    template <class Visit>
    void each_table(Visit visit) const {
        if (tying_ == Tying::all) return visit(std::size_t{0}, Int{0}, Int{0});
        for (std::size_t c = 0; c < chains(); ++c) {
            if (tying_ == Tying::sequence) {
                visit(c, sequence[c], Int{0});
                continue;
            }
            for (Int v = begin(c) + 1; v < end(c); ++v)
                visit(cell(c, v) / (labels_ * labels_), sequence[c], step[static_cast<std::size_t>(v)]);
        }
    }
    // The chains, or one of them.
    ChainBatch batch() const { return batch(0, chains()); }
    ChainBatch batch(std::size_t chain, std::size_t count) const {
        return {unary.data(),          state_offsets_.data(),   variable_offsets_.data() + chain,
                tables.data(),         table_offsets_.data(),   table_of_clique_.data(),
                clique_offsets_.data() + chain, count};
    }

private:
    template <class T>
    static bool unsure(const PaddedChains<T>& from, std::size_t b) {
        for (std::size_t t = 0; t < from.steps; ++t)
            if (from.on(b, t) && from.tags(b, t) == from.ignored) return true;
        return false;
    }
    void number() {
        const std::size_t n = step.size();
        state_offsets_.resize(n + 1);
        for (std::size_t v = 0; v <= n; ++v) state_offsets_[v] = static_cast<Int>(v * labels_);
        clique_offsets_.assign(1, 0);
        table_of_clique_.clear();
        for (std::size_t c = 0; c < chains(); ++c) {
            for (Int v = begin(c) + 1; v < end(c); ++v)
                table_of_clique_.push_back(static_cast<std::int32_t>(
                    tying_ == Tying::all        ? 0
                    : tying_ == Tying::sequence ? c
                                                : table_of_clique_.size()));
            clique_offsets_.push_back(static_cast<Int>(table_of_clique_.size()));
        }
        n_tables_ = tying_ == Tying::all        ? 1
                    : tying_ == Tying::sequence ? chains()
                                                : table_of_clique_.size();
        table_offsets_.resize(n_tables_ + 1);
        for (std::size_t k = 0; k <= n_tables_; ++k)
            table_offsets_[k] = static_cast<Int>(k * labels_ * labels_);
    }
    template <class T>
    void take_row(const Strided<const T, 3>& from, Int b, Int t, double* to) const {
        const T* at = &from(b, t);
        const Int stride = from.stride[2];
        if (stride == 1)
            for (std::size_t j = 0; j < labels_; ++j) to[j] = at[j];
        else
            for (std::size_t j = 0; j < labels_; ++j) to[j] = at[static_cast<Int>(j) * stride];
    }
    template <class T>
    void add_row(const T* from, double* to) const {
        for (std::size_t j = 0; j < labels_; ++j) to[j] += from[j];
    }
    // Scores are numbers below +inf; the sum of a row's parts is looked at, and names its step.
    template <class T>
    void check(const PaddedChains<T>& from) const {
        const double* x = unary.data();
        int bad = 0;
        for (std::size_t k = 0; k < unary.size(); ++k)
            bad |= !(x[k] < std::numeric_limits<double>::infinity());
        for (std::size_t k = 0; k < tables.size(); ++k)
            bad |= 2 * !(tables[k] < std::numeric_limits<double>::infinity());
        if (bad == 0) return;
        for (std::size_t c = 0; c < chains(); ++c)
            for (Int v = begin(c); v < end(c); ++v)
                for (std::size_t j = 0; j < labels_; ++j) {
                    const Int t = step[static_cast<std::size_t>(v)];
                    const double value = from.emissions(sequence[c], t, j);
                    if (!(value < std::numeric_limits<double>::infinity()))
                        throw Misfit{Misfit::Of::emission, sequence[c], t, static_cast<Int>(j), value};
                }
        refuse_ends(from);
        each_table([&](std::size_t, Int b, Int t) { refuse_table(from, b, t); });
    }
    // Tags that were observed forbid the others.
    template <class T>
    void hold(const PaddedChains<T>& from) {
        for (std::size_t c = 0; c < chains(); ++c)
            for (Int v = begin(c); v < end(c); ++v) {
                const Int tag = from.tags(sequence[c], step[static_cast<std::size_t>(v)]);
                if (tag == from.ignored) continue;
                double* row = unary.data() + static_cast<std::size_t>(v) * labels_;
                for (std::size_t j = 0; j < labels_; ++j)
                    if (static_cast<Int>(j) != tag) row[j] = -std::numeric_limits<double>::infinity();
            }
    }

    std::size_t labels_ = 0, n_tables_ = 0;
    Tying tying_ = Tying::all;
    std::vector<Int> variable_offsets_, state_offsets_, clique_offsets_, table_offsets_;
    std::vector<std::int32_t> table_of_clique_;
};

}  // namespace chordal
