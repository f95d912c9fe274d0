// The likelihood of a padded batch, and its derivatives (padded_calls.hpp).
#include "padded_tasks.hpp"

namespace chordal {
namespace {

// Sums over a block's sequences, of what they share.
struct Shared {
    double *start, *end, *table;
};

template <class T>
class Sums : PaddedTasks<T> {
public:
    explicit Sums(const PaddedChains<T>& chains) : PaddedTasks<T>(chains) {}

    Int value(T* out) {
        return each([&](ChainBlock& block, std::size_t task) {
            std::vector<double> log_z(cut_.size);
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            if (!sums(block, log_z)) return false;
            std::vector<double> gold(block.chains(), 0.0);
            if (x_.tags && !agreeing(block, gold)) return false;
            for (std::size_t c = 0; c < block.chains(); ++c) {
                note(block.sequence[c], log_z[c]);
                out[block.sequence[c]] = static_cast<T>(gold[c] - log_z[c]);
            }
            return true;
        });
    }

    Int gradient(const T* weight, const PaddedScores<T>& out, T* value) {
        return each_shared(out, [&](ChainBlock& block, std::size_t task, const Shared& shared) {
            clear(out, task);
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            std::vector<double> gold(block.chains(), 0.0), log_z(block.chains());
            if (value && x_.tags && !agreeing(block, gold)) return false;
            if (!add_marginals(block, weight, -1.0, out, shared, log_z)) return false;
            for (std::size_t c = 0; value && c < block.chains(); ++c)
                value[block.sequence[c]] = static_cast<T>(gold[c] - log_z[c]);
            if (!x_.tags) return true;
            add_gold(block, weight, out, shared);
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::unsure);
            return add_marginals(block, weight, 1.0, out, shared, log_z);
        });
    }

    Int curvature(const T* weight, const PaddedScores<const T>& direction,
                  const PaddedScores<T>& out, T* slope) {
        return each_shared(out, [&](ChainBlock& block, std::size_t task, const Shared& shared) {
            clear(out, task);
            for (std::size_t b = cut_.begin(task); b < cut_.end(task); ++b) slope[b] = T(0);
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            if (!add_curvature(block, weight, -1.0, direction, out, shared, slope)) return false;
            if (!x_.tags) return true;
            add_gold_slope(block, direction, slope);
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::unsure);
            return add_curvature(block, weight, 1.0, direction, out, shared, slope);
        });
    }

private:
    using PaddedTasks<T>::at;
    using PaddedTasks<T>::cut_;
    using PaddedTasks<T>::each;
    using PaddedTasks<T>::note;
    using PaddedTasks<T>::sums;
    using PaddedTasks<T>::x_;

    // The same, and sums of what all sequences share, into start, end and transitions.
    template <class Body>
    Int each_shared(const PaddedScores<T>& out, const Body& body) {
        const std::size_t L = x_.labels;
        const std::size_t size = 2 * L + (x_.tying == Tying::all ? L * L : 0);
        std::vector<double> sums(cut_.blocks * size, 0.0);
        const Int found = each([&](ChainBlock& block, std::size_t task) {
            double* own = sums.data() + task * size;
            return body(block, task, Shared{own, own + L, own + 2 * L});
        });
        std::vector<double> whole(size, 0.0);
        for (std::size_t task = 0; task < cut_.blocks; ++task)
            for (std::size_t k = 0; k < size; ++k) whole[k] += sums[task * size + k];
        for (std::size_t j = 0; j < L; ++j) {
            out.start[j] = static_cast<T>(whole[j]);
            out.end[j] = static_cast<T>(whole[L + j]);
        }
        if (x_.tying == Tying::all)
            for (std::size_t i = 0; i < L; ++i)
                for (std::size_t j = 0; j < L; ++j)
                    out.transitions(0, 0, i, j) = static_cast<T>(whole[(2 + i) * L + j]);
        return found;
    }
    // The tag of a variable if it was observed, else -1.
    Int tag(const ChainBlock& block, std::size_t c, Int v) const {
        const Int b = block.sequence[c], t = block.step[at(v)], tag = x_.tags(b, t);
        if (tag == x_.ignored) return -1;
        if (tag < 0 || tag >= static_cast<Int>(x_.labels))
            throw Misfit{Misfit::Of::tag, b, t, tag, 0.0};
        return tag;
    }
    // visit(variable, tag, tag before or -1) along a chain; false, perhaps after some, if one is not observed.
    template <class Visit>
    bool along(const ChainBlock& block, std::size_t c, Visit visit) const {
        Int before = -1;
        for (Int v = block.begin(c); v < block.end(c); ++v) {
            const Int now = tag(block, c, v);
            if (now < 0) return false;
            visit(v, at(now), before);
            before = now;
        }
        return true;
    }
    bool sure(const ChainBlock& block, std::size_t c) const {
        bool all = true;
        for (Int v = block.begin(c); v < block.end(c); ++v) all &= tag(block, c, v) >= 0;
        return all;
    }

    // Adds the score of the labellings that agree with the tags; `block` is gathered.
    bool agreeing(const ChainBlock& block, std::vector<double>& gold) const {
        bool unsure = false;
        const std::size_t L = x_.labels;
        for (std::size_t c = 0; c < block.chains(); ++c) {
            if (!sure(block, c)) {
                unsure = true;
                continue;
            }
            along(block, c, [&](Int v, std::size_t now, Int before) {
                gold[c] += block.unary[at(v) * L + now];
                if (before >= 0) gold[c] += block.tables[block.cell(c, v) + at(before) * L + now];
            });
        }
        if (!unsure) return true;
        ChainBlock held;
        const auto first = static_cast<std::size_t>(block.sequence.front());
        held.gather(x_, first, first + block.chains(), ChainBlock::Which::unsure);
        std::vector<double> log_z(held.chains());
        if (!sums(held, log_z)) return false;
        for (std::size_t c = 0; c < held.chains(); ++c)
            gold[static_cast<std::size_t>(held.sequence[c]) - first] = log_z[c];
        return true;
    }

    // Zeros where no step is, and where gradients of tables of steps go.
    void clear(const PaddedScores<T>& out, std::size_t task) const {
        for (std::size_t b = cut_.begin(task); b < cut_.end(task); ++b)
            for (std::size_t t = 0; t < x_.steps; ++t) {
                T* row = &out.emissions(b, t);
                const Int stride = out.emissions.stride[2];
                if (stride == 1)
                    std::fill(row, row + x_.labels, T(0));
                else
                    for (std::size_t j = 0; j < x_.labels; ++j) row[static_cast<Int>(j) * stride] = T(0);
            }
    }
    // Adds numbers in the shape of a block's scores.
    void add(const ChainBlock& block, const std::vector<double>& rows,
             const std::vector<double>& cells, const PaddedScores<T>& out,
             const Shared& shared) const {
        const std::size_t L = x_.labels;
        for (std::size_t c = 0; c < block.chains(); ++c)
            for (Int v = block.begin(c); v < block.end(c); ++v) {
                const double* row = rows.data() + at(v) * L;
                T* to = &out.emissions(block.sequence[c], block.step[at(v)]);
                const Int stride = out.emissions.stride[2];
                if (stride == 1)
                    for (std::size_t j = 0; j < L; ++j) to[j] += static_cast<T>(row[j]);
                else
                    for (std::size_t j = 0; j < L; ++j)
                        to[static_cast<Int>(j) * stride] += static_cast<T>(row[j]);
                if (v == block.begin(c))
                    for (std::size_t j = 0; j < L; ++j) shared.start[j] += row[j];
                if (v + 1 == block.end(c))
                    for (std::size_t j = 0; j < L; ++j) shared.end[j] += row[j];
            }
        block.each_table([&](std::size_t table, Int b, Int t) {
            const double* from = cells.data() + table * L * L;
            if (x_.tying == Tying::all) {
                for (std::size_t k = 0; k < L * L; ++k) shared.table[k] += from[k];
                return;
            }
            for (std::size_t i = 0; i < L; ++i)
                for (std::size_t j = 0; j < L; ++j)
                    out.transitions(b, t, i, j) += static_cast<T>(from[i * L + j]);
        });
    }
    std::vector<double> weights(const ChainBlock& block, const T* weight, double sign) const {
        std::vector<double> of(block.chains());
        for (std::size_t c = 0; c < of.size(); ++c)
            of[c] = sign * static_cast<double>(weight[block.sequence[c]]);
        return of;
    }
    // The block's scores are lost.
    bool add_marginals(ChainBlock& block, const T* weight, double sign, const PaddedScores<T>& out,
                       const Shared& shared, std::vector<double>& log_z) {
        if (block.chains() == 0) return true;
        const std::vector<double> of = weights(block, weight, sign);
        std::vector<double> cells(block.tables.size(), 0.0);
        log_z.resize(block.chains());
        const ChainBatch batch = block.batch();
        const Outcome outcome =
            CHORDAL_DISPATCH(marginals(batch, Domain::automatic, interrupted, of.data(),
                                       log_z.data(), block.unary.data(), cells.data()));
        if (outcome != Outcome::done) return false;
        for (std::size_t c = 0; c < block.chains(); ++c) note(block.sequence[c], log_z[c]);
        add(block, block.unary, cells, out, shared);
        return true;
    }
    void add_gold(const ChainBlock& block, const T* weight, const PaddedScores<T>& out,
                  const Shared& shared) const {
        const std::size_t L = x_.labels;
        for (std::size_t c = 0; c < block.chains(); ++c) {
            if (!sure(block, c)) continue;
            const Int b = block.sequence[c];
            const T w = weight[b];
            along(block, c, [&](Int v, std::size_t now, Int before) {
                const Int t = block.step[at(v)];
                out.emissions(b, t, now) += w;
                if (before < 0) {
                    shared.start[now] += static_cast<double>(w);
                } else if (x_.tying == Tying::all) {
                    shared.table[at(before) * L + now] += static_cast<double>(w);
                } else {
                    out.transitions(b, x_.tying == Tying::step ? t : 0, before, now) += w;
                }
                if (v + 1 == block.end(c)) shared.end[now] += static_cast<double>(w);
            });
        }
    }

    bool add_curvature(ChainBlock& block, const T* weight, double sign,
                       const PaddedScores<const T>& direction, const PaddedScores<T>& out,
                       const Shared& shared, T* slope) {
        if (block.chains() == 0) return true;
        std::vector<double> d_rows, d_cells, rows(block.unary.size());
        block.take(direction, d_rows, d_cells);
        std::vector<double> cells(block.tables.size(), 0.0), log_z(block.chains());
        const std::vector<double> of = weights(block, weight, sign);
        const ChainBatch batch = block.batch();
        const Outcome outcome = CHORDAL_DISPATCH(marginals_derivative(
            batch, Domain::automatic, interrupted, d_rows.data(), d_cells.data(), of.data(),
            log_z.data(), rows.data(), cells.data()));
        if (outcome != Outcome::done) return false;
        add(block, rows, cells, out, shared);
        for (std::size_t c = 0; c < block.chains(); ++c) {  // one by one: they may share a table
            note(block.sequence[c], log_z[c]);
            std::fill(cells.begin(), cells.end(), 0.0);
            const ChainBatch one = block.batch(c, 1);
            const Outcome ended =
                CHORDAL_DISPATCH(marginals(one, Domain::automatic, interrupted, nullptr,
                                           log_z.data(), rows.data(), cells.data()));
            if (ended != Outcome::done) return false;
            double sum = 0.0;
            for (std::size_t k = at(block.begin(c)) * x_.labels; k < at(block.end(c)) * x_.labels; ++k)
                sum += rows[k] * d_rows[k];
            for (std::size_t k = 0; k < cells.size(); ++k) sum += cells[k] * d_cells[k];
            slope[block.sequence[c]] += static_cast<T>(sign * sum);
        }
        return true;
    }
    void add_gold_slope(const ChainBlock& block, const PaddedScores<const T>& direction,
                        T* slope) const {
        std::vector<double> d_rows, d_cells;
        block.take(direction, d_rows, d_cells);
        const std::size_t L = x_.labels;
        for (std::size_t c = 0; c < block.chains(); ++c) {
            if (!sure(block, c)) continue;
            double sum = 0.0;
            along(block, c, [&](Int v, std::size_t now, Int before) {
                sum += d_rows[at(v) * L + now];
                if (before >= 0) sum += d_cells[block.cell(c, v) + at(before) * L + now];
            });
            slope[block.sequence[c]] += static_cast<T>(sum);
        }
    }
};

}  // namespace

template <class T>
Int padded_value(const PaddedChains<T>& chains, T* out) {
    return Sums<T>(chains).value(out);
}
template <class T>
Int padded_gradient(const PaddedChains<T>& chains, const T* weight, const PaddedScores<T>& out,
                    T* value) {
    return Sums<T>(chains).gradient(weight, out, value);
}
template <class T>
Int padded_curvature(const PaddedChains<T>& chains, const T* weight,
                     const PaddedScores<const T>& direction, const PaddedScores<T>& out, T* slope) {
    return Sums<T>(chains).curvature(weight, direction, out, slope);
}
template Int padded_value(const PaddedChains<float>&, float*);
template Int padded_gradient(const PaddedChains<float>&, const float*, const PaddedScores<float>&, float*);
template Int padded_curvature(const PaddedChains<float>&, const float*, const PaddedScores<const float>&,
                              const PaddedScores<float>&, float*);
template Int padded_value(const PaddedChains<double>&, double*);
template Int padded_gradient(const PaddedChains<double>&, const double*, const PaddedScores<double>&, double*);
template Int padded_curvature(const PaddedChains<double>&, const double*, const PaddedScores<const double>&,
                              const PaddedScores<double>&, double*);

}  // namespace chordal
