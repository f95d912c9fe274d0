// The best tags of a padded batch (padded_calls.hpp), in the batch's own type.
#include "max_plus.hpp"
#include "padded_tasks.hpp"

namespace chordal {
namespace {

template <class T>
using Room = CHORDAL_ISA::ScratchOf<T>;

// What one or two sequences need, gathered.
template <class T>
struct Gathered {
    Room<T> rows, tables;
    Room<Int> steps;
    Room<std::int32_t> best;
    Room<std::uint32_t> list;
};

template <class T>
class Viterbi : PaddedTasks<T> {
public:
    // A thread is woken in the time of some million cells.
    explicit Viterbi(const PaddedChains<T>& chains) : PaddedTasks<T>(chains, 3'000'000) {
        constexpr std::size_t kPack = 32 / sizeof(T);
        stride_ = (x_.labels + kPack - 1) / kPack * kPack;
        refuse_ends(x_);
        if (x_.tying != Tying::all) return;
        shared_.resize((2 * x_.labels + 2) * stride_);
        take_table(0, 0, shared_.data());
        flip(shared_.data(), shared_.data() + x_.labels * stride_);
        limits(shared_.data(), shared_.data() + 2 * x_.labels * stride_);
    }

    Int viterbi(T* score, const Strided<Int, 2>& tags) {
        struct Nothing {};
        return this->template each<Nothing>([&](Nothing&, std::size_t task) {
            Gathered<T> room;  // of this thread
            const std::size_t last = cut_.end(task);
            for (std::size_t b = cut_.begin(task); b < last;) {
                const std::size_t count = x_.tying == Tying::all && b + 1 < last ? 2 : 1;
                if (!answer(b, count, room, score, tags)) return false;
                b += count;
            }
            return true;
        });
    }

private:
    using PaddedTasks<T>::at;
    using PaddedTasks<T>::cut_;
    using PaddedTasks<T>::note;
    using PaddedTasks<T>::x_;
    static constexpr T kNever = -std::numeric_limits<T>::infinity();

    bool answer(std::size_t first, std::size_t count, Gathered<T>& room, T* score,
                const Strided<Int, 2>& tags) {
        MaxPlusChains<T> chains{};
        chains.labels = x_.labels;
        chains.stride = stride_;
        chains.chains = count;
        room.rows.resize(count * x_.steps * stride_);
        room.steps.resize(count * x_.steps);
        room.best.resize(count * x_.steps);
        room.list.resize(stride_);
        chains.list = room.list.data();
        for (std::size_t c = 0; c < count; ++c) {
            chains.rows[c] = room.rows.data() + c * x_.steps * stride_;
            chains.best[c] = room.best.data() + c * x_.steps;
            chains.length[c] = take_rows(first + c, room.steps.data() + c * x_.steps, chains.rows[c]);
        }
        take_tables(first, chains, room);
        if (CHORDAL_DISPATCH(best_paths(chains, interrupted)) != Outcome::done) return false;
        for (std::size_t c = 0; c < count; ++c) {
            const Int* steps = room.steps.data() + c * x_.steps;
            const bool possible = chains.length[c] == 0 || chains.best[c][0] >= 0;
            for (std::size_t k = 0; possible && k < chains.length[c]; ++k)
                tags(first + c, steps[k]) = chains.best[c][k];
            const double total =
                possible ? score_of(first + c, chains.length[c], steps, chains.best[c]) : kForbidden;
            score[first + c] = static_cast<T>(total);
            note(static_cast<Int>(first + c), std::max<double>(total, score[first + c]));  // T may overflow
        }
        return true;
    }

    // The scores of a sequence's steps that are on; how many there are.
    std::size_t take_rows(std::size_t b, Int* steps, T* rows) const {
        std::size_t length = 0;
        for (std::size_t t = 0; t < x_.steps; ++t)
            if (x_.on(b, t)) steps[length++] = static_cast<Int>(t);
        for (std::size_t k = 0; k < length; ++k) {
            const T* from = &x_.emissions(b, steps[k]);
            const Int apart = x_.emissions.stride[2];
            T* row = rows + k * stride_;
            if (apart == 1)
                std::copy(from, from + x_.labels, row);
            else
                for (std::size_t j = 0; j < x_.labels; ++j) row[j] = from[static_cast<Int>(j) * apart];
            std::fill(row + x_.labels, row + stride_, kNever);
            if (unfit(row)) refuse(b, steps[k], row);
            if (k == 0) add(x_.start, row);
            if (k + 1 == length) add(x_.end, row);
        }
        return length;
    }
    void add(const T* scores, T* row) const {
        for (std::size_t j = 0; j < x_.labels; ++j) row[j] += scores[j];
    }
    void take_table(std::size_t b, Int t, T* to) const {
        const T* from = &x_.transitions(b, t);
        const Int *apart = x_.transitions.stride, L = static_cast<Int>(x_.labels);
        for (Int i = 0; i < L; ++i) {
            T* row = to + at(i) * stride_;
            for (Int j = 0; j < L; ++j) row[j] = from[i * apart[2] + j * apart[3]];
            std::fill(row + x_.labels, row + stride_, kNever);
            if (unfit(row)) refuse_table(x_, static_cast<Int>(b), t);
        }
    }
    void flip(const T* table, T* to) const {
        for (std::size_t j = 0; j < x_.labels; ++j) {
            for (std::size_t i = 0; i < x_.labels; ++i) to[j * stride_ + i] = table[i * stride_ + j];
            std::fill(to + j * stride_ + x_.labels, to + (j + 1) * stride_, kNever);
        }
    }
    // The highest and the lowest score of each row.
    void limits(const T* table, T* to) const {
        std::fill(to, to + 2 * stride_, kNever);
        for (std::size_t i = 0; i < x_.labels; ++i) {
            const auto ends = std::minmax_element(table + i * stride_, table + i * stride_ + x_.labels);
            to[i] = *ends.second;
            to[stride_ + i] = *ends.first;
        }
    }
    void take_tables(std::size_t b, MaxPlusChains<T>& chains, Gathered<T>& room) const {
        const std::size_t cells = x_.labels * stride_;
        if (x_.tying == Tying::all) {
            chains.table = shared_.data();
            chains.flipped = shared_.data() + cells;
            chains.high = shared_.data() + 2 * cells;
            chains.low = chains.high + stride_;
            return;
        }
        const bool each_step = x_.tying == Tying::step;
        room.tables.resize((each_step ? std::max<std::size_t>(1, chains.length[0]) : 1) * cells);
        chains.table = room.tables.data();
        chains.step = each_step ? cells : 0;
        if (!each_step) return take_table(b, 0, room.tables.data());
        for (std::size_t k = 1; k < chains.length[0]; ++k)
            take_table(b, room.steps[k], room.tables.data() + k * cells);
    }

    double score_of(std::size_t b, std::size_t length, const Int* steps, const std::int32_t* best) const {
        if (length == 0) return 0.0;
        double total = double(x_.start[best[0]]) + double(x_.end[best[length - 1]]);
        const T *emissions = &x_.emissions(b), *tables = &x_.transitions(b);
        const Int *apart = x_.emissions.stride, *into = x_.transitions.stride;
        for (std::size_t k = 0; k < length; ++k) {
            total += emissions[steps[k] * apart[1] + best[k] * apart[2]];
            if (k > 0) total += tables[steps[k] * into[1] + best[k - 1] * into[2] + best[k] * into[3]];
        }
        return total;
    }
    bool unfit(const T* row) const {
        int bad = 0;
        for (std::size_t j = 0; j < stride_; ++j) bad |= !(row[j] < std::numeric_limits<T>::infinity());
        return bad != 0;
    }
    [[noreturn]] void refuse(std::size_t b, Int t, const T* row) const {
        std::size_t j = 0;
        while (row[j] < std::numeric_limits<T>::infinity()) ++j;
        throw Misfit{Misfit::Of::emission, static_cast<Int>(b), t, static_cast<Int>(j), double(row[j])};
    }

    std::size_t stride_;
    Room<T> shared_;  // the table of all, and flipped
};

}  // namespace

template <class T>
Int padded_viterbi(const PaddedChains<T>& chains, T* score, const Strided<Int, 2>& tags) {
    return Viterbi<T>(chains).viterbi(score, tags);
}
template Int padded_viterbi(const PaddedChains<float>&, float*, const Strided<Int, 2>&);
template Int padded_viterbi(const PaddedChains<double>&, double*, const Strided<Int, 2>&);

}  // namespace chordal
