// A padded batch of chains (padded_chains.hpp), in one call and on several threads:
//
//   value       v(b) = log Σ of the labellings that agree with the tags − log Z;  without tags, − log Z
//   gradient    Σ_b w(b) ∂v(b): the marginals among labellings that agree, less those among all
//   curvature   Σ_b w(b) ∂²v(b) · direction, and ∂v(b) · direction, for a second derivative
//   viterbi, k_best, sample
//
// The batch is cut into blocks by its size alone, and sums are taken block by block, in order: the number
// of threads changes no digit.
#include <algorithm>
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>

#include "binding.hpp"
#include "chain_calls.hpp"
#include "padded_chains.hpp"
#include "parallel.hpp"

namespace chordal {
namespace {

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

// Sums over a block's sequences, of what they share.
struct Shared {
    double *start, *end, *table;
};

template <class T>
class Batch {
public:
    Batch(const PaddedChains<T>& chains, std::size_t threads)
        : x_(chains), cut_(chains.sequences, chains.labels), threads_(small() ? 1 : threads) {}

    // The first sequence without any allowed labelling, or -1; -2 after Ctrl-C.
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

    // `value` may be null: `value` above, for little more than the gradient takes.
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

    Int viterbi(T* score, const Strided<Int, 2>& tags) {
        return each([&](ChainBlock& block, std::size_t task) {
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            std::vector<double> best(block.chains());
            std::vector<std::int32_t> labels(block.step.size());
            const ChainBatch batch = block.batch();
            const Outcome outcome = CHORDAL_DISPATCH(
                best_labelling(batch, interrupted, best.data(), labels.data()));
            if (outcome != Outcome::done) return false;
            for (std::size_t c = 0; c < block.chains(); ++c) {
                const Int b = block.sequence[c];
                note(b, best[c]);
                score[b] = static_cast<T>(best[c]);
                for (Int v = block.begin(c); v < block.end(c); ++v)
                    tags(b, block.step[at(v)]) = labels[at(v)];
            }
            return true;
        });
    }

    Int k_best(std::size_t k, const Strided<T, 2>& score, const Strided<Int, 3>& tags) {
        return each([&](ChainBlock& block, std::size_t task) {
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            std::vector<double> best(block.chains() * k);
            const std::size_t n = block.step.size();
            std::vector<std::int32_t> labels(n * k);
            if (chordal::k_best(block.batch(), k, n, best.data(), labels.data()) != Outcome::done)
                return false;
            for (std::size_t c = 0; c < block.chains(); ++c) {
                const Int b = block.sequence[c];
                note(b, best[c * k]);
                for (std::size_t r = 0; r < k; ++r) {
                    score(b, r) = static_cast<T>(best[c * k + r]);
                    if (best[c * k + r] == kForbidden) continue;  // fewer labellings than k
                    for (Int v = block.begin(c); v < block.end(c); ++v)
                        tags(b, r, block.step[at(v)]) = labels[r * n + at(v)];
                }
            }
            return true;
        });
    }

    Int sample(std::size_t samples, const Strided<const double, 3>& uniform,
               const Strided<Int, 3>& tags) {
        return each([&](ChainBlock& block, std::size_t task) {
            block.gather(x_, cut_.begin(task), cut_.end(task), ChainBlock::Which::all);
            std::vector<double> log_z(block.chains());
            if (!sums(block, log_z)) return false;
            const std::size_t n = block.step.size();
            std::vector<double> chance(n * samples);
            std::vector<std::int32_t> labels(n * samples);
            each_draw(block, samples, [&](std::size_t s, Int b, std::size_t v) {
                chance[s * n + v] = uniform(s, b, block.step[v]);
            });
            const ChainBatch batch = block.batch();
            const Outcome outcome =
                CHORDAL_DISPATCH(sample(batch, Domain::automatic, interrupted, chance.data(),
                                        samples, n, labels.data()));
            if (outcome != Outcome::done) return false;
            for (std::size_t c = 0; c < block.chains(); ++c) note(block.sequence[c], log_z[c]);
            each_draw(block, samples, [&](std::size_t s, Int b, std::size_t v) {
                tags(s, b, block.step[v]) = labels[s * n + v];
            });
            return true;
        });
    }

private:
    static std::size_t at(Int v) { return static_cast<std::size_t>(v); }
    // Starting a thread takes longer than so much work.
    bool small() const { return x_.sequences * x_.steps * x_.labels * x_.labels < 100'000; }

    template <class Body>
    Int each(const Body& body) {
        std::vector<ChainBlock> blocks(std::max<std::size_t>(1, threads_));
        infeasible_ = static_cast<Int>(x_.sequences);
        const bool done = in_parallel(cut_.blocks, threads_, [&](std::size_t worker, std::size_t task) {
            return body(blocks[worker], task);
        });
        if (!done) return -2;
        return infeasible_ < static_cast<Int>(x_.sequences) ? infeasible_.load() : -1;
    }
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
    // visit(sample, sequence, variable)
    template <class Visit>
    void each_draw(const ChainBlock& block, std::size_t samples, Visit visit) const {
        for (std::size_t s = 0; s < samples; ++s)
            for (std::size_t c = 0; c < block.chains(); ++c)
                for (Int v = block.begin(c); v < block.end(c); ++v) visit(s, block.sequence[c], at(v));
    }
    void note(Int sequence, double score) {
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

    const PaddedChains<T>& x_;
    Cut cut_;
    std::size_t threads_;
    std::atomic<Int> infeasible_{0};
};

std::string place_of(const Misfit& misfit) {
    return "sequence " + std::to_string(misfit.sequence) + ", step " + std::to_string(misfit.step);
}

// Runs a kernel without the GIL and turns its outcome into Python's errors.
template <class Kernel>
Int run(Kernel kernel) {
    Int found;
    try {
        nb::gil_scoped_release release;
        found = kernel();
    } catch (const Misfit& misfit) {
        std::string what;
        if (misfit.of == Misfit::Of::tag)
            what = "tags: " + place_of(misfit) + " is " + std::to_string(misfit.tag) +
                   ", which is no tag";
        else if (misfit.sequence >= 0)
            what = "emissions: " + place_of(misfit) + ", tag " + std::to_string(misfit.tag) +
                   (std::isnan(misfit.value) ? " is nan" : " is +inf") +
                   "; scores must be numbers below +inf";
        else
            what = "transitions: a start, end or transition score is nan or +inf; scores must be "
                   "numbers below +inf";
        throw nb::value_error(what.c_str());
    }
    if (found == -2) throw nb::python_error();
    return found;
}

template <class T, std::size_t N>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<N>, nb::device::cpu>;
template <class T>
using Row = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T, std::size_t N, class A>
Strided<T, N> strided(const A& array) {
    Strided<T, N> view;
    view.data = array.data();
    for (std::size_t k = 0; k < N; ++k) view.stride[k] = array.stride(k);
    return view;
}

// In Python: PaddedScores32 and PaddedScores64. Transitions have a stride of 0 over what shares them.
template <class T>
struct BoundPaddedScores : PaddedScores<T> {
    Array<T, 3> held;
    Row<T> held_start, held_end;
    Array<T, 4> held_transitions;

    BoundPaddedScores(Array<T, 3> emissions, Row<T> start, Row<T> end, Array<T, 4> transitions)
        : held(emissions), held_start(start), held_end(end), held_transitions(transitions) {
        const std::size_t L = emissions.shape(2);
        require(start.size() == L && end.size() == L, "start and end must have an entry for every tag");
        require(transitions.shape(2) == L && transitions.shape(3) == L,
                "transitions must have a row and a column for every tag");
        for (std::size_t k = 0; k < 2; ++k)
            require(transitions.shape(k) == 1 || transitions.shape(k) == emissions.shape(k),
                    "transitions must be for all, for each sequence or for each step");
        this->emissions = strided<T, 3>(emissions);
        this->start = start.data();
        this->end = end.data();
        this->transitions = strided<T, 4>(transitions);
        for (std::size_t k = 0; k < 2; ++k)
            if (transitions.shape(k) == 1) this->transitions.stride[k] = 0;
    }
};

template <class T>
void bind(nb::module_& m, const char* scores_name, const char* parts_name, const char* chains_name) {
    using Scores = BoundPaddedScores<const T>;
    using Parts = BoundPaddedScores<T>;
    struct Chains : PaddedChains<T> {
        nb::object scores;
        std::optional<Array<const bool, 2>> held_mask;
        std::optional<Array<const Int, 2>> held_tags;
        std::size_t threads = 1;
    };
    nb::class_<Scores>(m, scores_name, "Scores of a padded batch, to be read.")
        .def(nb::init<Array<const T, 3>, Row<const T>, Row<const T>, Array<const T, 4>>(),
             nb::kw_only(), nb::arg("emissions"), nb::arg("start"), nb::arg("end"),
             nb::arg("transitions"));
    nb::class_<Parts>(m, parts_name, "Numbers in the shape of such scores, to be written.")
        .def(nb::init<Array<T, 3>, Row<T>, Row<T>, Array<T, 4>>(), nb::kw_only(),
             nb::arg("emissions"), nb::arg("start"), nb::arg("end"), nb::arg("transitions"));
    nb::class_<Chains>(m, chains_name, "A padded batch of chains, and what can be asked of it.")
        .def(
            "__init__",
            [](Chains* self, nb::typed<nb::object, Scores> scores,
               std::optional<Array<const bool, 2>> mask, std::optional<Array<const Int, 2>> tags,
               Int ignore_index, std::size_t threads) {
                const Scores& from = nb::cast<const Scores&>(scores);
                Chains chains;
                static_cast<PaddedScores<const T>&>(chains) = from;
                chains.scores = scores;
                chains.sequences = from.held.shape(0);
                chains.steps = from.held.shape(1);
                chains.labels = from.held.shape(2);
                chains.tying = from.held_transitions.shape(1) != 1   ? Tying::step
                               : from.held_transitions.shape(0) != 1 ? Tying::sequence
                                                                     : Tying::all;
                if (mask) {
                    require(mask->shape(0) == chains.sequences && mask->shape(1) == chains.steps,
                            "mask must have an entry for every step");
                    chains.mask = strided<const bool, 2>(*mask);
                }
                if (tags) {
                    require(tags->shape(0) == chains.sequences && tags->shape(1) == chains.steps,
                            "tags must have an entry for every step");
                    chains.tags = strided<const Int, 2>(*tags);
                }
                chains.held_mask = mask;
                chains.held_tags = tags;
                chains.ignored = ignore_index;
                chains.threads = threads;
                new (self) Chains(std::move(chains));
            },
            nb::arg("scores"), nb::kw_only(), nb::arg("mask").none(), nb::arg("tags").none(),
            nb::arg("ignore_index"), nb::arg("threads"))
        .def(
            "value",
            [](const Chains& x, Row<T> out) {
                require(out.size() == x.sequences, "out must have an entry for every sequence");
                return run([&] { return Batch<T>(x, x.threads).value(out.data()); });
            },
            nb::arg("out"))
        .def(
            "gradient",
            [](const Chains& x, const Parts& parts, Row<const T> weight, std::optional<Row<T>> value) {
                require(weight.size() == x.sequences && (!value || value->size() == x.sequences),
                        "weight and value must have an entry for every sequence");
                T* values = value ? value->data() : nullptr;
                return run([&] { return Batch<T>(x, x.threads).gradient(weight.data(), parts, values); });
            },
            nb::arg("parts"), nb::kw_only(), nb::arg("weight"), nb::arg("value").none() = nb::none())
        .def(
            "curvature",
            [](const Chains& x, const Parts& parts, const Scores& direction, Row<const T> weight,
               Row<T> slope) {
                require(weight.size() == x.sequences && slope.size() == x.sequences,
                        "weight and slope must have an entry for every sequence");
                return run([&] {
                    return Batch<T>(x, x.threads)
                        .curvature(weight.data(), direction, parts, slope.data());
                });
            },
            nb::arg("parts"), nb::kw_only(), nb::arg("direction"), nb::arg("weight"),
            nb::arg("slope"))
        .def(
            "viterbi",
            [](const Chains& x, Row<T> score, Array<Int, 2> tags) {
                require(score.size() == x.sequences && tags.shape(0) == x.sequences &&
                            tags.shape(1) == x.steps,
                        "score and tags must be of the batch's shape");
                return run([&] {
                    return Batch<T>(x, x.threads).viterbi(score.data(), strided<Int, 2>(tags));
                });
            },
            nb::kw_only(), nb::arg("score"), nb::arg("tags"))
        .def(
            "k_best",
            [](const Chains& x, Array<T, 2> score, Array<Int, 3> tags) {
                const std::size_t k = score.shape(1);
                require(score.shape(0) == x.sequences && tags.shape(0) == x.sequences &&
                            tags.shape(1) == k && tags.shape(2) == x.steps,
                        "score and tags must be of the batch's shape");
                return run([&] {
                    return Batch<T>(x, x.threads)
                        .k_best(k, strided<T, 2>(score), strided<Int, 3>(tags));
                });
            },
            nb::kw_only(), nb::arg("score"), nb::arg("tags"))
        .def(
            "sample",
            [](const Chains& x, Array<const double, 3> uniform, Array<Int, 3> tags) {
                for (std::size_t k = 0; k < 3; ++k)
                    require(uniform.shape(k) == tags.shape(k), "uniform and tags must be of one shape");
                require(tags.shape(1) == x.sequences && tags.shape(2) == x.steps,
                        "tags must be of the batch's shape");
                return run([&] {
                    return Batch<T>(x, x.threads)
                        .sample(tags.shape(0), strided<const double, 3>(uniform),
                                strided<Int, 3>(tags));
                });
            },
            nb::kw_only(), nb::arg("uniform"), nb::arg("tags"));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    bind<float>(m, "PaddedScores32", "PaddedParts32", "PaddedChains32");
    bind<double>(m, "PaddedScores64", "PaddedParts64", "PaddedChains64");
});

}  // namespace chordal
