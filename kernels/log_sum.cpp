// Columns of scores turned into conditional probabilities, with their log-sums.
//
//   m(s) = log Σ_r exp ψ(r, s)       P(r | s) = exp(ψ(r, s) − m(s))
//
// table [rows, columns] holds ψ and then P, message [columns] gets m. Columns are done four (or two)
// side by side. Hazard: scores are taken relative to the largest of their column, so nothing
// overflows; what is 709 below it becomes exactly zero. A column of −inf becomes zeros, its m −inf.
#include "log_sum.hpp"

#include "patience.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(void condition(double* table, std::int64_t rows, std::int64_t columns,
                                 double* message, bool (*interrupted)());)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {
namespace {

// The first `width` lanes; the others are −inf and are not written.
template <bool kWhole>
CHORDAL_INLINE Pack read(const double* p, std::size_t width) {
    if constexpr (kWhole) return load(p);
    double lane[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k) lane[k] = k < width ? p[k] : -kInfinity;
    return load(lane);
}
template <bool kWhole>
CHORDAL_INLINE void write(double* p, Pack x, std::size_t width) {
    if constexpr (kWhole) {
        store(p, x);
        return;
    }
    double lane[kLanes];
    store(lane, x);
    for (std::size_t k = 0; k < width; ++k) p[k] = lane[k];
}

// A largest score of −inf is replaced, so that −inf − (−inf) does not arise.
CHORDAL_INLINE Pack finite(Pack x) { return maximum(x, broadcast(-std::numeric_limits<double>::max())); }

template <bool kWhole>
CHORDAL_INLINE void columns_of(double* table, std::int64_t rows, std::int64_t columns,
                               std::size_t width, double* message) {
    Pack most = broadcast(-kInfinity);
    for (std::int64_t r = 0; r < rows; ++r)
        most = maximum(most, read<kWhole>(table + r * columns, width));
    const Pack base = finite(most);
    Pack sum = broadcast(0.0);
    for (std::int64_t r = 0; r < rows; ++r) {
        const Pack x = exp_nonpositive(read<kWhole>(table + r * columns, width) - base);
        sum += x;
        write<kWhole>(table + r * columns, x, width);
    }
    double total[kLanes], top[kLanes];
    store(total, sum);
    store(top, most);
    for (std::size_t k = 0; k < width; ++k) {
        message[k] = top[k] == -kInfinity ? -kInfinity : top[k] + std::log(total[k]);
        total[k] = total[k] > 0.0 ? 1.0 / total[k] : 0.0;
    }
    for (std::size_t k = width; k < kLanes; ++k) total[k] = 0.0;
    const Pack inverse = load(total);
    for (std::int64_t r = 0; r < rows; ++r)
        write<kWhole>(table + r * columns, read<kWhole>(table + r * columns, width) * inverse, width);
}

// One column by itself: its cells are neighbours.
void single_column(double* table, std::size_t rows, double* message, Patience& patience) {
    constexpr std::size_t step = kLanes, block = std::size_t{1} << 12;
    const std::size_t whole = rows / step * step;
    Pack most = broadcast(-kInfinity);
    for (std::size_t from = 0; from < whole; from += block) {
        const std::size_t to = from + block < whole ? from + block : whole;
        for (std::size_t r = from; r < to; r += step) most = maximum(most, load(table + r));
        patience.spend(block);
    }
    most = maximum(most, read<false>(table + whole, rows - whole));
    const double top = lane_max(most);
    const Pack base = finite(broadcast(top));
    Pack sum = broadcast(0.0);
    for (std::size_t from = 0; from < whole; from += block) {
        const std::size_t to = from + block < whole ? from + block : whole;
        for (std::size_t r = from; r < to; r += step) {
            const Pack x = exp_nonpositive(load(table + r) - base);
            sum += x;
            store(table + r, x);
        }
        patience.spend(4 * block);
    }
    const Pack x = exp_nonpositive(read<false>(table + whole, rows - whole) - base);
    write<false>(table + whole, x, rows - whole);
    const double total = lane_sum(sum + x);
    *message = top == -kInfinity ? -kInfinity : top + std::log(total);
    const double inverse = total > 0.0 ? 1.0 / total : 0.0;
    for (std::size_t from = 0; from < rows; from += block) {
        const std::size_t to = from + block < rows ? from + block : rows;
        for (std::size_t r = from; r < to; ++r) table[r] *= inverse;
        patience.spend(block);
    }
}

}  // namespace

void condition(double* table, std::int64_t rows, std::int64_t columns, double* message,
               bool (*interrupted)()) {
    Patience patience(interrupted);
    if (columns == 1) return single_column(table, static_cast<std::size_t>(rows), message, patience);
    constexpr auto step = static_cast<std::int64_t>(kLanes);
    std::int64_t s = 0;
    for (; s + step <= columns; s += step) {
        columns_of<true>(table + s, rows, columns, kLanes, message + s);
        patience.spend(8 * static_cast<std::size_t>(rows * step));
    }
    if (s < columns)
        columns_of<false>(table + s, rows, columns, static_cast<std::size_t>(columns - s), message + s);
}

}  // namespace chordal::CHORDAL_ISA
