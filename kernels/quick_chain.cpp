// One sequence at a time: from Python's items to labels, log Z and marginals in one call.
//
// The scores and recursions of a batch (attribute_scores.cpp, chain.hpp) without the arrays in
// between, which take longer than a short sequence does. What does not depend on the sequence is
// made once: the table of transitions as the semirings take it.
//
//   u_t(j) = Σ_{a in x_t} x_ta w(a, j) + each(j) + [t = 0] first(j) + [t = T-1] last(j)
#include "attribute_scores.hpp"
#include "chain_best.hpp"
#include "chain_passes.hpp"

namespace chordal {

struct QuickModel {
    ExpandedWeights weights;
    const double* shared;  // [3 * labels] each, first, last; or null
    const double* table;   // [labels * labels] (from, to)
    std::size_t labels;

    // The same table, rows of `stride`: as it is, and scaled (also from the columns).
    double *best, *sum, *flipped;
    double shift, highest, lowest;  // of the scaled one
    bool forbidden;
};

CHORDAL_BOTH_ISAS(
    std::size_t quick_stride(std::size_t labels);
    void quick_prepare(QuickModel&);
    void quick_scores(const QuickModel&, const AttributeEntries&, double* unary);
    Outcome quick_best(const QuickModel&, const double* unary, std::size_t length,
                       bool (*interrupted)(), double* score, std::int32_t* labels);
    Outcome quick_marginals(const QuickModel&, const double* unary, std::size_t length,
                            bool (*interrupted)(), double* log_partition, double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

std::size_t quick_stride(std::size_t labels) { return padded(labels); }

void quick_prepare(QuickModel& model) {
    const std::size_t n = model.labels, stride = padded(n);
    EnteredTable<Max> best;
    best.enter(model.table, n, n, stride, model.best);
    EnteredTable<Scaled> sum;
    sum.enter(model.table, n, n, stride, model.sum);
    Tables<Scaled>::flip(model.sum, n, n, stride, model.flipped);
    model.shift = sum.shift;
    model.highest = sum.range.highest;
    model.lowest = sum.range.lowest;
    model.forbidden = sum.range.forbidden;
}

void quick_scores(const QuickModel& model, const AttributeEntries& x, double* unary) {
    attribute_scores(x, model.weights, unary);
    if (!model.shared || x.rows == 0) return;
    const std::size_t n = model.labels;
    for (std::size_t t = 0; t < x.rows; ++t)
        for (std::size_t j = 0; j < n; ++j) unary[t * n + j] += model.shared[j];
    for (std::size_t j = 0; j < n; ++j) unary[j] += model.shared[n + j];
    double* end = unary + (x.rows - 1) * n;
    for (std::size_t j = 0; j < n; ++j) end[j] += model.shared[2 * n + j];
}

// The index arrays of a batch of one chain.
class OneChain {
public:
    OneChain(const QuickModel& model, const double* unary, std::size_t length)
        : offsets_(length + 1),
          table_(length + 1),
          variables_{0, static_cast<std::int64_t>(length)},
          cells_{0, static_cast<std::int64_t>(model.labels * model.labels)},
          batch{unary,  offsets_.data(), variables_, model.table,
                cells_, table_.data(),   cliques_,   1},
          chain{unary, offsets_.data(), table_.data(), length} {
        for (std::size_t t = 0; t <= length; ++t) {
            offsets_[t] = static_cast<std::int64_t>(t * model.labels);
            table_[t] = 0;
        }
    }

private:
    ScratchOf<std::int64_t> offsets_;
    ScratchOf<std::int32_t> table_;
    const std::int64_t variables_[2], cells_[2], cliques_[2] = {0, 0};

public:
    const ChainBatch batch;
    const Chain chain;
};

// Memory for sweeps. A thread keeps that of small ones, which take less time than allocation does;
// the rest of scratch memory must not be kept between calls.
template <class S>
class Workspace {
public:
    Workspace(const QuickModel& model, std::size_t length)
        : sweep_(length * padded(model.labels) < kSmallWork ? kept() : own_) {}
    Sweep<S>& sweep() { return sweep_; }

private:
    static constexpr std::size_t kSmallWork = 1 << 10;
    static Sweep<S>& kept() {
        static thread_local Sweep<S> sweep;
        return sweep;
    }
    Sweep<S> own_;
    Sweep<S>& sweep_;
};

Outcome quick_best(const QuickModel& model, const double* unary, std::size_t length,
                   bool (*interrupted)(), double* score, std::int32_t* labels) {
    const OneChain one(model, unary, length);
    Patience patience(interrupted);
    Workspace<Max> workspace(model, length);
    Sweep<Max>& sweep = workspace.sweep();
    sweep.tables.borrow(EnteredTable<Max>(), model.best, nullptr);
    const Outcome outcome = sweep.forward(one.batch, one.chain, patience);
    if (outcome != Outcome::done) return outcome;
    *score = sweep.log_partition;
    if (*score != -kInfinity) trace_back(one.chain, sweep, labels);
    return outcome;
}

template <class S>
Outcome add_up(const OneChain& one, Sweep<S>& sweep, Patience& patience, double* log_partition,
               double* out) {
    const Outcome outcome = sweep.forward(one.batch, one.chain, patience);
    if (outcome != Outcome::done) return outcome;
    *log_partition = sweep.log_partition;
    if (*log_partition == -kInfinity) return outcome;
    bool go_on;
    if constexpr (S::kProbabilities) {
        Scratch rows;
        go_on = backward(one.chain, sweep, rows, patience, [&](std::size_t t, const double* B) {
            write_marginals(one.chain, sweep, 1.0, t, B, out + one.chain.offsets[t]);
        });
    } else {
        const auto node = [&](std::size_t t, const double* P) {
            for (std::size_t j = 0; j < one.chain.labels(t); ++j) out[one.chain.offsets[t] + j] = P[j];
        };
        const auto edge = [](std::size_t, std::size_t, const double*) {};
        go_on = Conditionals(one.chain, sweep).run(patience, node, edge);
    }
    return go_on ? outcome : Outcome::stopped;
}

Outcome quick_marginals(const QuickModel& model, const double* unary, std::size_t length,
                        bool (*interrupted)(), double* log_partition, double* out) {
    const OneChain one(model, unary, length);
    Patience patience(interrupted);
    Workspace<Scaled> workspace(model, length);
    Sweep<Scaled>& sweep = workspace.sweep();
    const Range range{model.highest, model.lowest, model.forbidden};
    sweep.tables.borrow({model.shift, range}, model.sum, model.flipped);
    const Outcome outcome = add_up(one, sweep, patience, log_partition, out);
    if (outcome != Outcome::range) return outcome;
    Sweep<Log> logarithmic;
    return add_up(one, logarithmic, patience, log_partition, out);
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "attribute_layout.hpp"
#include "item_reader.hpp"

namespace chordal {
namespace {

using Labels = nb::typed<nb::list, nb::any>;

// In Python: QuickChain. Its arrays do not change, so that threads may share it.
class QuickChain {
public:
    QuickChain(Vocabulary& vocabulary, const AttributeLayout& layout, Labels labels,
               Input<double> wide, Input<double> narrow, Input<double> table,
               std::optional<Input<double>> shared)
        : vocabulary_(vocabulary),
          attributes_(layout.places.size() / 4),
          labels_(labels),
          held_{wide, narrow, table, shared ? *shared : table} {
        const std::size_t n = labels_.size();
        require(n > 0 && layout.outputs == n && table.size() == n * n &&
                    (!shared || shared->size() == 3 * n),
                "the weights of a chain do not fit its labels");
        const std::size_t stride = CHORDAL_DISPATCH(quick_stride(n));
        prepared_.resize(3 * n * stride);
        double* room = prepared_.data();
        model = {{layout.place(), layout.pair_outputs.data(), wide.data(), narrow.data(), n,
                  layout.unit},
                 shared ? shared->data() : nullptr,
                 table.data(),
                 n,
                 room,
                 room + n * stride,
                 room + 2 * n * stride,
                 0.0,
                 0.0,
                 0.0,
                 false};
        CHORDAL_DISPATCH(quick_prepare(model));
    }

    QuickModel model{};

    // Scores of the labels of each item; needs the GIL.
    std::vector<double> scores(nb::handle items) const {
        std::unique_ptr<ItemReader> reader(spare_.exchange(nullptr));
        if (!reader) reader = std::make_unique<ItemReader>(vocabulary_, false);
        reader->sequence(items);
        if (!reader->vectors.empty()) refuse(reader->vectors.blocks().front());
        const Names& names = reader->names;
        const AttributeEntries x{names.row_offsets.data(), names.ids.data(),
                                 names.values.empty() ? nullptr : names.values.data(),
                                 names.row_offsets.size() - 1};
        auto unary = scores(x);
        if (x.rows < kShort) delete spare_.exchange(reader.release());
        return unary;
    }
    std::vector<double> scores(const AttributeEntries& x) const {
        for (auto k = x.offset[0]; k < x.offset[x.rows]; ++k)  // the vocabulary may have grown
            require(static_cast<std::size_t>(x.id[k]) < attributes_, "the model has changed");
        std::vector<double> unary(x.rows * model.labels);
        CHORDAL_DISPATCH(quick_scores(model, x, unary.data()));
        return unary;
    }
    ~QuickChain() { delete spare_.load(); }

    // The best labels; None if none are allowed.
    std::optional<Labels> best(const std::vector<double>& unary) const {
        const std::size_t length = unary.size() / model.labels;
        if (length == 0) return Labels();
        std::vector<std::int32_t> found(length);
        double score = 0.0;
        run(length, [&] {
            return CHORDAL_DISPATCH(quick_best(model, unary.data(), length, interrupted, &score,
                                               found.data()));
        });
        if (score == -std::numeric_limits<double>::infinity()) return {};
        auto list = nb::steal<Labels>(PyList_New(static_cast<Py_ssize_t>(length)));
        if (!list.is_valid()) throw nb::python_error();
        for (std::size_t t = 0; t < length; ++t) {
            PyObject* label = tuple_item(labels_, found[t]);
            Py_INCREF(label);
            fill_list(list, static_cast<Py_ssize_t>(t), label);
        }
        return list;
    }

    // Runs a kernel; other threads may go on meanwhile if it takes long.
    template <class Kernel>
    void run(std::size_t length, Kernel kernel) const {
        constexpr std::size_t kLong = 1 << 16;
        Outcome outcome;
        if (length * model.labels * model.labels < kLong) {
            outcome = kernel();
        } else {
            GilReleased release;
            outcome = kernel();
        }
        if (outcome == Outcome::stopped) throw Stopped{};
    }

private:
    static constexpr std::size_t kShort = 256;

    [[noreturn]] static void refuse(const VectorBlock& block) {
        throw nb::type_error(("X[0][" + std::to_string(block.rows.front()) + "] has the array '" +
                              block.name + "', and training saw no arrays")
                                 .c_str());
    }

    Vocabulary& vocabulary_;
    mutable std::atomic<ItemReader*> spare_{nullptr};  // whose memory serves the next sequence
    std::size_t attributes_;
    nb::tuple labels_;  // a copy, which nobody changes
    Input<double> held_[4];  // what the pointers lead into
    std::vector<double> prepared_;
};

// In Python: QuickSequence. What is asked first is computed then.
class QuickSequence {
public:
    QuickSequence(nb::handle_t<QuickChain> chain, std::vector<double>&& unary)
        : owner_(nb::borrow(chain)),
          chain_(*nb::inst_ptr<QuickChain>(chain)),
          unary_(std::move(unary)) {}

    std::size_t length() const { return unary_.size() / chain_.model.labels; }
    std::optional<Labels> best() const { return chain_.best(unary_); }
    double log_partition() {
        add_up();
        return log_partition_;
    }
    double score(nb::typed<nb::list, int> numbers) const {
        const std::size_t n = chain_.model.labels;
        require(numbers.size() == length(), "there must be a label for each item");
        double sum = 0.0;
        std::size_t before = 0;
        for (std::size_t t = 0; t < length(); ++t) {
            const auto y = nb::cast<std::size_t>(numbers[t]);
            require(y < n, "a label is out of range");
            sum += unary_[t * n + y] + (t > 0 ? chain_.model.table[before * n + y] : 0.0);
            before = y;
        }
        return sum;
    }
    double marginal(std::size_t position, std::size_t label) {
        require(position < length() && label < chain_.model.labels, "there is no such label");
        add_up();
        return marginals_[position * chain_.model.labels + label];
    }
    nb::ndarray<nb::numpy, const double, nb::ndim<2>> marginals() {
        add_up();
        return {marginals_.data(), {length(), chain_.model.labels}};
    }

private:
    // Threads that ask at the same time may each compute; what the first one found is kept.
    void add_up() {
        {
            const nb::ft_lock_guard guard(mutex_);
            if (added_) return;
        }
        std::vector<double> marginals(unary_.size());
        double log_partition = 0.0;
        if (length() > 0)
            chain_.run(length(), [&] {
                return CHORDAL_DISPATCH(quick_marginals(chain_.model, unary_.data(), length(),
                                                        interrupted, &log_partition,
                                                        marginals.data()));
            });
        const nb::ft_lock_guard guard(mutex_);
        if (added_) return;
        marginals_ = std::move(marginals);
        log_partition_ = log_partition;
        added_ = true;
    }

    nb::object owner_;
    const QuickChain& chain_;
    std::vector<double> unary_, marginals_;
    double log_partition_ = 0.0;
    bool added_ = false;
    struct Mutex : nb::ft_mutex {
        Mutex() = default;
        Mutex(Mutex&&) noexcept {}  // a sequence moves before others know it
    };
    Mutex mutex_;  // of these three, where the GIL does not hold other threads back
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<QuickChain>(m, "QuickChain", "A chain model that answers about one sequence.")
        .def(nb::init<Vocabulary&, const AttributeLayout&, Labels, Input<double>, Input<double>,
                      Input<double>, std::optional<Input<double>>>(),
             nb::arg("vocabulary"), nb::arg("layout"), nb::arg("labels"), nb::kw_only(),
             nb::arg("wide"), nb::arg("narrow"), nb::arg("table"), nb::arg("shared").none(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def(
            "best",
            [](const QuickChain& self, nb::handle items) { return self.best(self.scores(items)); },
            nb::arg("items"), "The best labels of a sequence; None if none are allowed.")
        .def(
            "sequence",
            [](nb::handle_t<QuickChain> self, nb::handle items) {
                return QuickSequence(self, nb::inst_ptr<QuickChain>(self)->scores(items));
            },
            nb::arg("items"), "A sequence to ask questions about.")
        .def(
            "rows",
            [](nb::handle_t<QuickChain> self, Input<std::int64_t> offsets, Input<std::int32_t> ids,
               std::optional<Input<double>> values) {
                const std::size_t n = offsets.size();
                require(n > 0 && offsets.data()[0] == 0 &&
                            offsets.data()[n - 1] == static_cast<std::int64_t>(ids.size()) &&
                            std::is_sorted(offsets.data(), offsets.data() + n) &&
                            (!values || values->size() == ids.size()),
                        "the rows of a sequence do not fit together");
                const AttributeEntries x{offsets.data(), ids.data(),
                                         values ? values->data() : nullptr, n - 1};
                return QuickSequence(self, nb::inst_ptr<QuickChain>(self)->scores(x));
            },
            nb::arg("offsets"), nb::arg("ids"), nb::arg("values").none(),
            "The same of attributes that were read before, by their ids.");
    nb::class_<QuickSequence>(m, "QuickSequence", "A sequence under a QuickChain.")
        .def("__len__", &QuickSequence::length)
        .def("best", &QuickSequence::best, "The best labels; None if none are allowed.")
        .def("log_partition", &QuickSequence::log_partition)
        .def("score", &QuickSequence::score, nb::arg("numbers"),
             "The score of labels, given by their numbers.")
        .def("marginal", &QuickSequence::marginal, nb::arg("position"), nb::arg("label"),
             "P(label at position), the label given by its number.")
        .def("marginals", &QuickSequence::marginals, nb::rv_policy::reference_internal,
             "P(label at position) [length, labels].");
});

}  // namespace chordal
#endif
